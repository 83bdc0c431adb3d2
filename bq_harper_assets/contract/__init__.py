"""Users declare tables in YAML files, which become validated contracts."""
