"""Cells are windows times slices: the units in which rows are moved, recorded and proved."""
