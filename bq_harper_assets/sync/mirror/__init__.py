"""Harper has copies of checkpoints, leases and schemas; the ledger stays the truth."""
