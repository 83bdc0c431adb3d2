"""`bqh`: the product's capabilities from a terminal."""
