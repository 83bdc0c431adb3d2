"""Run by Alembic: applies the steps inside the transaction that `migrate` has opened."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
