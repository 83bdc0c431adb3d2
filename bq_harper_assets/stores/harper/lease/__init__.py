"""Harper has copies of the ledger's leases: tasks send by them, and they name their ledger."""
