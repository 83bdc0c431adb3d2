"""Adds until when a refusal holds, and what Harper's copy of each lease is known to say."""

import sqlalchemy as sa
from alembic import op

revision = "v0007"
down_revision = "v0006"


def upgrade() -> None:
    """Adds both; earlier refusals hold until somebody decides, and the copies are unknown."""
    op.add_column("batches", sa.Column("refused_until", sa.BigInteger(), nullable=True))
    op.add_column("leases", sa.Column("mirrored_epoch", sa.BigInteger(), nullable=True))
    op.add_column("leases", sa.Column("mirrored_batch", sa.BigInteger(), nullable=True))
