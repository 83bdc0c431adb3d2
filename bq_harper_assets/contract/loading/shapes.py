"""Several YAML shapes are accepted and become one: connection, sync defaults, a list of tables.

list form        bigquery: { projectId, ..., tables: [...] }
fragment         tables: [...]               beside bigquery: or in a file of its own
connection only  bigquery: { maxRetries }
single table     bigquery: { projectId, dataset, table, timestampColumn }

All files of config/ are read as if they were one.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from bq_harper_assets.contract.loading.block_check import checked
from bq_harper_assets.contract.loading.config_entry import ConfigEntry, NoValue
from bq_harper_assets.contract.loading.problems import Problem
from bq_harper_assets.contract.loading.spelling import (
    canonical_key,
    keys_of,
    unknown_key,
)
from bq_harper_assets.contract.table import Sync, TableContract

SINGLE_TABLE_ID = "default"
SINGLE_TABLE_TARGET = "BigQueryData"
# key of the files -> key of the profile
CONNECTION_KEYS = {
    "projectId": "project",
    "credentials": "credentials",
    "location": "location",
    "maxRetries": "maxRetries",
    "initialRetryDelay": "initialRetryDelay",
    "maxBytesBilled": "maxBytesBilled",
    "resultsDataset": "resultsDataset",
}
_TOP_KEYS = ("bigquery", "tables", "sync")
_IN_PROFILE = "write it in config/profiles/<name>.yaml"
_TABLE_KEYS = tuple(key for key in keys_of(TableContract) if key != "sync")


@dataclass(kw_only=True)
class Declarations:
    """This holds what all files declare together."""

    connection: dict[str, ConfigEntry] = field(default_factory=dict)  # by the profile's keys
    sync: dict[str, ConfigEntry] = field(default_factory=dict)
    lists: list[ConfigEntry] = field(default_factory=list)  # each tables: key, also an empty one
    listed: list[ConfigEntry] = field(default_factory=list)
    single: list[ConfigEntry] = field(default_factory=list)

    @property
    def tables(self) -> list[ConfigEntry]:
        return [*self.listed, *self.single]


def declarations(files: Iterable[ConfigEntry], problems: list[Problem]) -> Declarations:
    """Merges all files, and puts the shared sync defaults into each table."""
    found = Declarations()
    for file in files:
        for written, entry in file.items():
            key = canonical_key(written, _TOP_KEYS)
            if key is None:
                elsewhere = dict.fromkeys(("harper", "spark", "ledger"), _IN_PROFILE)
                elsewhere |= dict.fromkeys(
                    (*CONNECTION_KEYS, *_TABLE_KEYS), "write it under bigquery:"
                )
                message = unknown_key(written, file.value, _TOP_KEYS, elsewhere)
                problems.append(entry.key_problem(message))
            elif key == "bigquery":
                _read_bigquery(entry, found, problems)
            elif key == "tables":
                _read_tables(entry, found, problems)
            else:
                _read_sync(entry, found, problems)
    if found.lists and found.single:
        other = found.lists[0].where
        problems.extend(
            block.key_problem(
                "describes a single table (dataset, table, ... right under bigquery:) "
                f"beside the list of tables in {other}: move it into the list as one more table"
            )
            for block in found.single
        )
    found.listed = [_with_defaults(table, found.sync) for table in found.listed]
    found.single = [_with_defaults(table, found.sync) for table in found.single]
    return found


def about(table: ConfigEntry) -> str:
    """Names the table as problems do."""
    entry = table.get("id")
    return f"table {entry.shown()}" if entry and isinstance(entry.value, str) else ""


def _read_bigquery(block: ConfigEntry, found: Declarations, problems: list[Problem]) -> None:
    if block.value is None or block.value is NoValue.BROKEN:
        return
    if not isinstance(block.value, dict):
        problems.append(block.problem("must be a block of keys, such as projectId and tables"))
        return
    single: dict[str, ConfigEntry] = {}
    known = (*CONNECTION_KEYS, "tables", "sync", *_TABLE_KEYS)
    for written, entry in block.items():
        key = canonical_key(written, known)
        if key is None:
            elsewhere = dict.fromkeys(keys_of(Sync), "write it under sync:")
            elsewhere |= dict.fromkeys(("endpoint", "storageEndpoint"), _IN_PROFILE)
            message = unknown_key(written, block.value, known, elsewhere)
            problems.append(entry.key_problem(message))
        elif key in CONNECTION_KEYS:
            _set_once(found.connection, CONNECTION_KEYS[key], entry, problems)
        elif key == "tables":
            _read_tables(entry, found, problems)
        elif key == "sync":
            _read_sync(entry, found, problems)
        elif entry.value is not None:
            single[written] = entry
    if single:
        for key, default in (("id", SINGLE_TABLE_ID), ("targetTable", SINGLE_TABLE_TARGET)):
            if not any(canonical_key(written, (key,)) for written in single):
                single[key] = replace(block.below(key), value=default)
        found.single.append(block.with_items(single))


def _read_tables(entry: ConfigEntry, found: Declarations, problems: list[Problem]) -> None:
    if entry.value is None:
        return
    found.lists.append(entry)
    if entry.value is NoValue.BROKEN:
        return
    if not isinstance(entry.value, list):
        problems.append(
            entry.problem("must be a list: each table begins with a dash, as in - id: orders")
        )
        return
    for table in (entry.below(at) for at in range(len(entry.value))):
        if isinstance(table.value, dict):
            found.listed.append(table)
        elif table.value is not NoValue.BROKEN:
            problems.append(
                table.problem("must be a table with keys such as id, dataset and table")
            )


def _read_sync(entry: ConfigEntry, found: Declarations, problems: list[Problem]) -> None:
    told = len(problems)
    # Judged once here and not again in every table.
    if entry.value is not None and checked(entry, Sync, problems) and len(problems) == told:
        for written, value in entry.items():
            if key := canonical_key(written, keys_of(Sync)):
                _set_once(found.sync, key, value, problems)


def _set_once(
    into: dict[str, ConfigEntry], key: str, entry: ConfigEntry, problems: list[Problem]
) -> None:
    if entry.value is None:
        return
    first = into.setdefault(key, entry)
    if first.value != entry.value:
        problems.append(
            entry.problem(
                f"is set to {first.shown()} in {first.where}: "
                "all files are read as one, keep one of them"
            )
        )


def _with_defaults(table: ConfigEntry, defaults: dict[str, ConfigEntry]) -> ConfigEntry:
    own = table.below("sync")
    if not defaults or not isinstance(own.value, dict | None | NoValue):
        return table
    left_out = {key: entry for key, entry in defaults.items() if own.get(key) is None}
    written = {key: entry for key, entry in own.items() if entry.value is not None}
    return table.with_items({**dict(table.items()), "sync": own.with_items(left_out | written)})
