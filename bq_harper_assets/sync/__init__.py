"""Moving rows: windows, slices, row identity, and the Spark mover."""
