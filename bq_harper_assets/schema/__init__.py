"""Logical types: what a column is, whichever store spells it how."""
