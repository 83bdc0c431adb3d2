"""Adds what each cell held before its batch, and whether someone allowed the batch's deletes."""

import sqlalchemy as sa
from alembic import op

revision = "v0004"
down_revision = "v0003"


def upgrade() -> None:
    """Adds both; they stay unknown for earlier batches."""
    op.add_column("batches", sa.Column("rows_held", sa.BigInteger(), nullable=True))
    op.add_column("batches", sa.Column("deletes_allowed", sa.Boolean(), nullable=True))
    some = sa.text("rows_deleted + rows_flagged > 0")
    op.create_index(
        "batches_that_lost",
        "batches",
        ["table_id", "ended_at"],
        sqlite_where=some,
        postgresql_where=some,
    )
