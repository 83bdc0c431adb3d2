"""Says what a table's columns are, whichever store spells their types how, and how they change."""
