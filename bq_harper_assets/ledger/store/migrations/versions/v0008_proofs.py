"""Adds what the newest proof of each cell found, and in which batch."""

import sqlalchemy as sa
from alembic import op

revision = "v0008"
down_revision = "v0007"


def upgrade() -> None:
    """Adds the table; cells that were proved earlier count as not proved since their sync."""
    op.create_table(
        "proofs",
        sa.Column("table_id", sa.Integer(), nullable=False),
        sa.Column("slice", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("window_start", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("batch", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("deep", sa.Boolean(), nullable=False),
        sa.Column("source_changed", sa.Boolean(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["table_id"], ["logical_tables.id"], name="proofs_table_id_fk"),
        sa.PrimaryKeyConstraint("table_id", "slice", "window_start", name="proofs_pk"),
    )
