"""Each table's schema is an asset of its own, with a sensor and a check that look for drift."""
