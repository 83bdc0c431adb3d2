"""The open window is polled while it lasts and reconciled once it has closed, on one warm Spark."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.errors import BqhError, TransientError
from bq_harper_assets.instants import floor_to_window
from bq_harper_assets.ledger.errors import LeaseHeld
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import CellResult, CellState
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.sync.errors import TurnFailed, WindowStillOpen
from bq_harper_assets.sync.phases import Phase
from bq_harper_assets.sync.revisit.pace import poll_delay
from bq_harper_assets.sync.turn.report import CellReport, TurnReport

MOST_FAILURES = 5  # polls in a row
PAUSE = timedelta(seconds=3)  # between two polls, so that a run that waits for the lease gets it


@dataclass(kw_only=True)
class Live:
    """A live sync follows the window that is open when it begins, and knows what its polls did."""

    sync: Callable[[Sequence[Cell]], TurnReport]
    contract: TableContract
    ledger: Ledger
    after_look: Callable[[TurnReport], None] = lambda report: None  # not after one that waited
    say: Callable[[str], None] = lambda line: None
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] | None = None  # None: the ledger's clock
    reports: list[TurnReport] = field(default_factory=list)
    polls: int = 0  # including those that had to wait
    _failures: int = 0

    def follow(self, until: datetime) -> bool:
        """Polls until the window has closed and is reconciled (True) or `until` has come (False).

        A lease of another run fails the poll and not the run; so does a store that is unavailable,
        but not five times in a row.
        """
        window = open_window(self.contract, self._now())
        while True:
            began = self._now()
            report = self._poll(window)
            if report and _is_closed(report, window):
                return True
            phase = report.phase if report else Phase.STEADY
            ended = self._now()
            at = max(began + poll_delay(phase, self.contract.sync), ended + PAUSE)
            closes = window.end + self.contract.safety_lag
            if ended < closes < at:
                at = closes
            if at >= until:
                return False
            self.sleep((at - ended).total_seconds())

    def total(self) -> TurnReport | None:
        """Sums up all polls as one report; None if there was no poll.

        Each cell is in it once, as its last poll left it.
        """
        if not self.reports:
            return None
        last = self.reports[-1]
        cells: dict[Cell, CellReport] = {}
        for report in self.reports:
            for each in report.cells:
                if not each.problem:
                    before = cells.get(each.cell)
                    cells[each.cell] = _added(before, each) if before else each
        return replace(
            last,
            cells=tuple(cells[cell] for cell in sorted(cells)),
            requests=sum(report.requests for report in self.reports),
            retries=sum(report.retries for report in self.reports),
            seconds=sum(report.seconds for report in self.reports),
            bytes_read=sum(report.bytes_read for report in self.reports),
            bytes_billed=sum(report.bytes_billed for report in self.reports),
        )

    def _now(self) -> datetime:
        return (self.now or self.ledger.now)()

    def _poll(self, window: Window) -> TurnReport | None:
        """Syncs the window once; returns None if this has to wait for the next poll."""
        self.polls += 1
        windows = (*left_open(self.ledger, self.contract, window), window)
        cells = [Cell(each, n) for each in windows for n in range(self.contract.slices)]
        try:
            report = self.sync(cells)
        except TurnFailed as error:
            self._looked(error.report)
            self._pass(error, error.report.is_transient)
            return None
        except LeaseHeld as error:
            self.say(
                f"{error.table} is being moved by {error.who}; this live run waits, and goes on by "
                "itself at its next poll"
            )
            return None
        except WindowStillOpen as error:  # the poll came a moment too early
            self.say(f"waits for the next poll: {error}")
            return None
        except BqhError as error:
            self._pass(error, isinstance(error, TransientError))
            return None
        self._failures = 0
        self._looked(report)
        return report

    def _looked(self, report: TurnReport) -> None:
        self.reports.append(report)
        if any(not each.problem for each in report.cells):
            self.after_look(report)

    def _pass(self, error: BqhError, may_pass: bool) -> None:
        self._failures += 1
        if not may_pass or self._failures >= MOST_FAILURES:
            raise error
        self.say(f"tries again at the next poll: {error}")


def open_window(contract: TableContract, now: datetime) -> Window:
    """Returns the window that is open now, up to the safety lag."""
    start = floor_to_window(now - contract.safety_lag, contract.window)
    return Window(start, start + contract.window)


def left_open(ledger: Ledger, contract: TableContract, window: Window) -> list[Window]:
    """Returns the window before if a run left it open, unless the guard refused it."""
    before = Window(window.start - contract.window, window.start)
    table = ledger.find_route(contract.id)
    records = ledger.cells(table, before.start, before.end) if table else ()
    if any(record.state is CellState.REFUSED for record in records):
        return []
    is_left = any(record.commit and not record.commit.is_closed for record in records)
    return [before] if is_left else []


def _is_closed(report: TurnReport, window: Window) -> bool:
    return not any(each.is_open for each in report.cells if each.cell.window == window)


def _added(before: CellReport, after: CellReport) -> CellReport:
    first, last = before.result, after.result
    result: CellResult = replace(
        last,
        read=first.read + last.read,
        written=first.written + last.written,
        unchanged=first.unchanged + last.unchanged,
        quarantined=first.quarantined + last.quarantined,
        deleted=first.deleted + last.deleted,
        moved=first.moved + last.moved,
        flagged=first.flagged + last.flagged,
        kept=first.kept + last.kept,
        held=first.held,  # rows in the target before the first poll
        rejections=(*first.rejections, *last.rejections),
        bytes=first.bytes + last.bytes,
        seconds=first.seconds + last.seconds,
    )
    return replace(after, result=result)
