"""The embedded stack is a real Harper and a BigQuery emulator on this machine's loopback."""
