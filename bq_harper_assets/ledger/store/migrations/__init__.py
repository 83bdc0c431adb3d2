"""Alembic's folder: how the ledger's tables came about, one step per module."""
