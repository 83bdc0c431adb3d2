"""Compares the target with what plain Python expects of it: after every write, at every commit.

It computes nothing with the code it watches, but a row's slice. What it calls gone are rows that
the target still has though the source has lost them: kept, or marked as deleted.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from bq_harper_assets.contract.identifiers import DELETED_AT, HASH
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.questions.status import CellRecord
from bq_harper_assets.ledger.records import Batch, CellKey, CellResult, Intent, LedgerRoute, Mode
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets_tests.history.placing import Placing
from bq_harper_assets_tests.history.source import Content, Contents, Row, Source

LAG = timedelta(seconds=20)
MOST_DELETES = 2  # that the guard lets pass
_LONG = timedelta(days=30)  # before and after every window

Records = dict[Any, dict[str, Any]]  # by id


class Violation(AssertionError):
    """The target, the quarantine or the ledger is not what it must be."""


@dataclass(kw_only=True)
class Watch:
    """Sees everything, says what must not be, and stops nobody: see `raise_violations`."""

    source: Source
    contract: TableContract
    ledger: Ledger
    harper: HarperClient
    start: datetime  # of the first window
    counts: Counter[str] = field(default_factory=Counter)
    trace: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    _held: Records = field(default_factory=dict)  # as of the last write
    _newest: dict[Any, datetime] = field(default_factory=dict)  # T of the last write, by id
    _gone: dict[CellKey, Contents] = field(default_factory=dict)  # as of the last commit
    _losses: dict[int, int] = field(default_factory=dict)  # rows, by batch: taken out, or to be

    def __post_init__(self) -> None:
        self._placing = Placing(self.is_keyed, self.contract.slices)

    @property
    def is_keyed(self) -> bool:
        """Whether rows have a key."""
        return self.contract.key is not None

    @property
    def table(self) -> LedgerRoute | None:
        """As the ledger has it; None before the first run."""
        return self.ledger.find_route(self.contract.id)

    def records(self) -> Sequence[CellRecord]:
        """All cells of the ledger."""
        if (table := self.table) is None:
            return ()
        return self.ledger.cells(table, self.start - _LONG, self.start + _LONG)

    def held(self) -> Records:
        """All that Harper holds, by id."""
        target = self.contract.target.table
        if self.table is None or self.harper.describe_table(target) is None:
            return {}
        flag = (DELETED_AT,) if self.contract.deletes == "flag" else ()
        rows = self.harper.search_by_value(target, "id", "*", ("id", "ts", "v", "c", HASH, *flag))
        return {row["id"]: row for row in rows}

    def wanted(self, cell: CellKey, t: datetime, upto: datetime) -> tuple[Contents, Contents]:
        """The rows of a cell at T: those Harper can hold, and the others."""
        good, bad = Counter[Content](), Counter[Content]()
        for row in self.source.at(t).values():
            is_in = row.ts is not None and cell.window_start <= row.ts < upto
            if is_in and self._placing.of_row(row) == cell.slice:
                (bad if row.is_bad else good)[row.content(self.is_keyed)] += 1
        return good, bad

    def found(self, cell: CellKey, upto: datetime, *, flagged: bool = False) -> Contents:
        """What Harper held of it after the last write."""
        low, high = (f"{moment:%Y-%m-%dT%H:%M:%S.%fZ}" for moment in (cell.window_start, upto))
        return Counter(
            self._content(row)
            for row_id, row in self._held.items()
            if row["ts"] is not None and low <= row["ts"] < high
            if self._placing.of_id(row_id) == cell.slice and _is_flagged(row) == flagged
        )

    def gone(self, cell: CellKey, upto: datetime, good: Contents) -> Contents:
        """Rows of a cell that Harper held besides, as the table's policy wants it."""
        if self.contract.deletes == "flag":
            return self.found(cell, upto, flagged=True)
        if self.contract.deletes == "keep":
            return self.found(cell, upto) - good
        return Counter()

    def after_write(self, who: str, t: datetime) -> None:
        """An older T never ends over a newer one, and no row is absent that lives on."""
        before, self._held = self._held, self.held()
        for row_id in {*before, *self._held}:
            old, new = before.get(row_id), self._held.get(row_id)
            if old == new:
                continue
            newest = self._newest.get(row_id, t)
            if t < newest and _state(old) != _state(new):
                self.violate(f"{who} wrote {row_id} of {t} over {newest}")
            self._newest[row_id] = max(t, newest)
            if new is not None and new[HASH] is None:
                self.violate(f"{who} made {row_id}, which says nothing")
            if old is not None and new is None:
                self._after_delete(who, row_id, t)
            if old is not None and not _is_flagged(old) and (new is None or _is_flagged(new)):
                self._after_loss(who, row_id, old, t)
            if old is not None and new is not None and _is_flagged(old) != _is_flagged(new):
                self.counts["row flagged" if _is_flagged(new) else "row not flagged any more"] += 1
        self.check_clean_cells()

    def _after_delete(self, who: str, row_id: Any, t: datetime) -> None:
        """Where rows are kept or flagged, only one that cannot be stored any more is deleted."""
        bad = {row.n for row in self._alive(t) if row.is_bad} if self.is_keyed else set()
        if self.contract.deletes != "mirror" and row_id not in bad:
            self.violate(f"{who} deleted {row_id}, though deletes is {self.contract.deletes}")

    def _after_loss(self, who: str, row_id: Any, old: dict[str, Any], t: datetime) -> None:
        alive = [row for row in self._alive(t) if not row.is_bad and row.ts != t]
        if self.is_keyed:
            if row_id in {row.n for row in alive}:
                self.violate(f"{who} took {row_id} out, which was alive at {t}")
            return
        content = self._content(old)
        held = [row for row in self._held.values() if not _is_flagged(row)]
        left = sum(self._content(row) == content for row in held)
        if left < (all_ := sum(row.content(False) == content for row in alive)):
            self.violate(f"{who} left {left} of {all_} rows {content}")

    def check_clean_cells(self) -> None:
        """A clean cell holds exactly what it held at its commit."""
        for record in self.records():
            if record.commit is None or not record.is_clean:
                continue
            cell, upto = record.cell, record.commit.upto
            good, _ = self.wanted(cell, record.commit.t, upto)
            gone = self.gone(cell, upto, good)
            if wrong := self._difference(good, gone, cell, upto):
                self.violate(f"the clean cell {cell} changed: {wrong}")
            elif gone != (before := self._gone.get(cell, Counter())):
                wrong = _difference(before, gone)
                self.violate(f"what is gone from the clean cell {cell} changed: {wrong}")

    def after_commit(self, who: str, done: Sequence[tuple[Batch, CellResult]]) -> None:
        """Cells equal the source at T, and their quarantine is the rows that cannot be stored."""
        table = self.table
        assert table is not None
        for batch, result in done:
            self._losses[batch.seq] = result.deleted + result.flagged
            good, bad = self.wanted(batch.cell, batch.t, batch.upto)
            gone = self.gone(batch.cell, batch.upto, good)
            if wrong := self._difference(good, gone, batch.cell, batch.upto):
                self.violate(f"{who} committed {batch.cell}: {wrong}")
            if wrong := self._wrongly_gone(batch, gone):
                self.violate(f"{who} committed {batch.cell}: {dict(wrong)} are not gone")
            self._gone[batch.cell] = gone
            self.counts["row kept"] += gone.total() if self.contract.deletes == "keep" else 0
            kept = self.ledger.quarantined(table, batch.cell)
            ids = Counter(row.rejection.row_id for row in kept)
            wanted = Counter(str(content[0]) for content in bad) if self.is_keyed else ids
            if len(kept) != bad.total() or ids != wanted:
                self.violate(f"quarantine of {batch.cell} has {dict(ids)}, wanted {dict(bad)}")

    def _wrongly_gone(self, batch: Batch, gone: Contents) -> Contents:
        """A cell that is written for the first time holds no such row; a top-up adds none."""
        if batch.mode is Mode.TOPUP:
            return gone - self._gone.get(batch.cell, Counter())
        if batch.mode is not Mode.RECONCILE:
            return gone
        if self.contract.deletes == "keep" and self.is_keyed:
            alive = {row.n for row in self._alive(batch.t) if row.ts != batch.t}
            return Counter({told: n for told, n in gone.items() if told[0] in alive})
        everything = self.found(batch.cell, batch.upto)
        everything += self.found(batch.cell, batch.upto, flagged=True)
        return everything - self.source.ever(self.is_keyed)

    def after_intents(self, intents: Sequence[Intent]) -> None:
        """From here on these rows may be gone."""
        self._losses |= {intent.batch.seq: intent.rows for intent in intents}

    def after_refusal(self, who: str, refused: Batch, batches: Sequence[Batch]) -> None:
        """The guard speaks up only if more rows than it lets pass would really be lost.

        With those that others took out or were about to, of which the guard may count fewer.
        """
        own = {batch.seq for batch in batches}
        others = sum(rows for seq, rows in self._losses.items() if seq not in own)
        self._losses.pop(refused.seq, None)
        lost = 0
        for batch in batches if self.contract.deletes != "keep" else ():
            good, _ = self.wanted(batch.cell, batch.t, batch.upto)
            gone = self.found(batch.cell, batch.upto) - good
            alive = {row.n for row in self._alive(batch.t)} if self.is_keyed else set()
            lost += sum(count for content, count in gone.items() if content[0] not in alive)
        if not lost or lost + others <= MOST_DELETES:
            self.violate(f"the guard refused {who}, which would lose {lost} rows")

    def at_end(self, now: datetime) -> None:
        """After a pass over all that was due Harper equals BigQuery, row for row."""
        self._held = self.held()
        rows = [row for row in self._alive(now) if row.ts and row.ts < now - LAG]
        good = Counter(row.content(self.is_keyed) for row in rows if not row.is_bad)
        live = [row for row in self._held.values() if not _is_flagged(row)]
        found = Counter(self._content(row) for row in live)
        if self.contract.deletes == "keep":
            known = {row.n for row in rows} if self.is_keyed else set()
            found -= Counter({c: n for c, n in (found - good).items() if c[0] not in known})
        if found != good:
            self.violate(f"at the end Harper differs from BigQuery: {_difference(good, found)}")
        kept = self.ledger.quarantined(table) if (table := self.table) else ()
        bad = Counter(str(row.n) for row in rows if row.is_bad)
        if len(kept) != bad.total() or (
            self.is_keyed and Counter(row.rejection.row_id for row in kept) != bad
        ):
            self.violate(f"at the end {len(kept)} rows are in quarantine, wanted {dict(bad)}")
        unclean = [str(record.cell) for record in self.records() if not record.is_clean]
        if unclean:
            self.violate(f"at the end {unclean} are not done")

    def say(self, line: str) -> None:
        """For the trace."""
        self.trace.append(f"{self.source.clock.now:%H:%M:%S.%f} {line}"[:400])

    def violate(self, what: str) -> None:
        """Noted where it is seen: in threads that must go on."""
        self.violations.append(what)
        self.say(f"VIOLATION {what}")

    def raise_violations(self) -> None:
        """With what led to them."""
        if self.violations:
            told = ["", *self.trace[:1], *self.trace[1:][-80:], *self.violations[:3]]
            raise Violation("\n".join(told))

    def _alive(self, t: datetime) -> list[Row]:
        """Rows that some window holds."""
        rows = self.source.at(t).values()
        return [row for row in rows if row.ts is not None and self.start <= row.ts <= t]

    def _content(self, held: dict[str, Any]) -> Content:
        told = (held["ts"], held["v"], held["c"])
        return (held["id"], *told) if self.is_keyed else told

    def _difference(
        self, good: Contents, gone: Contents, cell: CellKey, upto: datetime
    ) -> str | None:
        found = self.found(cell, upto)
        if self.contract.deletes == "keep":
            found -= gone
        return _difference(good, found) if found != good else None


def _difference(wanted: Contents, found: Contents) -> str:
    return f"missing {dict(wanted - found)}, too many {dict(found - wanted)}"


def _is_flagged(row: dict[str, Any]) -> bool:
    return row.get(DELETED_AT) is not None


def _state(row: dict[str, Any] | None) -> tuple[Any, bool] | None:
    return row and (row[HASH], _is_flagged(row))
