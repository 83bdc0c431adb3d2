"""Keeps Harper tables equal to their BigQuery sources, and proves it."""
