"""The sync has tables of its own in Harper, which show what the ledger knows.

Each is made when something is first written to it, and all of them by a table's first run. The
ledger has all that they show, so one that cannot be made is only a warning. Only SyncLease is
needed, by the tasks of a turn, and it decides nothing but that they stop.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bq_harper_assets.contract.identifiers import (
    SCHEMA_LOCK,
    SCHEMA_METADATA,
    SYNC_AUDIT,
    SYNC_CHECKPOINT,
    SYNC_LEASE,
)
from bq_harper_assets.errors import BqhError
from bq_harper_assets.stores.harper.answers import Attribute
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.errors import HarperNotFound


@dataclass(frozen=True)
class MirrorTable:
    """A mirror table is a Harper table that shows what the ledger knows."""

    name: str
    version: int  # raised by one each time its attributes change
    types: Mapping[str, str]  # by attribute, the primary key first
    indexed: tuple[str, ...] = ()

    def create(self, harper: HarperClient) -> None:
        """Makes the table; it may exist, or others may make it at the same time."""
        declared = [
            Attribute(name=name, type=type_, indexed=name in self.indexed)
            for name, type_ in self.types.items()
        ]
        harper.create_table(self.name, next(iter(self.types)), declared)

    def upsert(self, harper: HarperClient, rows: Sequence[Mapping[str, Any]]) -> None:
        """Writes the rows, and makes the table first if it is missing."""
        try:
            harper.upsert(self.name, rows)
        except HarperNotFound:
            self.create(harper)
            harper.upsert(self.name, rows)


MIRRORED_LEASES = MirrorTable(
    SYNC_LEASE,
    2,
    {
        "id": "String",
        "ledger": "String",
        "owner": "String",
        "epoch": "Long",
        "deadline": "Float",
        "batch": "Long",
    },
)
CHECKPOINTS = MirrorTable(
    SYNC_CHECKPOINT,
    1,
    {
        "id": "String",
        "tableId": "String",
        "nodeId": "String",
        "lastTimestamp": "String",
        "phase": "String",
        "recordsIngested": "Long",
        "lastSyncTime": "String",
        "batchSize": "Long",
        "lagSeconds": "Float",
        "derivedFrom": "String",
    },
    indexed=("tableId", "nodeId"),
)
AUDITS = MirrorTable(
    SYNC_AUDIT,
    1,
    {
        "id": "String",
        "timestamp": "String",
        "nodeId": "String",
        "tableId": "String",
        "partition": "String",
        "check": "String",
        "status": "String",
        "message": "String",
        "checkResults": "String",
    },
    indexed=("timestamp", "tableId", "status"),
)
SCHEMAS = MirrorTable(
    SCHEMA_METADATA,
    2,
    {
        "id": "String",
        "tableId": "String",
        "version": "Long",
        "recordedAt": "String",
        "recordedBy": "String",
        "cause": "String",
        "columns": "Any",
        "changes": "Any",
        "sourceFingerprint": "String",
    },
    indexed=("tableId",),
)
LOCKS = MirrorTable(
    SCHEMA_LOCK,
    1,
    {"lockId": "String", "nodeId": "String", "acquiredAt": "String", "expiresAt": "String"},
    indexed=("expiresAt",),
)
MIRROR_TABLES = (CHECKPOINTS, AUDITS, SCHEMAS, LOCKS, MIRRORED_LEASES)


@dataclass(frozen=True, kw_only=True)
class SystemTable:
    """A system table is one of the mirror tables as a Harper has it."""

    name: str
    version: int  # of the layout that this release writes
    state: Literal["present", "missing", "other layout", "unknown"]
    attributes: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()  # attributes of the layout
    problem: str = ""  # why its state is unknown


def look_at_system_tables(harper: HarperClient) -> tuple[SystemTable, ...]:
    """Returns the state of every mirror table, also of a missing one."""
    return tuple(_look(harper, table) for table in MIRROR_TABLES)


def make_system_tables(harper: HarperClient) -> tuple[str, ...]:
    """Makes the mirror tables that are missing; returns a warning for each that cannot be made."""
    warnings = []
    for table in MIRROR_TABLES:
        try:
            # A role that may not create tables need not, if an administrator has created them.
            if harper.describe_table(table.name) is None:
                table.create(harper)
        except BqhError as error:
            warnings.append(
                f"Harper's table {table.name}, which only shows what the ledger knows, could not"
                f" be made: {error}. Syncs do not need it, and the next copy to it tries again"
            )
    return tuple(warnings)


def _look(harper: HarperClient, table: MirrorTable) -> SystemTable:
    try:
        found = harper.describe_table(table.name)
    except BqhError as error:
        return SystemTable(
            name=table.name, version=table.version, state="unknown", problem=str(error)
        )
    if found is None:
        return SystemTable(name=table.name, version=table.version, state="missing")
    has = tuple(attribute.name for attribute in found.attributes)
    lacking = tuple(name for name in table.types if name not in has)
    state: Literal["present", "other layout"] = "other layout" if lacking else "present"
    return SystemTable(
        name=table.name, version=table.version, state=state, attributes=has, lacking=lacking
    )
