"""The YAML shapes that are accepted, turned into one: connection, sync defaults, a list of tables.

list form        bigquery: { projectId, ..., tables: [...] }
fragment         tables: [...]               beside bigquery: or in a file of its own
connection only  bigquery: { maxRetries }
single table     bigquery: { projectId, dataset, table, timestampColumn }

All files of config/ are read as if they were one.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from bq_harper_assets.contract.loading.block_check import checked
from bq_harper_assets.contract.loading.located import Located
from bq_harper_assets.contract.loading.problems import Problem
from bq_harper_assets.contract.loading.spelling import (
    canonical_key,
    keys_of,
    unknown_key,
    with_canonical_keys,
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
    """What all files say together."""

    connection: dict[str, Located] = field(default_factory=dict)  # by the profile's keys
    sync: dict[str, Located] = field(default_factory=dict)
    lists: list[Located] = field(default_factory=list)  # each tables: key, also an empty one
    listed: list[Located] = field(default_factory=list)
    single: list[Located] = field(default_factory=list)

    @property
    def tables(self) -> list[Located]:
        return [*self.listed, *self.single]


def declarations(files: Iterable[Located], problems: list[Problem]) -> Declarations:
    """All files merged, each table with canonical keys and the shared sync defaults put in."""
    found = Declarations()
    for file in files:
        for written, entry in file.mapping.items():
            key = canonical_key(written, _TOP_KEYS)
            if key is None:
                elsewhere = dict.fromkeys(("harper", "spark", "ledger"), _IN_PROFILE)
                elsewhere |= dict.fromkeys(
                    (*CONNECTION_KEYS, *_TABLE_KEYS), "write it under bigquery:"
                )
                problems.append(unknown_key(entry, written, file, _TOP_KEYS, "", elsewhere))
            elif key == "bigquery":
                _read_bigquery(entry, found, problems)
            elif key == "tables":
                _read_tables(entry, found, problems)
            else:
                _read_sync(entry, found, problems)
    if found.lists and found.single:
        other = found.lists[0].place
        problems.extend(
            block.key_problem(
                "describes a single table (dataset, table, ... right under bigquery:) "
                f"beside the list of tables in {other}: move it into the list as one more table"
            )
            for block in found.single
        )
    found.listed = [_with_defaults(table, found.sync, problems) for table in found.listed]
    found.single = [_with_defaults(table, found.sync, problems) for table in found.single]
    return found


def about(table: Located) -> str:
    """The table's name in problems."""
    entry = table.mapping.get("id")
    return f"table {entry.shown()}" if entry and isinstance(entry.value, str) else ""


def _read_bigquery(block: Located, found: Declarations, problems: list[Problem]) -> None:
    if block.value is None:
        return
    if not isinstance(block.value, dict):
        problems.append(block.problem("must be a block of keys, such as projectId and tables"))
        return
    single: dict[str, Located] = {}
    known = (*CONNECTION_KEYS, "tables", "sync", *_TABLE_KEYS)
    for written, entry in block.mapping.items():
        key = canonical_key(written, known)
        if key is None:
            elsewhere = dict.fromkeys(keys_of(Sync), "write it under sync:")
            elsewhere |= dict.fromkeys(("endpoint", "storageEndpoint"), _IN_PROFILE)
            problems.append(unknown_key(entry, written, block, known, "", elsewhere))
        elif key in CONNECTION_KEYS:
            _set_once(found.connection, CONNECTION_KEYS[key], entry, problems)
        elif key == "tables":
            _read_tables(entry, found, problems)
        elif key == "sync":
            _read_sync(entry, found, problems)
        elif entry.value is not None or entry.broken:
            single[written] = entry
    if single:
        for key, default in (("id", SINGLE_TABLE_ID), ("targetTable", SINGLE_TABLE_TARGET)):
            if not any(canonical_key(written, (key,)) for written in single):
                single[key] = Located(block.place.below(key), default, default)
        found.single.append(block.with_keys(single))


def _read_tables(entry: Located, found: Declarations, problems: list[Problem]) -> None:
    if entry.value is None:
        return
    found.lists.append(entry)
    if not isinstance(entry.value, tuple):
        problems.append(
            entry.problem("must be a list: each table begins with a dash, as in - id: orders")
        )
        return
    for table in entry.value:
        if isinstance(table.value, dict):
            found.listed.append(table)
        elif not table.broken:
            problems.append(
                table.problem("must be a table with keys such as id, dataset and table")
            )


def _read_sync(entry: Located, found: Declarations, problems: list[Problem]) -> None:
    told = len(problems)
    block = with_canonical_keys(entry, Sync, problems)
    # Judged once here and not again in every table.
    if block.value is not None and checked(block, Sync, problems) and len(problems) == told:
        for key, value in block.mapping.items():
            _set_once(found.sync, key, value, problems)


def _set_once(into: dict[str, Located], key: str, entry: Located, problems: list[Problem]) -> None:
    if entry.value is None and not entry.broken:
        return
    first = into.setdefault(key, entry)
    if first.plain() != entry.plain():
        problems.append(
            entry.problem(
                f"is set to {first.shown()} in {first.place}: "
                "all files are read as one, keep one of them"
            )
        )


def _with_defaults(
    table: Located, defaults: dict[str, Located], problems: list[Problem]
) -> Located:
    table = with_canonical_keys(table, TableContract, problems, about(table))
    own = table.mapping.get("sync")
    if not defaults or (own is not None and not isinstance(own.value, dict)):
        return table
    base = own or Located(table.place.below("sync"), {})
    return table.with_keys({**table.mapping, "sync": base.with_keys(defaults | base.mapping)})
