"""What users declare: YAML in, validated contracts out."""
