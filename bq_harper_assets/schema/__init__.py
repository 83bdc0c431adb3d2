"""Describes a table's columns independently of any store, and how they change over time."""
