"""Spark runs the tasks of a turn: its session, its errors, how tasks log in, what they return."""
