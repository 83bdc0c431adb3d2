"""The commands of `bqh schema` show, accept, apply and clean up versions of a table's schema."""
