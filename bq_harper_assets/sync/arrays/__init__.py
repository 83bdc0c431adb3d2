"""Arithmetic on whole columns, in Arrow's own memory, makes no Python object per row."""
