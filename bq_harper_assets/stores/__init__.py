"""Every store has a folder here, and all of them have the same shape."""
