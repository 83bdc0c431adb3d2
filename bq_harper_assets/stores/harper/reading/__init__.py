"""Harper's rows are read back: as ids and hashes, as values, and as rows of a schema version."""
