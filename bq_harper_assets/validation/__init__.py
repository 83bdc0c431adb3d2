"""Checks whether a synced table is what it should be, and records the verdicts."""
