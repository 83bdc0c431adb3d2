"""The embedded stack: a real Harper and a BigQuery emulator on this machine's loopback."""
