"""Windows are visited again when their source has changed: which ones, when, and in which runs."""
