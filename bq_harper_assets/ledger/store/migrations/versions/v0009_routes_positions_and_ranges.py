"""Gives logical tables their routes, turns their positions, and cells the ranges of either cut."""

import sqlalchemy as sa
from alembic import op

revision = "v0009"
down_revision = "v0008"
release = "0.2.0"  # the first release that knows this layout

# Each of these comes after all that refer to it.
_LEFT = (
    *("audit", "proofs", "quarantine", "marks", "batches", "cells", "leases"),
    *("schema_versions", "logical_tables"),
)
# An instant's rank is its microseconds, so that every order stays as it was.
_POSITION = {
    "sqlite": "strftime('%Y-%m-%dT%H:%M:%S', snapshot / 1000000, 'unixepoch')"
    " || printf('.%06dZ', snapshot % 1000000)",
    "postgresql": "to_char(to_timestamp(snapshot / 1000000) AT TIME ZONE 'UTC',"
    " 'YYYY-MM-DD\"T\"HH24:MI:SS') || '.' || lpad((snapshot % 1000000)::text, 6, '0') || 'Z'",
}
_ROUTE = {"route_id": "table_id"}
_CELL = {**_ROUTE, "range_start": "window_start"}


def upgrade() -> None:
    """Makes every table anew from its rows: each logical table gets one route, of the same id.

    SQLite changes neither a table's keys nor its references in place.
    """
    dialect = op.get_context().dialect.name
    for name in _LEFT:
        op.execute(f"CREATE TABLE left_{name} AS SELECT * FROM {name}")
        op.drop_table(name)
    position = {
        "position_kind": "CASE WHEN snapshot IS NOT NULL THEN 'instant' END",
        "position": _POSITION[dialect],
        "rank": "snapshot",
    }
    newest = (
        "(SELECT {} FROM left_leases WHERE left_leases.table_id = left_logical_tables.id"
        " AND snapshot IS NOT NULL ORDER BY snapshot DESC LIMIT 1)"
    )
    length = (
        "(SELECT window_us FROM left_logical_tables"
        " WHERE left_logical_tables.id = left_batches.table_id)"
    )
    _fill(_logical_tables(), "logical_tables", {})
    _fill(
        _routes(),
        "logical_tables",
        {"table_id": "id", "cut": "'time'"}
        | {name: newest.format(value) for name, value in position.items()},
    )
    _fill(_schema_versions(), "schema_versions", {})
    _key_ranges()
    _fill(_leases(), "leases", {**_ROUTE, **position})
    _fill(_cells(), "cells", {**_CELL, "range_end": "window_end", "rank": "snapshot"})
    _fill(_marks(), "marks", {**_CELL, "rank": "snapshot"})
    _fill(_batches(), "batches", {**_CELL, "range_end": f"window_start + {length}", **position})
    _fill(_quarantine(), "quarantine", _CELL)
    _fill(_proofs(), "proofs", _CELL)
    _fill(_audit(), "audit", _ROUTE)
    for name in _LEFT:
        op.drop_table(f"left_{name}")
    op.add_column(
        "ledger_identity", sa.Column("release", sa.Text(), nullable=False, server_default="")
    )
    if dialect == "postgresql":
        for name in ("logical_tables", "routes", "audit"):
            newest_id = f"(SELECT coalesce(max(id), 0) + 1 FROM {name})"
            op.execute(f"SELECT setval('{name}_id_seq', {newest_id}, false)")


def _fill(made: sa.Table, left: str, values: dict[str, str]) -> None:
    """Copies the rows that were left; `values` says where a column is not of the same name."""
    names = [column.name for column in made.columns]
    read = ", ".join(values.get(name, name) for name in names)
    statement = f"INSERT INTO {made.name} ({', '.join(names)}) SELECT {read} FROM left_{left}"
    op.execute(sa.text(statement.replace(":", "\\:")))


def _logical_tables() -> sa.Table:
    return op.create_table(
        "logical_tables",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="logical_tables_pk"),
        sa.UniqueConstraint("name", name="logical_tables_name_uq"),
    )


def _routes() -> sa.Table:
    return op.create_table(
        "routes",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("table_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("timestamp_column", sa.Text(), nullable=False),
        sa.Column("key_columns", sa.Text(), nullable=False),
        sa.Column("cut", sa.Text(), nullable=False),
        sa.Column("window_us", sa.BigInteger(), nullable=True),
        sa.Column("slices", sa.Integer(), nullable=False),
        sa.Column("last_batch", sa.BigInteger(), nullable=False),
        sa.Column("registered_at", sa.BigInteger(), nullable=False),
        sa.Column("position_kind", sa.Text(), nullable=True),
        sa.Column("position", sa.Text(), nullable=True),
        sa.Column("rank", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("(cut = 'time') = (window_us IS NOT NULL)", name="routes_cut_ck"),
        sa.ForeignKeyConstraint(["table_id"], ["logical_tables.id"], name="routes_table_id_fk"),
        sa.PrimaryKeyConstraint("id", name="routes_pk"),
        sa.UniqueConstraint("name", name="routes_name_uq"),
        sa.UniqueConstraint("target", name="routes_target_uq"),
    )


def _schema_versions() -> sa.Table:
    return op.create_table(
        "schema_versions",
        sa.Column("table_id", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.Column("recorded_by", sa.Text(), server_default="", nullable=False),
        sa.Column("cause", sa.Text(), server_default="", nullable=False),
        sa.Column("changes", sa.Text(), nullable=True),
        sa.Column("source_fingerprint", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["table_id"], ["logical_tables.id"], name="schema_versions_table_id_fk"
        ),
        sa.PrimaryKeyConstraint("table_id", "version", name="schema_versions_pk"),
    )


def _key_ranges() -> None:
    op.create_table(
        "key_ranges",
        sa.Column("route_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("low", sa.Text(), nullable=True),
        sa.Column("high", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["route_id"], ["routes.id"], name="key_ranges_route_id_fk"),
        sa.PrimaryKeyConstraint("route_id", "number", name="key_ranges_pk"),
    )


def _leases() -> sa.Table:
    return op.create_table(
        "leases",
        sa.Column("route_id", sa.Integer(), nullable=False),
        sa.Column("slice", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("acquired_at", sa.BigInteger(), nullable=True),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("snapshot", sa.BigInteger(), nullable=True),
        sa.Column("position_kind", sa.Text(), nullable=True),
        sa.Column("position", sa.Text(), nullable=True),
        sa.Column("rank", sa.BigInteger(), nullable=True),
        sa.Column("schema_version", sa.Integer(), nullable=True),
        sa.Column("mirrored_epoch", sa.BigInteger(), nullable=True),
        sa.Column("mirrored_batch", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["route_id"], ["routes.id"], name="leases_route_id_fk"),
        sa.PrimaryKeyConstraint("route_id", "slice", name="leases_pk"),
    )


def _cells() -> sa.Table:
    made = op.create_table(
        "cells",
        sa.Column("route_id", sa.Integer(), nullable=False),
        sa.Column("slice", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("range_start", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("range_end", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("batch", sa.BigInteger(), nullable=True),
        sa.Column("snapshot", sa.BigInteger(), nullable=True),
        sa.Column("rank", sa.BigInteger(), nullable=True),
        sa.Column("upto", sa.BigInteger(), nullable=True),
        sa.Column("schema_version", sa.Integer(), nullable=True),
        sa.Column("rows", sa.BigInteger(), nullable=True),
        sa.Column("digest", sa.Text(), nullable=True),
        sa.Column("fingerprint", sa.Text(), nullable=True),
        sa.Column("committed_at", sa.BigInteger(), nullable=True),
        sa.Column("fingerprint_version", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["route_id"], ["routes.id"], name="cells_route_id_fk"),
        sa.PrimaryKeyConstraint("route_id", "slice", "range_start", name="cells_pk"),
    )
    op.create_index("cells_by_range", "cells", ["route_id", "range_start"], unique=False)
    return made


def _marks() -> sa.Table:
    return op.create_table(
        "marks",
        sa.Column("route_id", sa.Integer(), nullable=False),
        sa.Column("slice", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("range_start", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("rank", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("row_time", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["route_id", "slice", "range_start"],
            ["cells.route_id", "cells.slice", "cells.range_start"],
            name="marks_route_id_slice_range_start_fk",
        ),
        sa.PrimaryKeyConstraint("route_id", "slice", "range_start", "rank", name="marks_pk"),
    )


def _batches() -> sa.Table:
    made = op.create_table(
        "batches",
        sa.Column("route_id", sa.Integer(), nullable=False),
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("slice", sa.Integer(), nullable=False),
        sa.Column("range_start", sa.BigInteger(), nullable=False),
        sa.Column("range_end", sa.BigInteger(), nullable=False),
        sa.Column("snapshot", sa.BigInteger(), nullable=False),
        sa.Column("position_kind", sa.Text(), nullable=False),
        sa.Column("position", sa.Text(), nullable=False),
        sa.Column("rank", sa.BigInteger(), nullable=False),
        sa.Column("upto", sa.BigInteger(), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=True),
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
        sa.Column("rows_moved", sa.BigInteger(), nullable=True),
        sa.Column("rows_flagged", sa.BigInteger(), nullable=True),
        sa.Column("rows_kept", sa.BigInteger(), nullable=True),
        sa.Column("deletes_intended", sa.BigInteger(), nullable=True),
        sa.Column("rows_held", sa.BigInteger(), nullable=True),
        sa.Column("deletes_allowed", sa.Boolean(), nullable=True),
        sa.Column("bytes", sa.BigInteger(), nullable=True),
        sa.Column("seconds", sa.Float(), nullable=True),
        sa.Column("digest", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("refused_until", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "state <> 'applied' OR rows_read = rows_written + rows_unchanged + rows_quarantined",
            name="batches_conservation_ck",
        ),
        sa.ForeignKeyConstraint(["route_id"], ["routes.id"], name="batches_route_id_fk"),
        sa.PrimaryKeyConstraint("route_id", "seq", name="batches_pk"),
    )
    op.create_index(
        "batches_by_cell", "batches", ["route_id", "slice", "range_start", "seq"], unique=False
    )
    op.create_index(
        "batches_one_planned",
        "batches",
        ["route_id", "slice", "range_start"],
        unique=True,
        sqlite_where=sa.text("state = 'planned'"),
        postgresql_where=sa.text("state = 'planned'"),
    )
    op.create_index(
        "batches_that_lost",
        "batches",
        ["route_id", "ended_at"],
        unique=False,
        sqlite_where=sa.text("coalesce(rows_deleted + rows_flagged, deletes_intended) > 0"),
        postgresql_where=sa.text("coalesce(rows_deleted + rows_flagged, deletes_intended) > 0"),
    )
    return made


def _quarantine() -> sa.Table:
    return op.create_table(
        "quarantine",
        sa.Column("route_id", sa.Integer(), nullable=False),
        sa.Column("slice", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("range_start", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("batch", sa.BigInteger(), nullable=False),
        sa.Column("row_id", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["route_id", "slice", "range_start"],
            ["cells.route_id", "cells.slice", "cells.range_start"],
            name="quarantine_route_id_slice_range_start_fk",
        ),
        sa.PrimaryKeyConstraint("route_id", "slice", "range_start", "number", name="quarantine_pk"),
    )


def _proofs() -> sa.Table:
    return op.create_table(
        "proofs",
        sa.Column("route_id", sa.Integer(), nullable=False),
        sa.Column("slice", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("range_start", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("batch", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("deep", sa.Boolean(), nullable=False),
        sa.Column("source_changed", sa.Boolean(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["route_id"], ["routes.id"], name="proofs_route_id_fk"),
        sa.PrimaryKeyConstraint("route_id", "slice", "range_start", name="proofs_pk"),
    )


def _audit() -> sa.Table:
    made = op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("route_id", sa.Integer(), nullable=True),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["route_id"], ["routes.id"], name="audit_route_id_fk"),
        sa.PrimaryKeyConstraint("id", name="audit_pk"),
    )
    op.create_index("audit_by_route", "audit", ["route_id", "id"], unique=False)
    return made
