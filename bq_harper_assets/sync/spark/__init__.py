"""Spark runs the tasks of a turn: its session, its errors, what tasks await and return."""
