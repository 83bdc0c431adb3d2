"""Adds marks, commits up to a point of a window, and batches that outlive their cells."""

import sqlalchemy as sa
from alembic import op

revision = "v0002"
down_revision = "v0001"


def upgrade() -> None:
    """Adds them; every earlier commit counts as one of a whole window."""
    op.create_table(
        "marks",
        sa.Column("table_id", sa.Integer(), nullable=False),
        sa.Column("slice", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("window_start", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("snapshot", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("row_time", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["table_id", "slice", "window_start"],
            ["cells.table_id", "cells.slice", "cells.window_start"],
            name="marks_table_id_slice_window_start_fk",
        ),
        sa.PrimaryKeyConstraint("table_id", "slice", "window_start", "snapshot", name="marks_pk"),
    )

    op.add_column("cells", sa.Column("upto", sa.BigInteger(), nullable=True))
    op.execute("UPDATE cells SET upto = window_end WHERE batch IS NOT NULL")

    for name in ("upto", "since", "rows_moved", "rows_flagged", "rows_kept"):
        op.add_column("batches", sa.Column(name, sa.BigInteger(), nullable=True))
    op.execute(
        "UPDATE batches SET upto = window_start"
        " + (SELECT window_us FROM logical_tables WHERE logical_tables.id = batches.table_id)"
    )
    op.execute(
        "UPDATE batches SET rows_moved = 0, rows_flagged = 0, rows_kept = 0 WHERE state = 'applied'"
    )
    op.execute("UPDATE batches SET mode = 'reconcile' WHERE mode = 'upsert'")
    # SQLite changes no column in place, so Alembic makes the table again there.
    with op.batch_alter_table("batches") as batches:
        batches.alter_column("upto", existing_type=sa.BigInteger(), nullable=False)
        batches.drop_constraint("batches_table_id_slice_window_start_fk", type_="foreignkey")
