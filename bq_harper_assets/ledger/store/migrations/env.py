"""Alembic runs this module to apply the steps in the transaction that `migrate` has opened."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
