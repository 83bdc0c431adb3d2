"""YAML files are read into blocks that know their line, and every problem in them is reported."""
