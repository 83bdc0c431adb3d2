"""Random changes of a source: rows come, change, move, return and go, and some cannot be stored."""

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from bq_harper_assets_tests.history.source import BAD, Row
from bq_harper_assets_tests.history.watch import LAG, MOST_DELETES
from bq_harper_assets_tests.history.world import START, WINDOW, World

MOST_ROWS = 10
LATE = "in a cell that was committed"


class Changes:
    """Drawn from the history's own chances; `unsettled` are windows that a run should look at."""

    def __init__(self, world: World, chance: random.Random, unsettled: set[int]) -> None:
        self.world = world
        self.random = chance
        self._unsettled = unsettled
        self._next_n = 0

    def change(self) -> None:
        """One of all kinds."""
        source, chance = self.world.source, self.random
        x = chance.random()
        known = sorted(source.rows)
        gone = sorted({n for _, _, rows in source.versions for n in rows} - set(known))
        n = chance.choice(known) if known else 0
        if gone and x < (0.1 if self.world.contract.deletes == "mirror" else 0.25):
            back = chance.choice(source.earlier(chance.choice(gone)) or [self._row(gone[0])])
            self._put(back, "row comes back")
        elif len(known) < 2 or (len(known) < MOST_ROWS and x < 0.4):
            self._next_n += 1
            self._put(self._row(self._next_n), "row inserted")
        elif not self.world.watch.is_keyed and len(known) < MOST_ROWS and x < 0.6:
            self._next_n += 1
            like = source.rows[n]
            self._put(Row(self._next_n, like.ts, like.v, like.c), "row doubled")
        elif x < 0.52:
            source.delete(n)
            self._note(f"row {n} deleted", "row deleted")
        elif x < 0.62:
            self._empty()
        elif x < 0.72:
            old = source.rows[n]
            self._put(Row(n, old.ts, self._value(), self._text()), "row changed")
        elif x < 0.82 and len(source.earlier(n)) > 1:
            self._put(chance.choice(source.earlier(n)), "row as it was before")
        else:
            old = source.rows[n]
            self._put(Row(n, self._time(), old.v, old.c), "row moved")

    def fill(self, count: int) -> None:
        """So many new rows at once."""
        rows = [self._row(self._next_n + n) for n in range(1, count + 1)]
        self._next_n += count
        self.world.source.insert(*rows)
        for row in rows:
            self._note_row(row, "row inserted")

    def arrive(self) -> None:
        """A row of a moment ago, as most new rows are; without a key perhaps two equal ones."""
        if len(self.world.source.rows) >= 2 * MOST_ROWS:
            return
        self._next_n += 1
        ago = LAG + timedelta(seconds=self.random.randint(1, 5))
        row = Row(self._next_n, self.world.clock.now - ago, self._value(), self._text())
        self._put(row, "row inserted")
        if not self.world.watch.is_keyed and self._chance(0.5):
            self._next_n += 1
            self._put(replace(row, n=self._next_n), "row doubled")

    def lose_newest(self) -> None:
        """The row that came last."""
        if self._next_n in self.world.source.rows:
            self.world.source.delete(self._next_n)
            self._note(f"row {self._next_n} deleted", "row deleted")

    def return_newest(self) -> None:
        """As it was."""
        earlier = self.world.source.earlier(self._next_n)
        if earlier and self._next_n not in self.world.source.rows:
            self._put(earlier[-1], "row comes back")

    def _empty(self) -> None:
        """All rows of a window that holds some are gone at once; or as many come."""
        full = [r.cell.window_start for r in self.world.watch.records() if r.commit]
        for start in self.random.sample(full, len(full)):
            window = (start - START) // WINDOW
            if len(self._rows_in(window)) > MOST_DELETES:
                self.lose_all(window)
                self._unsettled.add(window)
                return
        self.fill(3)

    def lose_all(self, window: int) -> list[Row]:
        """Those that were in it."""
        if rows := self._rows_in(window):
            ns = [row.n for row in rows]
            self.world.source.delete(*ns)
            self._note(f"rows {ns} deleted", "window emptied")
        return rows

    def bring_back(self, rows: list[Row]) -> None:
        """As they were, at once."""
        self.world.source.insert(*rows)
        for row in rows:
            self._note_row(row, "row comes back")

    def restore(self) -> None:
        """Rows return to what they were: then only marks tell that a cell lost one."""
        source = self.world.source
        every = sorted({n for _, _, rows in source.versions for n in rows})
        earlier = [source.earlier(n) for n in every if self._chance(0.6)]
        if rows := [self.random.choice(each) for each in earlier if each]:
            source.replace(*rows)
            for row in rows:
                self._note_row(row, "row as it was before")

    def _put(self, row: Row, kind: str) -> None:
        self.world.source.put(row)
        self._note_row(row, kind)

    def _note_row(self, row: Row, kind: str) -> None:
        if row.is_bad:
            self.world.counts["bad row"] += 1
        where = self._where(row.ts)
        self.world.counts[f"time {where}"] += 1
        self.world.counts["row late"] += kind == "row inserted" and where == LATE
        self._note(f"{kind}: {row}", kind)

    def _note(self, line: str, kind: str) -> None:
        self.world.counts[kind] += 1
        self.world.watch.say(line)

    def _where(self, ts: datetime | None) -> str:
        now = self.world.clock.now
        if ts is None:
            return "NULL"
        if ts < START:
            return "before the start"
        if ts >= now:
            return "in the future"
        if any(
            r.cell.window_start <= ts < r.cell.window_end and r.commit
            for r in self.world.watch.records()
        ):
            return LATE
        return "in a cell that was not"

    def _row(self, n: int) -> Row:
        return Row(n, self._time(), self._value(), self._text())

    def _value(self) -> float:
        return BAD if self._chance(0.1) else self.random.choice((1.0, 2.5))

    def _text(self) -> str | None:
        return self.random.choice((None, "a"))

    def _time(self) -> datetime | None:
        chance, now = self.random, self.world.clock.now
        due = self.world.begun_windows()
        first = chance.randrange(3 if self._chance(0.8) else due)
        draws: tuple[tuple[float, Callable[[], datetime | None]], ...] = (
            (0.25, lambda: now - LAG - timedelta(seconds=chance.randint(-20, 60))),
            (0.75, lambda: START + first * WINDOW + timedelta(seconds=chance.choice((7, 150)))),
            (0.85, lambda: START + first * WINDOW),
            (0.89, lambda: START + (first + 1) * WINDOW - timedelta(microseconds=1)),
            (0.92, lambda: None),
            (0.95, lambda: START - timedelta(seconds=chance.randint(1, 400))),
            (0.98, lambda: now + timedelta(seconds=chance.randint(5, 400))),
            (1.0, lambda: datetime(2099, 1, 1, tzinfo=START.tzinfo)),
        )
        x = chance.random()
        return next(draw for bound, draw in draws if x < bound)()

    def change_in(self, windows: list[int], *, every: bool = False) -> None:
        """Rows that another run may have read are old now."""
        there = [row for window in windows for row in self._rows_in(window)]
        rows = [replace(row, v=self._next_n + 0.5) for row in (there if every else there[:1])]
        if rows:
            self.world.source.replace(*rows)
            for row in rows:
                self._note_row(row, "row changed")

    def stir(self, window: int) -> None:
        """Rows enough for two requests, of which a run has to write some."""
        source, first = self.world.source, START + window * WINDOW
        gone = {n for _, _, rows in source.versions for n in rows} - set(source.rows)
        last = [source.earlier(n)[-1] for n in sorted(gone) if source.earlier(n)]
        back = [row for row in last if row.ts and first <= row.ts < first + WINDOW][:1]
        there = len(back) + len(self._rows_in(window))
        rows = []
        for n in range(max(1, 3 - there)):
            self._next_n += 1
            ts = first + timedelta(seconds=7 + n)
            rows.append(Row(self._next_n, ts, self._value(), self._text()))
        if not self.world.watch.is_keyed:
            self._next_n += 1
            rows.append(replace(rows[-1], n=self._next_n))
        source.insert(*rows, *back)
        for row in rows:
            self._note_row(row, "row inserted")
        for row in back:
            self._note_row(row, "row comes back")

    def move_from(self, window: int) -> None:
        """A row goes to one of the first windows; most of what happens, happens there."""
        if there := self._rows_in(window):
            row = self.random.choice(there)
            ts = START + self.random.randrange(3) * WINDOW + timedelta(seconds=150)
            self._put(replace(row, ts=ts), "row moved")

    def _rows_in(self, window: int) -> list[Row]:
        first, rows = START + window * WINDOW, self.world.source.rows.values()
        return [row for row in rows if row.ts is not None and first <= row.ts < first + WINDOW]

    def _chance(self, probability: float) -> bool:
        return self.random.random() < probability
