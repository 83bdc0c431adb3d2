"""Makes the first tables, and the ledger's identity, which is made exactly once."""

from uuid import uuid4

import sqlalchemy as sa
from alembic import op

revision = "v0001"
down_revision = None


def upgrade() -> None:
    """Makes the tables and the identity."""
    op.create_table(
        "ledger_identity",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("uuid", sa.Text(), nullable=False),
        sa.CheckConstraint("id = 1", name="ledger_identity_one_ck"),
        sa.PrimaryKeyConstraint("id", name="ledger_identity_pk"),
    )
    op.create_table(
        "logical_tables",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("timestamp_column", sa.Text(), nullable=False),
        sa.Column("key_columns", sa.Text(), nullable=False),
        sa.Column("window_us", sa.BigInteger(), nullable=False),
        sa.Column("slices", sa.Integer(), nullable=False),
        sa.Column("last_batch", sa.BigInteger(), nullable=False),
        sa.Column("registered_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="logical_tables_pk"),
        sa.UniqueConstraint("name", name="logical_tables_name_uq"),
        sa.UniqueConstraint("target", name="logical_tables_target_uq"),
    )
    op.create_table(
        "starts",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("start", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="starts_pk"),
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("table_id", sa.Integer(), nullable=True),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["table_id"], ["logical_tables.id"], name="audit_table_id_fk"),
        sa.PrimaryKeyConstraint("id", name="audit_pk"),
    )
    op.create_index("audit_by_table", "audit", ["table_id", "id"], unique=False)
    op.create_table(
        "cells",
        sa.Column("table_id", sa.Integer(), nullable=False),
        sa.Column("slice", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("window_start", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("window_end", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("batch", sa.BigInteger(), nullable=True),
        sa.Column("snapshot", sa.BigInteger(), nullable=True),
        sa.Column("schema_version", sa.Integer(), nullable=True),
        sa.Column("rows", sa.BigInteger(), nullable=True),
        sa.Column("digest", sa.Text(), nullable=True),
        sa.Column("fingerprint", sa.Text(), nullable=True),
        sa.Column("committed_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["table_id"], ["logical_tables.id"], name="cells_table_id_fk"),
        sa.PrimaryKeyConstraint("table_id", "slice", "window_start", name="cells_pk"),
    )
    op.create_index("cells_by_window", "cells", ["table_id", "window_start"], unique=False)
    op.create_table(
        "leases",
        sa.Column("table_id", sa.Integer(), nullable=False),
        sa.Column("slice", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("acquired_at", sa.BigInteger(), nullable=True),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("snapshot", sa.BigInteger(), nullable=True),
        sa.Column("schema_version", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["table_id"], ["logical_tables.id"], name="leases_table_id_fk"),
        sa.PrimaryKeyConstraint("table_id", "slice", name="leases_pk"),
    )
    op.create_table(
        "schema_versions",
        sa.Column("table_id", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["table_id"], ["logical_tables.id"], name="schema_versions_table_id_fk"
        ),
        sa.PrimaryKeyConstraint("table_id", "version", name="schema_versions_pk"),
    )
    op.create_table(
        "batches",
        sa.Column("table_id", sa.Integer(), nullable=False),
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("slice", sa.Integer(), nullable=False),
        sa.Column("window_start", sa.BigInteger(), nullable=False),
        sa.Column("snapshot", sa.BigInteger(), nullable=False),
        sa.Column("schema_version", sa.Integer(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("planned_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("rows_read", sa.BigInteger(), nullable=True),
        sa.Column("rows_written", sa.BigInteger(), nullable=True),
        sa.Column("rows_unchanged", sa.BigInteger(), nullable=True),
        sa.Column("rows_quarantined", sa.BigInteger(), nullable=True),
        sa.Column("rows_deleted", sa.BigInteger(), nullable=True),
        sa.Column("bytes", sa.BigInteger(), nullable=True),
        sa.Column("seconds", sa.Float(), nullable=True),
        sa.Column("digest", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "state <> 'applied' OR rows_read = rows_written + rows_unchanged + rows_quarantined",
            name="batches_conservation_ck",
        ),
        sa.ForeignKeyConstraint(
            ["table_id", "schema_version"],
            ["schema_versions.table_id", "schema_versions.version"],
            name="batches_table_id_schema_version_fk",
        ),
        sa.ForeignKeyConstraint(
            ["table_id", "slice", "window_start"],
            ["cells.table_id", "cells.slice", "cells.window_start"],
            name="batches_table_id_slice_window_start_fk",
        ),
        sa.ForeignKeyConstraint(["table_id"], ["logical_tables.id"], name="batches_table_id_fk"),
        sa.PrimaryKeyConstraint("table_id", "seq", name="batches_pk"),
    )
    op.create_index(
        "batches_by_cell", "batches", ["table_id", "slice", "window_start", "seq"], unique=False
    )
    op.create_index(
        "batches_one_planned",
        "batches",
        ["table_id", "slice", "window_start"],
        unique=True,
        sqlite_where=sa.text("state = 'planned'"),
        postgresql_where=sa.text("state = 'planned'"),
    )
    op.create_table(
        "quarantine",
        sa.Column("table_id", sa.Integer(), nullable=False),
        sa.Column("slice", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("window_start", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("batch", sa.BigInteger(), nullable=False),
        sa.Column("row_id", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["table_id", "slice", "window_start"],
            ["cells.table_id", "cells.slice", "cells.window_start"],
            name="quarantine_table_id_slice_window_start_fk",
        ),
        sa.PrimaryKeyConstraint(
            "table_id", "slice", "window_start", "number", name="quarantine_pk"
        ),
    )

    identity = sa.table("ledger_identity", sa.column("id"), sa.column("uuid"))
    op.execute(sa.insert(identity).values(id=1, uuid=str(uuid4())))
