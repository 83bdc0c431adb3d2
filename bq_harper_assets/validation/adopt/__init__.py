"""The adoption check says whether a Harper table that others made can be taken over."""
