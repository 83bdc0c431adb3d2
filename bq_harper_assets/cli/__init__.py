"""`bqh` offers the product's capabilities at a terminal."""
