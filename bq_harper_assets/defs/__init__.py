"""Dagster's side, built from contracts."""
