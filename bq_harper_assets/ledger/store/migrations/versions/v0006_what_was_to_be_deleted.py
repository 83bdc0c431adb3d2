"""Adds what each batch was about to delete, for batches that end without a commit."""

import sqlalchemy as sa
from alembic import op

revision = "v0006"
down_revision = "v0005"


def upgrade() -> None:
    """Adds it; it stays unknown for earlier batches that were not committed."""
    op.add_column("batches", sa.Column("deletes_intended", sa.BigInteger(), nullable=True))
    op.drop_index("batches_that_lost", "batches")
    some = sa.text("coalesce(rows_deleted + rows_flagged, deletes_intended) > 0")
    op.create_index(
        "batches_that_lost",
        "batches",
        ["table_id", "ended_at"],
        sqlite_where=some,
        postgresql_where=some,
    )
