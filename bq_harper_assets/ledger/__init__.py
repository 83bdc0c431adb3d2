"""The ledger is the ACID store of who may write what, what was written, and what was refused."""
