"""YAML files are read into entries that know their line, and every problem in them is reported."""
