"""What a schema version changed, and which source it was seen in, as they were told then."""

import sqlalchemy as sa
from alembic import op

revision = "v0005"
down_revision = "v0004"


def upgrade() -> None:
    """Of the versions recorded until now it is worked out again when somebody asks."""
    for name in ("changes", "source_fingerprint"):
        op.add_column("schema_versions", sa.Column(name, sa.Text(), nullable=True))
