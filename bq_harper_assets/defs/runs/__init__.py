"""Runs are launched, retried, stopped, and found dead or still active."""
