"""The progress check says whether the sync keeps up, by the rows that are due."""
