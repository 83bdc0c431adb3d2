"""The identity of a row: its id and its hash, and the digest of a set of rows."""
