"""The Harper table of a contract is there, with the indexes that were planned, before any row is.

BqhError
├── TableNotEnsured      tried three times, and it still is not as planned
├── TableConflict        a table of that name is there, and cannot hold these rows
├── NothingToAdopt       no table of that name is there, and it was not to be created
└── IndexNotReady        an index that was added does not find rows that are there

Harper 4.7.29 with two threads answers 200 to two creates of one table, and loses attributes that
two threads add at once, though it answered 200 to both. So nothing is believed that was not seen
afterwards, and whoever may race another gives `alone`, a lock of the ledger's.

An adopted table is declared by somebody else, often by a component: it is never created, and gets
only those attributes without which its rows could not be read back.
"""

import logging
import random
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from bq_harper_assets.errors import BqhError
from bq_harper_assets.schema.table_plan import TablePlan
from bq_harper_assets.stores.harper.answers import Attribute, Creation, TableDescription
from bq_harper_assets.stores.harper.fitting import conflicts, read_back_by, undeclared, unfit
from bq_harper_assets.stores.harper.index_parity import SearchVerbs, still_built, wait_for_indexes

ATTEMPTS = 3
WAIT_S = 0.1  # times the attempt, and up to half of it more

_log = logging.getLogger(__name__)


class TableVerbs(SearchVerbs, Protocol):
    """What it takes of a Harper client."""

    def describe_table(self, table: str) -> TableDescription | None: ...

    def create_table(
        self, table: str, primary_key: str, attributes: Sequence[Attribute]
    ) -> Creation: ...

    def create_attribute(self, table: str, name: str) -> Creation: ...


class TableAction(StrEnum):
    """What had to be done."""

    CREATED = "created"
    UP_TO_DATE = "up_to_date"
    MIGRATED = "migrated"


@dataclass(frozen=True)
class Ensured:
    """What was done, and what the table cannot offer."""

    action: TableAction
    added: tuple[str, ...] = ()  # attributes that got an index now
    unindexed: tuple[str, ...] = ()  # declared without an index earlier: Harper cannot add one
    indexes_all: bool = False  # made by others without attributes: Harper indexes whatever comes


class TableNotEnsured(BqhError):
    """The table is not as planned after all attempts."""

    def __init__(self, table: str, last: str) -> None:
        self.table = table
        super().__init__(
            f"failed to ensure table {table} after {ATTEMPTS} attempts; {last}."
            " No row was written and nothing was dropped; see `bqh doctor`, then run it again"
        )


class TableConflict(BqhError):
    """A table of that name is there, and cannot hold the contract's rows."""

    def __init__(self, table: str, found: Sequence[str], *, adopted: bool = False) -> None:
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
    """The contract says that the table is there, and Harper says that it is not."""

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
    """Create what is missing, never drop; `alone` is entered only if something is to be changed.

    An index that was added, now or by an earlier try, is there for use when this ends.
    """
    found = client.describe_table(plan.table)
    if found is None and adopted:
        raise NothingToAdopt(plan.table)
    if found is not None and not _missing(found, plan, adopted):
        ensured = _ensured(TableAction.UP_TO_DATE, (), found, plan)
    else:
        with alone():
            ensured, found = _change(client, plan, adopted, sleep, chance)
    # Whoever added it may have gone before it was usable, or have added it since the first look.
    by_others = [n for n in _added_before(found, plan, adopted) if n not in ensured.added]
    awaited = (*ensured.added, *still_built(client, plan.table, by_others))
    # Nobody else has to wait for an index that may take minutes.
    wait_for_indexes(client, plan.table, plan.primary_key, awaited, sleep, clock)
    return ensured


def _change(
    client: TableVerbs,
    plan: TablePlan,
    adopted: bool,
    sleep: Callable[[float], None],
    chance: Callable[[], float],
) -> tuple[Ensured, TableDescription]:
    """What was done, and how Harper describes the table since."""
    action, added = TableAction.UP_TO_DATE, dict[str, None]()
    said, last = "", "it was there a moment ago, and is not"
    # One look more than attempts: the last change is looked at too.
    for attempt in range(1, ATTEMPTS + 2):
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
            # Once made it is not made again: another thread of the server has not seen it yet.
            if action is not TableAction.CREATED:
                creation = client.create_table(plan.table, plan.primary_key, _declared(plan))
                action = TableAction.CREATED if creation.is_new else action
                said = creation.said
            last = f"Harper's last answer: create_table {said}, and describe_table finds no table"
        sleep(WAIT_S * attempt * (1 + chance() / 2))
    raise TableNotEnsured(plan.table, last)


def _declared(plan: TablePlan) -> tuple[Attribute, ...]:
    return tuple(
        Attribute(name=each.name, type=each.type, indexed=each.indexed) for each in plan.attributes
    )


def _missing(found: TableDescription, plan: TablePlan, adopted: bool) -> tuple[str, ...]:
    """Names to be indexed that Harper does not know; TableConflict if it cannot take the rows."""
    problems = unfit(found, plan) if adopted else tuple(conflicts(found, plan))
    if problems:
        raise TableConflict(plan.table, problems, adopted=adopted)
    if adopted:
        return undeclared(found, read_back_by(plan))
    # Where a table was made without attributes, Harper indexes whatever comes.
    return undeclared(found, plan.indexed) if found.schema_defined else ()


def _added_before(found: TableDescription, plan: TablePlan, adopted: bool) -> tuple[str, ...]:
    """Indexed names that came after the table was made: create_attribute gives them no type."""
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
    return Ensured(action, added, unindexed, not found.schema_defined)
