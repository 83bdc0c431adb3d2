"""The sync's own tables in Harper are copies of what the ledger knows."""
