"""Checks whether windows find every row that Harper holds: rows by id against rows by time.

Every proof reads a window by its times. If Harper stores a row and leaves it out of such an answer,
no proof sees it; in the order of ids it is there. Nothing is written and no lease is taken: rows of
cells that a run writes meanwhile are not judged.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets.ledger.verbs.audit import Note
from bq_harper_assets.schema.logical import Kind
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.sync.errors import RunStopped
from bq_harper_assets.sync.ledger_facts import version_of
from bq_harper_assets.sync.stop_request import Stop
from bq_harper_assets.validation.proof.presence_rows import NAMED, Counted, PresenceLook, Some
from bq_harper_assets.validation.verdict import (
    Difference,
    DifferenceKind,
    ProofStatus,
    Severity,
    Verdict,
)

PRESENCE_CHECK = "presence"


@dataclass(frozen=True, kw_only=True)
class Presence:
    """A presence has the counted rows, and says which are wrong: fewer, if others write too."""

    contract_id: str
    table: str
    rows: Counted = field(default_factory=Counted)
    is_adopted: bool = False

    @property
    def unfound(self) -> Some:
        """Gives the rows that no window finds.

        In an adopted table others may have written rows without a time, so these do not count
        there.
        """
        lost, timeless = self.rows.lost, self.rows.timeless
        if self.is_adopted:
            return lost
        return Some(lost.count + timeless.count, (*lost.ids, *timeless.ids)[:NAMED])

    @property
    def stray(self) -> Some:
        """Gives the rows that no sync has written, if nobody else should write to the table."""
        return Some() if self.is_adopted else self.rows.stray

    @property
    def verdict(self) -> Verdict:
        """Passes if windows find all rows that they should."""
        rows = self.rows
        is_wrong = bool(self.unfound.count or self.stray.count)
        said = [*self._wrong()]
        if not self.unfound.count:
            said.insert(
                0, f"{rows.in_cells:,} are in synced cells, and each is found by its window"
            )
        listed = {
            "kept there after they were gone from BigQuery": rows.kept,
            "in open windows, after what is synced of them": rows.beyond,
            "in cells that were begun and wait to be synced": rows.waiting,
            "before the first window": rows.before,
            "after the newest window that was synced": rows.younger,
            "in windows that no sync has named": rows.stray.count if self.is_adopted else 0,
            "without a time that can be read": rows.timeless.count if self.is_adopted else 0,
            "of others, with times in another form": rows.other_form,
            "not judged, because a run is at work on their cells": rows.unjudged,
        }
        said += [f"{count:,} {_are(count)} {what}" for what, count in listed.items() if count]
        outside = rows.beyond + rows.waiting + rows.before + rows.younger + rows.stray.count
        lost = (*self.unfound.ids, *self.stray.ids)
        return Verdict(
            check=PRESENCE_CHECK,
            status=ProofStatus.DIFFERS if is_wrong else ProofStatus.PROVED,
            passed=not is_wrong,
            severity=Severity.ERROR if is_wrong else Severity.WARN,
            message=f"Harper holds {rows.held:,} rows of {self.table} in the order of ids; "
            + "; ".join(said),
            metadata={
                "held": rows.held,
                "in_cells": rows.in_cells,
                "kept": rows.kept,
                "outside": outside,
                "in_no_cell": rows.stray.count,
                "without_time": rows.timeless.count,
                "in_another_form": rows.other_form,
                "not_judged": rows.unjudged,
                "lost": self.unfound.count,
            },
            rows=tuple(Difference(DifferenceKind.LOST, row_id) for row_id in lost[:NAMED]),
        )

    def _wrong(self) -> Iterator[str]:
        if count := self.unfound.count:
            yield (
                f"{count:,} of them {_are(count)} found by no window, so that no cell's proof sees "
                f"{_it(count)}: {_examples(self.unfound)}. bqh repair {self.contract_id} brings "
                "back those that BigQuery has; others stay until somebody deletes them in Harper "
                "by their ids"
            )
        if count := self.stray.count:
            yield (
                f"{count:,} of them {_are(count)} in windows between synced ones that no sync has "
                f"ever named, so that nobody here has written {_it(count)} and no proof looks "
                f"there: {_examples(self.stray)}. bqh reconcile {self.contract_id} compares these "
                "windows with BigQuery"
            )


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _it(count: int) -> str:
    return "it" if count == 1 else "them"


def _examples(rows: Some) -> str:
    return ", ".join(repr(each)[:80] for each in rows.ids[:3])


def note_presence(ledger: Ledger, table: LedgerRoute, found: Verdict) -> None:
    """Records the verdict for the proof of the table, unless a store did not answer."""
    if not found.could_not_look:
        detail = {"message": found.message, **found.metadata}
        ledger.record_audit(table, Note(PRESENCE_CHECK, table.name, found.status.value, detail))


def newest_loss(ledger: Ledger, table: LedgerRoute) -> str | None:
    """Says which rows no window found in the newest check; None if it found all."""
    last = ledger.audit(table, 1, kind=PRESENCE_CHECK)
    if not last or last[0].outcome != ProofStatus.DIFFERS.value:
        return None
    return (
        f"As of {last[0].at:%F %T} UTC, {last[0].detail['message']}. To look again, type: "
        f"bqh verify {table.name} --deep"
    )


def check_presence(
    harper: HarperClient, ledger: Ledger, contract: TableContract, stop: Stop | None = None
) -> Verdict | None:
    """Checks the whole table; None if nothing of it was ever synced.

    RunStopped is raised between two requests if `stop` says so.
    """
    table = ledger.find_route(contract.id)
    newest = ledger.newest_schema(table) if table else None
    version = version_of(newest)
    if table is None or version is None:
        return None
    column = version.find(contract.timestamp_column)
    kind = column.kind if column else Kind.TIMESTAMP
    keyed, key = bool(version.key), version.primary_key
    look = PresenceLook(
        harper=harper,
        ledger=ledger,
        table=table,
        contract=contract,
        primary_key=key,
        kind=kind,
        keyed=keyed,
        stop=stop or Stop(),
    )
    try:
        return Presence(
            contract_id=contract.id,
            table=contract.target.table,
            rows=look.counted(),
            is_adopted=contract.target.is_adopted,
        ).verdict
    except RunStopped:
        raise
    except (BqhError, pa.ArrowException) as error:  # ids of several types make no array
        text = f"the rows of {contract.target.table} could not be counted: {error}"
        return Verdict(
            check=PRESENCE_CHECK,
            status=ProofStatus.CHECK_FAILED,
            passed=False,
            severity=Severity.ERROR,
            message=text,
        )
