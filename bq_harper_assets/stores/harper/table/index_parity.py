"""Waits until Harper searches by an index, and finds rows by it that the primary key shows.

This was measured with Harper 4.7.29: create_attribute answers, and describe_table calls the
attribute indexed, while the index is still being built. A search by it is then answered 503 "is not
indexed yet", or 400 "unknown attribute" by a thread that does not know the attribute yet.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from bq_harper_assets.errors import TransientError
from bq_harper_assets.retries.waiting import WAITS, clock_text
from bq_harper_assets.stores.harper.conditions import Condition
from bq_harper_assets.stores.harper.errors import HarperIndexing, HarperRefused
from bq_harper_assets.stores.harper.index_keys import is_lost

SAMPLE = 10  # rows from each end of the primary key, because Harper builds in its order
MOST_ALIKE = 50_000  # at most so many rows of one value are read to find the sampled ones
NOBODYS = "bqh: a value that no row has"
PATIENCE_S = 900.0
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.2, 30.0  # the wait doubles
TOLD_FROM_S = 1.0  # shorter waits are not worth a line

_log = logging.getLogger(__name__)


class SearchVerbs(Protocol):
    """These are the methods of a Harper client that this module uses."""

    def search_by_value(
        self, table: str, attribute: str, value: Any, *, limit: int, reverse: bool
    ) -> list[dict[str, Any]]: ...

    def search_by_conditions(
        self,
        table: str,
        conditions: Sequence[Condition],
        attributes: Sequence[str],
        *,
        limit: int,
    ) -> list[dict[str, Any]]: ...


class IndexNotReady(TransientError):
    """Existing rows are not found by an index that Harper says it has."""

    def __init__(self, table: str, name: str, waited_s: float) -> None:
        super().__init__(table, name, waited_s)
        self.table, self.name, self.waited_s = table, name, waited_s

    def __str__(self) -> str:
        return (
            f"the index on {self.name} of Harper's table {self.table} was not ready after"
            f" {self.waited_s:.0f} s: rows that are there are not found by it. No row was written"
            " and nothing was dropped; Harper goes on building it. Next: run the same command again"
            " later; if it never ends, restart Harper, then: bqh doctor"
        )


def wait_for_indexes(
    client: SearchVerbs,
    table: str,
    primary_key: str,
    names: Sequence[str],
    sleep: Callable[[float], None],
    clock: Callable[[], float],
) -> None:
    """Waits for the indexes; raises IndexNotReady if one cannot be used in time."""
    for name in names:
        what = f"Harper to build the index on {name} of table {table!r}"
        with WAITS.waiting(what, f"gives up at {clock_text(PATIENCE_S)}"):
            _wait_for_index(client, table, primary_key, name, sleep, clock)


def _wait_for_index(
    client: SearchVerbs,
    table: str,
    primary_key: str,
    name: str,
    sleep: Callable[[float], None],
    clock: Callable[[], float],
) -> None:
    began, wait = clock(), _FIRST_WAIT_S
    look = partial(_finds_its_rows, client, table, primary_key, name)
    while not _is_usable(look):
        waited = clock() - began
        if waited >= PATIENCE_S:
            raise IndexNotReady(table, name, waited)
        if wait >= TOLD_FROM_S:
            _log.warning(
                "table %s: Harper builds the index on %s; waited %.0f s so far, at most %.0f",
                table,
                name,
                waited,
                PATIENCE_S,
            )
        sleep(wait)
        wait = min(2 * wait, _LONGEST_WAIT_S)


def still_built(client: SearchVerbs, table: str, names: Sequence[str]) -> tuple[str, ...]:
    """Lists the names by which Harper does not search yet; it tries one small search for each."""
    return tuple(name for name in names if not _is_usable(partial(_answers, client, table, name)))


def _is_usable(look: Callable[[], bool]) -> bool:
    try:
        return look()
    except HarperIndexing:
        return False
    except HarperRefused as error:
        if "unknown attribute" not in error.said:
            raise
        return False


def _answers(client: SearchVerbs, table: str, name: str) -> bool:
    client.search_by_conditions(table, [Condition(name, "equals", NOBODYS)], (name,), limit=1)
    return True


def _finds_its_rows(client: SearchVerbs, table: str, primary_key: str, name: str) -> bool:
    sampled: dict[tuple[type, Any], set[Any]] = {}
    for reverse in (False, True):
        for row in client.search_by_value(table, primary_key, "*", limit=SAMPLE, reverse=reverse):
            value = row.get(name)
            if isinstance(value, str) and is_lost(value):  # no index ever finds it
                continue
            if isinstance(value, str | int | float):  # an array is indexed by what is in it
                sampled.setdefault((type(value), value), set()).add(row[primary_key])
    if not sampled:  # a new column has no values, and a search by it may still be refused
        return _answers(client, table, name)
    for (_, value), ids in sampled.items():
        equal = Condition(name, "equals", value)
        found = client.search_by_conditions(table, [equal], (primary_key,), limit=MOST_ALIKE)
        if len(found) < MOST_ALIKE and not ids <= {row[primary_key] for row in found}:
            return False
    return True
