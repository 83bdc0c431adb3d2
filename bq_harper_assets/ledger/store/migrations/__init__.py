"""Alembic finds here how the ledger's tables came about, one step per module."""
