"""Adds what a schema version changed, in the words of then, and its source's fingerprint."""

import sqlalchemy as sa
from alembic import op

revision = "v0005"
down_revision = "v0004"


def upgrade() -> None:
    """Adds both; the changes of earlier versions are computed when somebody asks for them."""
    for name in ("changes", "source_fingerprint"):
        op.add_column("schema_versions", sa.Column(name, sa.Text(), nullable=True))
