"""Each table has asset checks, which run after each sync, in jobs of their own, and at night."""
