"""Are rows picked at random the same in both stores? Looked for in both directions.

From BigQuery: the row at a random instant must be in Harper, in every column. From Harper: the row
at a random instant must be in BigQuery. Each is compared with the source as it was when its cell
was committed, so that a change since then is no difference.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from random import Random, SystemRandom
from typing import Any

from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.records import CellKey, LogicalTable
from bq_harper_assets.schema.table_plan import named_as
from bq_harper_assets.stores.bigquery.fingerprint import Source
from bq_harper_assets.sync.bases import Bases
from bq_harper_assets.sync.recorded import version_of
from bq_harper_assets.sync.retelling import is_kept
from bq_harper_assets.sync.source import Pinned, pinned
from bq_harper_assets.sync.stored import RowPlan
from bq_harper_assets.validation.sample import Pick, Place, picks, places_of
from bq_harper_assets.validation.spot_rows import Compared, Comparison, Found, harper_rows
from bq_harper_assets.validation.subject import Subject
from bq_harper_assets.validation.verdict import (
    Difference,
    DifferenceKind,
    Severity,
    SpotStatus,
    Verdict,
)

CHECK = "spot"
PICKS_PER_ROW = 10  # of those that are looked for, where most belong to other slices


def check_spot(
    subject: Subject,
    start: datetime | None = None,
    end: datetime | None = None,
    slices: Sequence[int] | None = None,
    *,
    size: int | None = None,
    seed: int | None = None,
) -> Verdict:
    """Rows in each direction, of the windows that begin in [start, end), or of all.

    `size` left out is the contract's, and `seed` repeats a sample. No store that is away makes it
    fail with an error: it says so instead.
    """
    seed = SystemRandom().randrange(2**32) if seed is None else seed
    size = subject.contract.spot_check_size if size is None else size
    asked = {"seed": seed, "sample_size": size}
    try:
        return _checked(subject, start, end, slices, size, Random(seed), asked)
    except BqhError as error:
        return _verdict(SpotStatus.CHECK_FAILED, str(error), asked)


def _checked(
    subject: Subject,
    start: datetime | None,
    end: datetime | None,
    slices: Sequence[int] | None,
    size: int,
    chance: Random,
    asked: dict[str, Any],
) -> Verdict:
    table = subject.table()
    places = _places(subject, table, start, end, slices) if table else []
    if table is None or not places:
        text = "nothing is synced there, or it is being moved: there is nothing to compare"
        return _verdict(SpotStatus.NO_DATA, text, asked, Severity.WARN)
    # Of the rows at an instant, only some are of the slices that are asked for.
    share = len(set(slices)) / table.facts.slices if slices else 1.0
    tries = min(int(size / share), size * PICKS_PER_ROW)
    of_source = picks(places, tries, chance, by_rows=True)
    of_harper = picks(places, tries, chance, by_rows=False)
    chosen = [pick.place for pick in (*of_source, *of_harper)]
    first, last = min(place.start for place in chosen), max(place.until for place in chosen)
    before = version_of(subject.ledger.newest_schema(table))
    with pinned(subject.queries, subject.contract, first, last, before) as pin:
        compared = _compare(subject, table, pin, of_source, of_harper, size, chance)
    settled = _settled(subject, table, compared.differences)
    is_past = pin.source.at is not None and all(is_kept(pin, place.t) for place in chosen)
    return _told(compared, settled, asked, is_past=is_past)


def _places(
    subject: Subject,
    table: LogicalTable,
    start: datetime | None,
    end: datetime | None,
    slices: Sequence[int] | None,
) -> list[Place]:
    first = start or subject.start()
    if first is None:
        return []
    last = end or subject.ledger.now() + subject.contract.window
    return places_of(subject.ledger.cells(table, first, last, slices))


def _compare(
    subject: Subject,
    table: LogicalTable,
    pin: Pinned,
    of_source: Sequence[Pick],
    of_harper: Sequence[Pick],
    size: int,
    chance: Random,
) -> Compared:
    """For each instant and schema version apart."""
    plan, slices = RowPlan.of(pin.plan), table.facts.slices
    bases = Bases.of(subject.ledger, table, pin.plan.version)
    kind = pin.source.time_column.kind
    found = list(harper_rows(subject, plan, slices, kind, of_harper, size, chance))
    places = [*(pick.place for pick in of_source), *(place for place, _ in found)]
    compared = Compared()
    for source, version in dict.fromkeys(_as_of(pin, place) for place in places):
        known = pin.restricted(bases.basis(version)).plan
        if source != pin.source:
            known = named_as(known, bases.versions[version])
        comparison = Comparison(subject, slices, source, RowPlan.of(known), chance)
        compared += comparison.of(
            [pick for pick in of_source if _as_of(pin, pick.place) == (source, version)],
            [pair for pair in found if _as_of(pin, pair[0]) == (source, version)],
            size - compared.from_source,
        )
    return compared


def _as_of(pin: Pinned, place: Place) -> tuple[Source, int]:
    """The source as it was at the place's commit; as it is now where BigQuery has no past of it."""
    is_past = pin.source.at is not None and is_kept(pin, place.t)
    return (replace(pin.source, at=place.t) if is_past else pin.source), place.schema_version


@dataclass(frozen=True)
class _Settled:
    differences: tuple[Difference, ...]
    quarantined: int  # missing because they could not be stored
    moved: int  # in cells that a run has touched since the check began


def _settled(subject: Subject, table: LogicalTable, found: Sequence[Found]) -> _Settled:
    """What is left when the ledger is asked again: runs go on while a check looks."""
    differences: dict[tuple[DifferenceKind, Any], Difference] = {}
    quarantined = moved = 0
    for each in found:
        start = each.place.start
        cell = CellKey(start, start + subject.contract.window, each.slice)
        now = subject.ledger.cells(table, cell.window_start, cell.window_end, [cell.slice])
        batch = dict(each.place.batches)[cell.slice]
        if not any(r.is_clean and r.commit and r.commit.batch == batch for r in now):
            moved += 1
        elif each.difference.kind is DifferenceKind.MISSING and any(
            row.rejection.row_id == str(each.difference.id)
            for row in subject.ledger.quarantined(table, cell)
        ):
            quarantined += 1
        else:
            differences.setdefault((each.difference.kind, each.difference.id), each.difference)
    return _Settled(tuple(differences.values()), quarantined, moved)


def _told(
    compared: Compared, settled: _Settled, asked: dict[str, Any], *, is_past: bool
) -> Verdict:
    metadata = asked | {
        "rows_from_bigquery": compared.from_source,
        "rows_from_harper": compared.from_harper,
        "rows_quarantined": compared.unstorable + settled.quarantined,
        "rows_kept": compared.kept,
        "rows_moved_meanwhile": settled.moved,
        "crowded_times_left_out": compared.crowded,
        "read_at_commit": is_past,
    }
    looked = compared.from_source + compared.from_harper
    rows = settled.differences
    if rows:
        text = f"{len(rows)} of {looked} rows are not the same: {'; '.join(map(str, rows))}"
        if not is_past:
            text += ". BigQuery has no past of them, so they may have changed since the sync"
        severity = Severity.ERROR if is_past else Severity.WARN
        return _verdict(SpotStatus.ISSUES_FOUND, text, metadata, severity, rows=rows)
    if not looked:
        text = "neither BigQuery nor Harper has a row there"
        return _verdict(SpotStatus.NO_DATA, text, metadata, Severity.WARN, passed=True)
    text = (
        f"{compared.from_source} rows of BigQuery are in Harper and {compared.from_harper} rows of "
        "Harper in BigQuery, each the same in every column"
    )
    return _verdict(SpotStatus.HEALTHY, text, metadata, passed=True)


def _verdict(
    status: SpotStatus,
    message: str,
    metadata: dict[str, Any],
    severity: Severity = Severity.ERROR,
    *,
    passed: bool = False,
    rows: tuple[Difference, ...] = (),
) -> Verdict:
    return Verdict(CHECK, status, passed, severity, message, metadata, rows)
