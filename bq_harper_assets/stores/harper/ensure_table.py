"""The Harper table of a contract is there, with the indexes that were planned, before any row is.

BqhError
├── TableNotEnsured      tried three times, and it still is not as planned
└── TableConflict        a table of that name is there, and cannot hold these rows

Harper 4.7.29 with two threads answers 200 to two creates of one table, and loses attributes that
two threads add at once, though it answered 200 to both. So nothing is believed that was not seen
afterwards, and whoever may race another gives `alone`, a lock of the ledger's.
"""

import logging
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from bq_harper_assets.errors import BqhError
from bq_harper_assets.schema.table_plan import TablePlan
from bq_harper_assets.stores.harper.answers import Attribute, TableDescription

ATTEMPTS = 3
WAIT_S = 0.1  # times the attempt, and up to half of it more
# Types that take all values of the planned one.
_WIDER = {"Long": ("Float", "BigInt"), "String": ("ID",)}

_log = logging.getLogger(__name__)


class TableVerbs(Protocol):
    """What it takes of a Harper client."""

    def describe_table(self, table: str) -> TableDescription | None: ...

    def create_table(
        self, table: str, primary_key: str, attributes: Sequence[Attribute]
    ) -> bool: ...

    def create_attribute(self, table: str, name: str) -> bool: ...


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
            f"failed to ensure table {table} after {ATTEMPTS} attempts; the last answer: {last}."
            " No row was written and nothing was dropped; see `bqh doctor`, then run it again"
        )


class TableConflict(BqhError):
    """A table of that name is there, and cannot hold the contract's rows."""

    def __init__(self, table: str, conflicts: Sequence[str]) -> None:
        self.table = table
        lines = "".join(f"\n  - {conflict}" for conflict in conflicts)
        super().__init__(
            f"Harper's table {table} cannot hold the rows of this contract:{lines}\n"
            "Nothing was changed. Name another targetTable, or drop this table yourself if nobody"
            " needs it, then run it again"
        )


def ensure_table(
    client: TableVerbs,
    plan: TablePlan,
    *,
    alone: Callable[[], AbstractContextManager[object]] = nullcontext,
    sleep: Callable[[float], None] = time.sleep,
    chance: Callable[[], float] = random.random,
) -> Ensured:
    """Create what is missing, never drop; `alone` is entered only if something is to be changed."""
    found = client.describe_table(plan.table)
    if found is not None and not _missing(found, plan):
        return _ensured(TableAction.UP_TO_DATE, (), found, plan)
    with alone():
        return _change(client, plan, sleep, chance)


def _change(
    client: TableVerbs,
    plan: TablePlan,
    sleep: Callable[[float], None],
    chance: Callable[[], float],
) -> Ensured:
    action, added = TableAction.UP_TO_DATE, dict[str, None]()
    last = ""
    # One look more than attempts: the last change is looked at too.
    for attempt in range(1, ATTEMPTS + 2):
        found = client.describe_table(plan.table)
        missing = _missing(found, plan) if found is not None else ()
        if found is not None and not missing:
            return _ensured(action, tuple(added), found, plan)
        if attempt > ATTEMPTS:
            last = f"without an index on {', '.join(missing)}" if found is not None else last
            break
        if found is not None:
            for name in missing:
                client.create_attribute(plan.table, name)
                added[name] = None
            if action is TableAction.UP_TO_DATE:
                action = TableAction.MIGRATED
        elif action is TableAction.CREATED:
            last = "created, and not seen by another thread of the server"
        elif client.create_table(plan.table, plan.primary_key, _declared(plan)):
            action = TableAction.CREATED
            last = "created, and not seen since"
        else:
            last = "it already exists, and it does not exist"
        sleep(WAIT_S * attempt * (1 + chance() / 2))
    raise TableNotEnsured(plan.table, last)


def _declared(plan: TablePlan) -> tuple[Attribute, ...]:
    return tuple(Attribute(each.name, each.type, each.indexed) for each in plan.attributes)


def _missing(found: TableDescription, plan: TablePlan) -> tuple[str, ...]:
    """Names to be indexed that Harper does not know; TableConflict if it cannot take the rows."""
    if conflicts := tuple(_conflicts(found, plan)):
        raise TableConflict(plan.table, conflicts)
    # A role that may not see attributes shows none; nor does one index where all is indexed.
    if not found.attributes or not found.schema_defined:
        return ()
    known = {attribute.name for attribute in found.attributes}
    return tuple(name for name in plan.indexed if name not in known)


def _conflicts(found: TableDescription, plan: TablePlan) -> Iterator[str]:
    if found.primary_key != plan.primary_key:
        yield f"its primary key is {found.primary_key}, and the rows' is {plan.primary_key}"
    types = {attribute.name: attribute.type for attribute in found.attributes}
    for planned in plan.attributes:
        there = types.get(planned.name)
        if there in (None, "Any", planned.type, *_WIDER.get(planned.type, ())):
            continue
        if planned.type != "Any":
            yield f"{planned.name} is {there} there, and the rows hold {planned.type}"
        else:
            yield f"{planned.name} is {there} there, and the rows hold arrays or objects"


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
