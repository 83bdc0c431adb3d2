"""A turn leases each slice that it moves, if ledger and Harper agree, and sends while it lasts."""
