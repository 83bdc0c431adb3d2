"""This store is BigQuery, the real one or its emulator."""
