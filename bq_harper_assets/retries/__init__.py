"""Calls that fail for a while are sent again, and a person is told what is waited for."""
