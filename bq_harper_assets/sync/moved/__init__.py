"""A row whose time changed belongs to another cell: here it is distinguished from a deleted row."""
