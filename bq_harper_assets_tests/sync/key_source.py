"""A source that is read by key range, for the tests: the emulator's tables, filtered by their key.

It stands for sources whose rows have no time to cut by. What a source is asked about moved rows it
cannot answer: where rows do not move, the engine must not ask.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Never

from bq_harper_assets.contract.identifiers import quoted
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.instants import EPOCH, micros_at
from bq_harper_assets.ledger.position import Position
from bq_harper_assets.schema.logical import TableSchema
from bq_harper_assets.schema.table_plan import TablePlan
from bq_harper_assets.schema.version import TableVersion
from bq_harper_assets.stores.bigquery.fingerprint import fingerprints
from bq_harper_assets.stores.bigquery.source import BigQuerySource, Pinned, StreamSplit
from bq_harper_assets.sync.cells.key_range import KeyCut
from bq_harper_assets.sync.protocols import Fingerprint

LONG = timedelta(days=36_500)  # all times of the tests are in the first window of this length
EVER = (micros_at(EPOCH), micros_at(EPOCH + LONG))


class AskedOfMovedRows(Exception):
    """The engine has asked where rows are now that never move."""


@dataclass(frozen=True)
class PinnedByKey:
    """The rows of one instant, by the numbers of their key ranges."""

    pin: Pinned
    cut: KeyCut

    @property
    def t(self) -> datetime:
        return self.pin.t

    @property
    def position(self) -> Position:
        return self.pin.position

    @property
    def plan(self) -> TablePlan:
        return self.pin.plan

    @property
    def has_past(self) -> bool:
        return self.pin.has_past

    @property
    def bytes_read(self) -> int:
        return self.pin.bytes_read

    def keeps(self, t: datetime) -> bool:
        return self.pin.keeps(t)

    def at(self, t: datetime, then: TableVersion) -> "PinnedByKey":
        return replace(self, pin=self.pin.at(t, then))

    def restricted(self, paths: Collection[str]) -> "PinnedByKey":
        return replace(self, pin=self.pin.restricted(paths))

    def fingerprints(self, begin: int, end: int) -> Mapping[int, Fingerprint]:
        found = {}
        for number in range(begin, end):
            some = self._of(number, number + 1)
            [found[number]] = fingerprints(
                some.queries, some.source, EPOCH, EPOCH + LONG, LONG
            ).values()
        return found

    def are_unchanged(self, spans: Sequence[tuple[int, int, datetime]]) -> list[bool]:
        return [False] * len(spans)

    def splits(self, begin: int, end: int, most: int) -> list[StreamSplit]:
        return self._of(begin, end).splits(*EVER, most)

    def require_unique_key(self) -> None:
        self.pin.require_unique_key()

    def splits_at(self, *args: Any) -> Never:
        raise AskedOfMovedRows

    def times_of_keys(self, *args: Any) -> Never:
        raise AskedOfMovedRows

    def times_of_keys_now(self, *args: Any) -> Never:
        raise AskedOfMovedRows

    def asked_again(self, *args: Any) -> Never:
        raise AskedOfMovedRows

    def _of(self, begin: int, end: int) -> Pinned:
        """The rows of these ranges only."""
        key = quoted(self.plan.selection.key[0])
        low, high = self.cut.range_at(begin).low, self.cut.range_at(end - 1).high
        bounds = [f"{key} >= {low}"] if low else []
        if high:
            bounds.append(f"{key} < {high}" if low else f"({key} < {high} OR {key} IS NULL)")
        source = replace(self.pin.source, row_filter=" AND ".join(bounds) or None)
        return replace(self.pin, source=source)


@dataclass(frozen=True)
class BigQueryByKey:
    """The emulator, open for reading by key range."""

    source: BigQuerySource
    cut: KeyCut

    @property
    def bytes_billed(self) -> int:
        return self.source.bytes_billed

    @property
    def calls_sent(self) -> int:
        return self.source.calls_sent

    def schema(self, contract: TableContract) -> TableSchema:
        return self.source.schema(contract)

    @contextmanager
    def pinned(
        self, contract: TableContract, begin: int, end: int, before: TableVersion | None = None
    ) -> Iterator[PinnedByKey]:
        with self.source.pinned(contract, *EVER, before) as pin:
            yield PinnedByKey(pin, self.cut)
