"""A row whose time has changed moves to another cell: here it is told apart from a deleted one."""
