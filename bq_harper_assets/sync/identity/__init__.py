"""A row's id says which row it is, its hash sums up its values; a digest sums up a set of rows."""
