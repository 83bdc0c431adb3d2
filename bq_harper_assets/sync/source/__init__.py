"""Tasks read the rows of a pinned source, split by split."""
