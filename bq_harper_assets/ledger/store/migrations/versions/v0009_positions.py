"""Adds positions and their ranks, which order what was ordered by instants."""

import sqlalchemy as sa
from alembic import op

revision = "v0009"
down_revision = "v0008"

# An instant's rank is its microseconds, so that every order stays as it was.
_TEXT = {
    "sqlite": "strftime('%Y-%m-%dT%H:%M:%S', snapshot / 1000000, 'unixepoch')"
    " || printf('.%06dZ', snapshot % 1000000)",
    "postgresql": "to_char(to_timestamp(snapshot / 1000000) AT TIME ZONE 'UTC',"
    " 'YYYY-MM-DD\"T\"HH24:MI:SS') || '.' || lpad((snapshot % 1000000)::text, 6, '0') || 'Z'",
}


def upgrade() -> None:
    """Adds them; until now every position was an instant."""
    for table in ("logical_tables", "leases", "batches"):
        op.add_column(table, sa.Column("position_kind", sa.Text(), nullable=True))
        op.add_column(table, sa.Column("position", sa.Text(), nullable=True))
        op.add_column(table, sa.Column("rank", sa.BigInteger(), nullable=True))
    op.add_column("cells", sa.Column("rank", sa.BigInteger(), nullable=True))
    op.execute("UPDATE cells SET rank = snapshot")
    text = _TEXT[op.get_context().dialect.name]
    for table in ("leases", "batches"):
        op.execute(
            sa.text(
                f"UPDATE {table} SET position_kind = 'instant', position = {text}, rank = snapshot"
                " WHERE snapshot IS NOT NULL".replace(":", "\\:")
            )
        )
    newest = "FROM leases WHERE leases.table_id = logical_tables.id AND leases.rank IS NOT NULL"
    order = "ORDER BY leases.rank DESC LIMIT 1"
    for column in ("position_kind", "position", "rank"):
        op.execute(
            f"UPDATE logical_tables SET {column} = (SELECT leases.{column} {newest} {order})"
        )
    with op.batch_alter_table("batches") as batches:
        for column in ("position_kind", "position"):
            batches.alter_column(column, existing_type=sa.Text(), nullable=False)
        batches.alter_column("rank", existing_type=sa.BigInteger(), nullable=False)
    op.alter_column("marks", "snapshot", new_column_name="rank", existing_type=sa.BigInteger())
