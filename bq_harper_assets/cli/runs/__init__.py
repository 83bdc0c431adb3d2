"""Commands find the table and cells that a user asks for, and start runs and proofs over them."""
