"""BigQuery, real or emulated."""
