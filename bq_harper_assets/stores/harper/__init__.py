"""This store is Harper, through its Operations API."""
