"""Values of every type are encoded as Harper stores them, column by column."""
