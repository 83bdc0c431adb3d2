"""Cells are ranges times slices: the units in which rows are moved, recorded and proved."""
