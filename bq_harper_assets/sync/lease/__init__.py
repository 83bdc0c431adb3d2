"""A turn leases each slice that it moves, if ledger and target agree, and sends while it lasts."""
