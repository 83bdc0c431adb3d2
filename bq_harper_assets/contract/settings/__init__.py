"""Settings come from profiles, variables and defaults, and end as connections to each system."""
