"""Adds who recorded a schema and why, fingerprints under later schemas, and claims."""

import sqlalchemy as sa
from alembic import op

revision = "v0003"
down_revision = "v0002"


def upgrade() -> None:
    """Adds them; of earlier schemas nobody knows who recorded them and why."""
    for name in ("recorded_by", "cause"):
        op.add_column(
            "schema_versions", sa.Column(name, sa.Text(), nullable=False, server_default="")
        )
    op.add_column("cells", sa.Column("fingerprint_version", sa.Integer(), nullable=True))
    op.create_table(
        "claims",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("acquired_at", sa.BigInteger(), nullable=True),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("note", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="claims_pk"),
    )
