"""One folder per store, all of one shape."""
