"""Source rows become Harper records, and records become request bodies, in Arrow all the way."""
