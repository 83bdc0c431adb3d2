"""Whether a synced table is what it should be: checks that end in a verdict, and their record."""
