"""Changes of the source's columns become versions of its schema and take effect in the target."""
