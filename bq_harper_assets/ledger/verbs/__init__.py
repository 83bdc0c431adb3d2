"""Each verb changes the ledger within one transaction, which checks first and then writes."""
