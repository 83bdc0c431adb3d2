"""The plan says which cells a turn moves, in which mode, and how much it may send and delete."""
