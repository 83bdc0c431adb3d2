"""Records are sent to Harper, one request at a time, and rows that are gone are removed from it."""
