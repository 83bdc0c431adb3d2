"""Harper, through its Operations API."""
