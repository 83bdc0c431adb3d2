"""Makes a planned table in Harper, fits it to one that exists, and waits for its indexes."""
