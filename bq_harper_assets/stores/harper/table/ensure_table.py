"""Makes sure that a contract's Harper table exists, with the planned indexes, before any row does.

BqhError
├── TableNotEnsured      after three attempts the table still is not as planned
├── TableConflict        a table of that name exists, and it cannot store these rows
├── NothingToAdopt       no table of that name exists, and it was not to be created
└── IndexNotReady        an index that was added does not find rows that exist

Harper 4.7.29 with two threads answers 200 to two creates of one table, and loses attributes that
two threads add at once, though it answered 200 to both. So every change is checked afterwards with
describe_table, and a caller that may race another one gives `alone`, a lock of the ledger.

An adopted table is declared by somebody else, often by a component: it is never created, and gets
only those attributes without which its rows could not be read back.
"""

import logging
import random
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from typing import Protocol

from bq_harper_assets.errors import BqhError
from bq_harper_assets.schema.table_plan import TablePlan
from bq_harper_assets.stores.harper.answers import Attribute, Creation, TableDescription
from bq_harper_assets.stores.harper.schema import attributes_of
from bq_harper_assets.stores.harper.table.fitting import conflicts, read_back_by, undeclared, unfit
from bq_harper_assets.stores.harper.table.index_parity import (
    SearchVerbs,
    still_built,
    wait_for_indexes,
)
from bq_harper_assets.sync.protocols import Ensured, TableAction

ATTEMPTS = 3
WAIT_S = 0.1  # it is multiplied by the attempt, and up to half of that is added

_log = logging.getLogger(__name__)


class TableVerbs(SearchVerbs, Protocol):
    """These are the methods of a Harper client that this module uses."""

    def describe_table(self, table: str) -> TableDescription | None: ...

    def create_table(
        self, table: str, primary_key: str, attributes: Sequence[Attribute]
    ) -> Creation: ...

    def create_attribute(self, table: str, name: str) -> Creation: ...


class TableNotEnsured(BqhError):
    """The table is not as planned after all attempts."""

    def __init__(self, table: str, last: str) -> None:
        self.table = table
        super().__init__(
            f"failed to ensure table {table} after {ATTEMPTS} attempts; {last}."
            " No row was written and nothing was dropped; see `bqh doctor`, then run it again"
        )


class TableConflict(BqhError):
    """A table of that name exists, and it cannot store the contract's rows."""

    def __init__(self, table: str, found: Sequence[str], *, adopted: bool) -> None:
        self.table = table
        lines = "".join(f"\n  - {conflict}" for conflict in found)
        way_out = (
            f"change it where it is declared, then type: bqh adopt {table}"
            if adopted
            else "drop this table yourself if nobody needs it, then run it again"
        )
        super().__init__(
            f"Harper's table {table} cannot hold the rows of this contract:{lines}\n"
            f"Nothing was changed. Name another targetTable, or {way_out}"
        )


class NothingToAdopt(BqhError):
    """The contract says that the table exists, and Harper says that it does not."""

    def __init__(self, table: str) -> None:
        self.table = table
        super().__init__(
            f"Harper has no table {table}, and its contract says manage: adopt, so it is not"
            f" created. Nothing was written. Deploy the component that declares it, then type: bqh"
            f" adopt {table}; or write manage: create, then type: bqh sync {table}"
        )


def ensure_table(
    client: TableVerbs,
    plan: TablePlan,
    *,
    adopted: bool = False,
    alone: Callable[[], AbstractContextManager[object]] = nullcontext,
    sleep: Callable[[float], None] = time.sleep,
    chance: Callable[[], float] = random.random,
    clock: Callable[[], float] = time.monotonic,
) -> Ensured:
    """Creates what is missing and never drops; `alone` is entered only if something has to change.

    When this returns, every index that was added, now or by an earlier try, can be used.
    """
    found = client.describe_table(plan.table)
    if found is None and adopted:
        raise NothingToAdopt(plan.table)
    if found is not None and not _missing(found, plan, adopted):
        ensured = _ensured(TableAction.UP_TO_DATE, (), found, plan)
    else:
        with alone():
            ensured, found = _change(client, plan, adopted, sleep, chance)
    # Another process may have added an index and ended before it was usable, or may have added it
    # since the table was first described.
    by_others = [n for n in _added_before(found, plan, adopted) if n not in ensured.added]
    awaited = (*ensured.added, *still_built(client, plan.table, by_others))
    # This is outside `alone`, so that nobody else waits for an index that may take minutes.
    wait_for_indexes(client, plan.table, plan.primary_key, awaited, sleep, clock)
    return ensured


def _change(
    client: TableVerbs,
    plan: TablePlan,
    adopted: bool,
    sleep: Callable[[float], None],
    chance: Callable[[], float],
) -> tuple[Ensured, TableDescription]:
    """Makes the changes; returns what was done, and how Harper describes the table afterwards."""
    action, added = TableAction.UP_TO_DATE, dict[str, None]()
    said, last = "", "it was there a moment ago, and is not"
    # There is one description more than there are attempts, to check the last change too.
    for attempt in count(1):
        found = client.describe_table(plan.table)
        missing = _missing(found, plan, adopted) if found is not None else ()
        if found is not None and not missing:
            return _ensured(action, tuple(added), found, plan), found
        if attempt > ATTEMPTS:
            break
        if found is not None:
            for name in missing:
                said = client.create_attribute(plan.table, name).said
                added[name] = None
            last = (
                f"Harper's last answer: create_attribute {said}, and describe_table shows no index"
                f" on {', '.join(missing)}"
            )
            if action is TableAction.UP_TO_DATE:
                action = TableAction.MIGRATED
        elif not adopted:
            # A table that was made is not made again: another server thread may not know it yet.
            if action is not TableAction.CREATED:
                creation = client.create_table(plan.table, plan.primary_key, _declared(plan))
                action = TableAction.CREATED if creation.is_new else action
                said = creation.said
            last = f"Harper's last answer: create_table {said}, and describe_table finds no table"
        sleep(WAIT_S * attempt * (1 + chance() / 2))
    raise TableNotEnsured(plan.table, last)


def _declared(plan: TablePlan) -> tuple[Attribute, ...]:
    return tuple(
        Attribute(name=each.name, type=each.type, indexed=each.indexed)
        for each in attributes_of(plan)
    )


def _missing(found: TableDescription, plan: TablePlan, adopted: bool) -> tuple[str, ...]:
    """Lists names to index that Harper does not know; raises TableConflict if rows do not fit."""
    problems = unfit(found, plan) if adopted else tuple(conflicts(found, plan))
    if problems:
        raise TableConflict(plan.table, problems, adopted=adopted)
    if adopted:
        return undeclared(found, read_back_by(plan))
    # Harper indexes every attribute of a table that was made without attributes.
    return undeclared(found, plan.indexed) if found.schema_defined else ()


def _added_before(found: TableDescription, plan: TablePlan, adopted: bool) -> tuple[str, ...]:
    """Lists the indexed names that were added after the table was made.

    They have no type, because create_attribute gives them none.
    """
    wanted = read_back_by(plan) if adopted else plan.indexed
    late = {each.name for each in found.attributes if each.indexed and each.type is None}
    return tuple(name for name in wanted if name in late) if found.schema_defined else ()


def _ensured(
    action: TableAction, added: tuple[str, ...], found: TableDescription, plan: TablePlan
) -> Ensured:
    indexed = {attribute.name for attribute in found.attributes if attribute.indexed}
    seen = found.schema_defined and bool(found.attributes)
    unindexed = tuple(name for name in plan.indexed if name not in indexed) if seen else ()
    for name in unindexed:
        _log.warning(
            "table %s: %s has no index, and Harper adds none to a declared attribute; searches by"
            " it read the whole table",
            plan.table,
            name,
        )
    if not found.schema_defined:
        _log.warning(
            "table %s was made without attributes: Harper indexes every one, which makes writes"
            " dearer, and answers ranges of untyped timestamps wrongly over REST",
            plan.table,
        )
    return Ensured(action, added, unindexed)
