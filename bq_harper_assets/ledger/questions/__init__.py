"""Each question reads the ledger, and neither locks nor changes anything in it."""
