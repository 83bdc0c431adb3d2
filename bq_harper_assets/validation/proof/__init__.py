"""The proof compares every row of source and target, by cell and for the whole table."""
