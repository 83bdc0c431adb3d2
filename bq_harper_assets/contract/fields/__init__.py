"""The models of the configuration are made of these kinds of fields."""
