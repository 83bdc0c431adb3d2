"""A route names the source and the target of a logical table's rows, and opens both."""
