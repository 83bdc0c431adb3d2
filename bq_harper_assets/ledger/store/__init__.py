"""The ledger is kept in these tables of SQLite or PostgreSQL, and migrated when it is opened."""
