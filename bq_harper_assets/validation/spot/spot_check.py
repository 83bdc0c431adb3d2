"""Checks whether rows picked at random are the same in both stores, in both directions.

From BigQuery: a row at a random time must be in Harper, in every column. From Harper: the row at a
random instant must be in BigQuery. Each is compared with the source as it was when its cell was
committed, so that a change since then is no difference.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random, SystemRandom
from typing import Any

from bq_harper_assets.errors import BqhError
from bq_harper_assets.instants import floor_to_window
from bq_harper_assets.ledger.records import CellKey, LogicalTable
from bq_harper_assets.schema.table_plan import named_as
from bq_harper_assets.stores.bigquery.fingerprint import SourceAtInstant
from bq_harper_assets.stores.harper.client import Row
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.sync.ledger_facts import version_of
from bq_harper_assets.sync.plan.recomputed_fingerprints import is_kept
from bq_harper_assets.sync.plan.shared_columns import SharedColumns
from bq_harper_assets.sync.source.pinned import Pinned, pinned
from bq_harper_assets.sync.values.row_plan import RowPlan
from bq_harper_assets.validation.spot.compared_rows import (
    ComparedRow,
    Comparison,
    Outcome,
    Side,
    harper_rows,
    time_of,
)
from bq_harper_assets.validation.spot.sampled_cells import CommittedCell, of_some, places_of
from bq_harper_assets.validation.spot.source_sample import (
    MOST_SAMPLED_ROWS,
    TIMES_PER_QUERY,
    rows_at,
    times_of,
    uncrowded,
)
from bq_harper_assets.validation.spot.spot_verdict import (
    NOTHING_SYNCED,
    spot_verdict,
    verdict_of_rows,
)
from bq_harper_assets.validation.subject import Subject
from bq_harper_assets.validation.verdict import (
    Difference,
    DifferenceKind,
    Severity,
    SpotStatus,
    Verdict,
)

# A sample has at least this many times of a window per slice, so that each slice likely has a row.
TIMES_PER_SLICE = 5


def check_spot(
    subject: Subject,
    cells: Sequence[Cell] | None = None,
    *,
    size: int | None = None,
    seed: int | None = None,
) -> Verdict:
    """Compares random rows of these cells, or of all cells of the table, in both directions.

    `size` is the contract's if left out, and `seed` repeats a sample. If a store does not answer,
    no error is raised: the verdict says so.
    """
    seed = SystemRandom().randrange(2**32) if seed is None else seed
    size = subject.contract.spot_check_size if size is None else size
    asked = {"seed": seed, "sample_size": size}
    try:
        return _checked(subject, cells, size, seed, asked)
    except BqhError as error:
        return spot_verdict(SpotStatus.CHECK_FAILED, str(error), asked)


def _checked(
    subject: Subject, cells: Sequence[Cell] | None, size: int, seed: int, asked: dict[str, Any]
) -> Verdict:
    table = subject.table()
    places = _places(subject, table, cells) if table else []
    if table is None or not places:
        return spot_verdict(SpotStatus.NO_DATA, NOTHING_SYNCED, asked, Severity.WARN)
    chance = Random(seed)
    of_source = of_some(places, size, chance, by_rows=True)
    of_harper = of_some(places, size, chance, by_rows=False)
    chosen = list(dict.fromkeys([*of_source, *of_harper]))
    first, last = min(place.start for place in chosen), max(place.until for place in chosen)
    before = version_of(subject.ledger.newest_schema(table))
    with pinned(subject.queries, subject.contract, first, last, before) as pin:
        compared = _compare(subject, table, pin, of_source, of_harper, chance, seed)
        past = {place: pin.source.at is not None and is_kept(pin, place.t) for place in chosen}
    looks = [_settled(subject, table, look) for look in compared.looks]
    held = sum(place.rows for place in chosen)
    # The slices of a window share its times, so each window counts once.
    left_out = sum({place.start: compared.crowded[place] for place in chosen}.values())
    return verdict_of_rows(looks, asked, held, left_out, is_past=all(past.values()))


def _places(
    subject: Subject, table: LogicalTable, cells: Sequence[Cell] | None
) -> list[CommittedCell]:
    first, last = subject.start(), subject.ledger.now() + subject.contract.window
    if cells is not None:
        first = min((cell.window.start for cell in cells), default=None)
        last = max((cell.window.end for cell in cells), default=last)
    if first is None:
        return []
    places = places_of(subject.ledger.cells(table, first, last))
    wanted = None if cells is None else set(cells)
    return [place for place in places if wanted is None or _cell(place, subject) in wanted]


def _cell(place: CommittedCell, subject: Subject) -> Cell:
    return Cell(Window(place.start, place.start + subject.contract.window), place.slice)


@dataclass
class _Compared:
    looks: list[ComparedRow] = field(default_factory=list)
    crowded: Counter[CommittedCell] = field(
        default_factory=Counter
    )  # times with too many rows to read


def _compare(
    subject: Subject,
    table: LogicalTable,
    pin: Pinned,
    of_source: Mapping[CommittedCell, int],
    of_harper: Mapping[CommittedCell, int],
    chance: Random,
    seed: int,
) -> _Compared:
    """Compares the rows, apart for each instant and each schema version."""
    plan, slices = RowPlan.of(pin.plan), table.facts.slices
    bases = SharedColumns.of(subject.ledger, table, pin.plan.version)
    kind = pin.source.time_column.kind
    compared = _Compared()
    stored: dict[CommittedCell, list[tuple[Row, datetime]]] = {}
    for place, row in harper_rows(subject, plan, slices, kind, of_harper, chance):
        if moment := time_of(row, plan, kind):
            stored.setdefault(place, []).append((row, moment))
        else:
            phantom = Difference(DifferenceKind.PHANTOM, row[plan.primary_key])
            compared.looks.append(ComparedRow(place, Side.HARPER, Outcome.DIFFERENT, phantom))
    times_per_window = slices * max(TIMES_PER_SLICE, *of_source.values(), *of_harper.values())
    alike: dict[tuple[SourceAtInstant, int], list[CommittedCell]] = {}
    for place in dict.fromkeys((*of_source, *stored)):
        alike.setdefault(_as_of(pin, place), []).append(place)
    for (source, version), places in alike.items():
        known = pin.restricted(bases.basis(version)).plan
        if source != pin.source:
            known = named_as(known, bases.versions[version])
        comparison = Comparison(
            subject=subject, slices=slices, source=source, plan=RowPlan.of(known), chance=chance
        )
        until = {p.start: p.until for p in sorted(places, key=lambda p: p.until) if p in of_source}
        times = times_of(
            subject.queries, source, until, subject.contract.window, times_per_window, seed
        )
        times += [moment for place in places for _, moment in stored.get(place, ())]
        counts = rows_at(subject.queries, source, times)
        for some, readable in _at_once(places, counts, subject.contract.window, compared.crowded):
            found = [(p, row) for p in some for row, at in stored.get(p, ()) if at in readable]
            wanted = {place: of_source[place] for place in some if place in of_source}
            compared.looks += comparison.of(wanted, sorted(readable), found)
    return compared


def _at_once(
    places: Sequence[CommittedCell],
    counts: Mapping[datetime, int],
    window: timedelta,
    crowded: Counter[CommittedCell],
) -> Iterator[tuple[list[CommittedCell], set[datetime]]]:
    """Groups cells of as many windows as can be read at once, with the times to read of them."""
    by_window: dict[datetime, dict[datetime, int]] = {}
    for moment, count in counts.items():
        by_window.setdefault(floor_to_window(moment, window), {})[moment] = count
    some: list[CommittedCell] = []
    readable: set[datetime] = set()
    rows = 0
    at: dict[datetime, list[CommittedCell]] = {}
    for place in places:
        at.setdefault(place.start, []).append(place)
    for start in sorted(at):
        there = by_window.get(start, {})
        kept = uncrowded(there)
        of_window = at[start]
        crowded.update(dict.fromkeys(of_window, len(there) - len(kept)))
        more = sum(there[moment] for moment in kept)
        if some and (
            rows + more > MOST_SAMPLED_ROWS or len(readable) + len(kept) > TIMES_PER_QUERY
        ):
            yield some, readable
            some, readable, rows = [], set(), 0
        some, readable, rows = [*some, *of_window], readable | set(kept), rows + more
    if some:
        yield some, readable


def _as_of(pin: Pinned, place: CommittedCell) -> tuple[SourceAtInstant, int]:
    """Gives the source at the cell's commit, or as it is now if BigQuery has no past of it."""
    is_past = pin.source.at is not None and is_kept(pin, place.t)
    return (replace(pin.source, at=place.t) if is_past else pin.source), place.schema_version


def _settled(subject: Subject, table: LogicalTable, look: ComparedRow) -> ComparedRow:
    """Asks the ledger again about a difference, because turns go on during the check."""
    if look.difference is None:
        return look
    start = look.place.start
    cell = CellKey(start, start + subject.contract.window, look.place.slice)
    now = subject.ledger.cells(table, cell.window_start, cell.window_end, [cell.slice])
    if not any(r.is_clean and r.commit and r.commit.batch == look.place.batch for r in now):
        return ComparedRow(look.place, look.side, Outcome.MOVED)
    if look.difference.kind is DifferenceKind.MISSING and any(
        row.rejection.row_id == str(look.difference.id)
        for row in subject.ledger.quarantined(table, cell)
    ):
        return ComparedRow(look.place, look.side, Outcome.UNSTORABLE)
    return look
