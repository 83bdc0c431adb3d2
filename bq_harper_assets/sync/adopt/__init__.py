"""A Harper table that others have made and filled is compared with its source and taken over."""
