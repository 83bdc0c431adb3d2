"""Declares the ledger's tables as they are now; `migrations/` has the steps that made them."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from bq_harper_assets.ledger.store.columns import AnyText, AxisPoint, Instant

METADATA = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pk",
        "fk": "%(table_name)s_%(column_0_N_name)s_fk",
        "uq": "%(table_name)s_%(column_0_N_name)s_uq",
        "ck": "%(table_name)s_%(constraint_name)s_ck",
    }
)
_CELL = ("route_id", "slice", "range_start")

IDENTITY = Table(
    "ledger_identity",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("uuid", Text, nullable=False),
    Column("release", Text, nullable=False),  # the first release that knows this layout
    CheckConstraint("id = 1", name="one"),
)

LOGICAL_TABLES = Table(
    "logical_tables",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False),
    UniqueConstraint("name"),
)

# A logical table may have several routes; the cells, leases and batches are those of a route.
ROUTES = Table(
    "routes",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("table_id", Integer, ForeignKey("logical_tables.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("timestamp_column", Text, nullable=False),
    Column("key_columns", Text, nullable=False),  # JSON list; empty if the whole row is the key
    Column("cut", Text, nullable=False),
    Column("window_us", BigInteger),  # NULL if the rows are cut by key
    Column("slices", Integer, nullable=False),
    Column("last_batch", BigInteger, nullable=False),
    Column("registered_at", Instant, nullable=False),
    # The newest position that was ever planned, and its rank; see `position.py`.
    Column("position_kind", Text),  # NULL before the first, and when it was to be forgotten
    Column("position", AnyText),
    Column("rank", BigInteger),  # stays when the position was to be forgotten
    UniqueConstraint("name"),
    UniqueConstraint("target"),
    CheckConstraint("(cut = 'time') = (window_us IS NOT NULL)", name="cut"),
)

# The ranges of a route that is cut by key; they are recorded once, before any cell.
KEY_RANGES = Table(
    "key_ranges",
    METADATA,
    Column("route_id", Integer, ForeignKey("routes.id"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("low", AnyText),  # NULL if it has no first key
    Column("high", AnyText),  # NULL if it has no end
)

# Starts are kept by the logical table's name: the first window may be needed before it is recorded.
STARTS = Table(
    "starts",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("start", Instant, nullable=False),
)

SCHEMA_VERSIONS = Table(
    "schema_versions",
    METADATA,
    Column("table_id", Integer, ForeignKey("logical_tables.id"), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("body", AnyText, nullable=False),  # canonical JSON, so that equal schemas are equal text
    Column("recorded_at", Instant, nullable=False),
    Column("recorded_by", Text, nullable=False, server_default=""),
    Column("cause", Text, nullable=False, server_default=""),
    Column("changes", AnyText),  # JSON; NULL if it was recorded before releases kept it
    Column("source_fingerprint", Text),  # NULL likewise
)

LEASES = Table(
    "leases",
    METADATA,
    Column("route_id", Integer, ForeignKey("routes.id"), primary_key=True),
    Column("slice", Integer, primary_key=True, autoincrement=False),
    Column("owner", Text),  # NULL if released, or never taken
    Column("epoch", BigInteger, nullable=False),
    Column("acquired_at", Instant),
    Column("expires_at", Instant),
    # The newest position ever planned in the slice, when its source was pinned, and its rank; they
    # outlive the lease.
    Column("snapshot", Instant),
    Column("position_kind", Text),
    Column("position", AnyText),
    Column("rank", BigInteger),
    Column("schema_version", Integer),  # the newest one, likewise
    # What Harper's copy of the lease is known to say; a copy that says less is of an older Harper.
    Column("mirrored_epoch", BigInteger),
    Column("mirrored_batch", BigInteger),
)

# Claims are like leases, for what concerns no single table.
CLAIMS = Table(
    "claims",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("owner", Text),  # NULL if released, or never taken
    Column("epoch", BigInteger, nullable=False),
    Column("acquired_at", Instant),
    Column("expires_at", Instant),
    Column("note", Text, nullable=False),  # from one owner to the next
)

# The first plan or mark that names a cell makes its row. It is removed only with its slice, after
# every range got cells of the new slices. Copy mode is allowed only where there is no row.
CELLS = Table(
    "cells",
    METADATA,
    Column("route_id", Integer, ForeignKey("routes.id"), primary_key=True),
    Column("slice", Integer, primary_key=True, autoincrement=False),
    Column("range_start", AxisPoint, primary_key=True, autoincrement=False),
    Column("range_end", AxisPoint, nullable=False),
    Column("state", Text, nullable=False),
    # These are what the newest commit recorded, also while a later batch is planned or has failed.
    Column("batch", BigInteger),
    Column("snapshot", Instant),
    Column("rank", BigInteger),  # of its position, which its batch has
    Column("upto", Instant),  # before the range's end if the cell is open
    Column("schema_version", Integer),
    Column("rows", BigInteger),
    Column("digest", Text),
    Column("fingerprint", Text),
    Column("committed_at", Instant),
    Column("fingerprint_version", Integer),  # NULL if it is the commit's schema version
    Index("cells_by_range", "route_id", "range_start"),
)

# Marks make cells dirty. For one position a cell has its greatest row time only: a commit that
# clears this mark would clear those of all earlier rows too, so they would add nothing.
MARKS = Table(
    "marks",
    METADATA,
    Column("route_id", Integer, primary_key=True),
    Column("slice", Integer, primary_key=True, autoincrement=False),
    Column("range_start", AxisPoint, primary_key=True, autoincrement=False),
    Column("rank", BigInteger, primary_key=True, autoincrement=False),
    Column("row_time", Instant, nullable=False),
    Column("reason", AnyText, nullable=False),
    Column("at", Instant, nullable=False),
    ForeignKeyConstraint(_CELL, [f"cells.{name}" for name in _CELL]),
)

# A batch lost rows that it took out, or while that is not known, that it was about to take out.
LOST_ROWS = text("coalesce(rows_deleted + rows_flagged, deletes_intended) > 0")

# Batches are history: their cells may have been removed meanwhile.
BATCHES = Table(
    "batches",
    METADATA,
    Column("route_id", Integer, ForeignKey("routes.id"), primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("slice", Integer, nullable=False),
    Column("range_start", AxisPoint, nullable=False),
    Column("range_end", AxisPoint, nullable=False),
    Column("snapshot", Instant, nullable=False),  # when the source was pinned
    Column("position_kind", Text, nullable=False),
    Column("position", AnyText, nullable=False),
    Column("rank", BigInteger, nullable=False),
    Column("upto", Instant, nullable=False),
    Column("since", Instant),  # where a top-up begins
    Column("schema_version", Integer, nullable=False),
    Column("owner", Text, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("mode", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("planned_at", Instant, nullable=False),
    Column("ended_at", Instant),
    Column("rows_read", BigInteger),
    Column("rows_written", BigInteger),
    Column("rows_unchanged", BigInteger),
    Column("rows_quarantined", BigInteger),
    Column("rows_deleted", BigInteger),
    Column("rows_moved", BigInteger),
    Column("rows_flagged", BigInteger),
    Column("rows_kept", BigInteger),
    Column("deletes_intended", BigInteger),  # rows to be lost, less those gained; NULL if none
    Column("rows_held", BigInteger),  # in the target before, where they were counted
    Column("deletes_allowed", Boolean),  # by a person, so that the guard was not asked
    Column("bytes", BigInteger),
    Column("seconds", Float),
    Column("digest", Text),
    Column("error", AnyText),
    Column("refused_until", Instant),  # NULL if until somebody allows it, or the source changes
    CheckConstraint(
        "state <> 'applied' OR rows_read = rows_written + rows_unchanged + rows_quarantined",
        name="conservation",
    ),
    Index("batches_by_cell", *_CELL, "seq"),
    Index(
        "batches_one_planned",
        *_CELL,
        unique=True,
        sqlite_where=text("state = 'planned'"),
        postgresql_where=text("state = 'planned'"),
    ),
    Index(
        "batches_that_lost",
        "route_id",
        "ended_at",
        sqlite_where=LOST_ROWS,
        postgresql_where=LOST_ROWS,
    ),
)

QUARANTINE = Table(
    "quarantine",
    METADATA,
    Column("route_id", Integer, primary_key=True),
    Column("slice", Integer, primary_key=True, autoincrement=False),
    Column("range_start", AxisPoint, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("batch", BigInteger, nullable=False),
    Column("row_id", AnyText),  # NULL if the row has no id, because its key is NULL
    Column("reason", AnyText, nullable=False),
    Column("payload", AnyText, nullable=False),
    Column("at", Instant, nullable=False),
    ForeignKeyConstraint(_CELL, [f"cells.{name}" for name in _CELL]),
)

# A cell has its newest finding, which counts while the batch is still the cell's newest commit.
PROOFS = Table(
    "proofs",
    METADATA,
    Column("route_id", Integer, ForeignKey("routes.id"), primary_key=True),
    Column("slice", Integer, primary_key=True, autoincrement=False),
    Column("range_start", AxisPoint, primary_key=True, autoincrement=False),
    Column("batch", BigInteger, nullable=False),
    Column("status", Text, nullable=False),
    Column("deep", Boolean, nullable=False),  # whether all values were compared, not stored hashes
    Column("source_changed", Boolean, nullable=False),  # it changed since the commit's snapshot
    Column("at", Instant, nullable=False),
)

AUDIT = Table(
    "audit",
    METADATA,
    # SQLite numbers rows by itself only in a column whose type is called INTEGER.
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("at", Instant, nullable=False),
    Column("kind", Text, nullable=False),
    Column("route_id", Integer, ForeignKey("routes.id")),
    Column("subject", AnyText, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("detail", AnyText, nullable=False),  # JSON
    Index("audit_by_route", "route_id", "id"),
)
