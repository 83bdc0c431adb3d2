"""The engine moves rows: it cuts them into cells, compares them and writes them with Spark."""
