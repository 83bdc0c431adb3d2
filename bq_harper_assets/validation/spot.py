"""Are rows picked at random the same in both stores? Looked for in both directions.

From BigQuery: a row at a random time must be in Harper, in every column. From Harper: the row at a
random instant must be in BigQuery. Each is compared with the source as it was when its cell was
committed, so that a change since then is no difference.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random, SystemRandom
from typing import Any

from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.records import CellKey, LogicalTable
from bq_harper_assets.schema.table_plan import named_as
from bq_harper_assets.stores.bigquery.fingerprint import Source
from bq_harper_assets.sync.bases import Bases
from bq_harper_assets.sync.cells import Cell
from bq_harper_assets.sync.recorded import version_of
from bq_harper_assets.sync.retelling import is_kept
from bq_harper_assets.sync.source import Pinned, pinned
from bq_harper_assets.sync.stored import RowPlan
from bq_harper_assets.sync.windows import Window
from bq_harper_assets.validation.sample import Place, of_each, of_some, places_of
from bq_harper_assets.validation.source_sample import times_of
from bq_harper_assets.validation.spot_rows import (
    Compared,
    Comparison,
    Look,
    Outcome,
    Side,
    harper_rows,
)
from bq_harper_assets.validation.subject import Subject
from bq_harper_assets.validation.verdict import (
    Difference,
    DifferenceKind,
    Severity,
    SpotStatus,
    Verdict,
)

CHECK = "spot"
# Of the times of a window, for each slice: so few rows are looked at that all slices have one.
TIMES_PER_SLICE = 5
MOST_TIMES = 1_000  # read at once


NOTHING_SYNCED = "nothing is synced there, or it is being moved: there is nothing to compare"


@dataclass(frozen=True)
class SpotCheck:
    """What was found in all that was looked at, and in each cell."""

    verdict: Verdict
    cells: Mapping[Cell, Verdict] = field(default_factory=dict)

    def of_cell(self, cell: Cell) -> Verdict:
        """A cell that nothing is known of is told so; if no cell could be looked at, why."""
        if cell in self.cells or not self.cells:
            return self.cells.get(cell, self.verdict)
        asked = {name: self.verdict.metadata[name] for name in ("seed", "sample_size")}
        return _verdict(SpotStatus.NO_DATA, NOTHING_SYNCED, asked, Severity.WARN)


def check_spot(
    subject: Subject,
    cells: Sequence[Cell] | None = None,
    *,
    size: int | None = None,
    seed: int | None = None,
) -> SpotCheck:
    """Rows in each direction, some of each of these cells, or of any that the table has.

    `size` left out is the contract's, and `seed` repeats a sample. No store that is away makes it
    fail with an error: it says so instead.
    """
    seed = SystemRandom().randrange(2**32) if seed is None else seed
    size = subject.contract.spot_check_size if size is None else size
    asked = {"seed": seed, "sample_size": size}
    try:
        return _checked(subject, cells, size, seed, asked)
    except BqhError as error:
        return SpotCheck(_verdict(SpotStatus.CHECK_FAILED, str(error), asked))


def _checked(
    subject: Subject, cells: Sequence[Cell] | None, size: int, seed: int, asked: dict[str, Any]
) -> SpotCheck:
    table = subject.table()
    places = _places(subject, table, cells) if table else []
    if table is None or not places:
        return SpotCheck(_verdict(SpotStatus.NO_DATA, NOTHING_SYNCED, asked, Severity.WARN))
    chance = Random(seed)
    of_source: Mapping[Place, int]
    of_harper: Mapping[Place, int]
    of_source = of_harper = of_each(places, size)
    if cells is None:
        of_source = of_some(places, size, chance, by_rows=True)
        of_harper = of_some(places, size, chance, by_rows=False)
    chosen = list(dict.fromkeys([*of_source, *of_harper]))
    first, last = min(place.start for place in chosen), max(place.until for place in chosen)
    before = version_of(subject.ledger.newest_schema(table))
    with pinned(subject.queries, subject.contract, first, last, before) as pin:
        compared = _compare(subject, table, pin, of_source, of_harper, chance, seed)
        past = {place: pin.source.at is not None and is_kept(pin, place.t) for place in chosen}
    looks = [_settled(subject, table, look) for look in compared.looks]
    of_place: dict[Place, list[Look]] = {place: [] for place in chosen}
    for look in looks:
        of_place[look.place].append(look)
    of_cells = {
        _cell(place, subject): _told(some, asked, place.rows, 0, is_past=past[place])
        for place, some in of_place.items()
    }
    held = sum(place.rows for place in chosen)
    verdict = _told(looks, asked, held, compared.crowded, is_past=all(past.values()))
    return SpotCheck(verdict, of_cells)


def _places(subject: Subject, table: LogicalTable, cells: Sequence[Cell] | None) -> list[Place]:
    first, last = subject.start(), subject.ledger.now() + subject.contract.window
    if cells is not None:
        first = min((cell.window.start for cell in cells), default=None)
        last = max((cell.window.end for cell in cells), default=last)
    if first is None:
        return []
    places = places_of(subject.ledger.cells(table, first, last))
    wanted = None if cells is None else set(cells)
    return [place for place in places if wanted is None or _cell(place, subject) in wanted]


def _cell(place: Place, subject: Subject) -> Cell:
    return Cell(Window(place.start, place.start + subject.contract.window), place.slice)


def _compare(
    subject: Subject,
    table: LogicalTable,
    pin: Pinned,
    of_source: Mapping[Place, int],
    of_harper: Mapping[Place, int],
    chance: Random,
    seed: int,
) -> Compared:
    """For each instant and schema version apart, and of so many windows at once."""
    plan, slices = RowPlan.of(pin.plan), table.facts.slices
    bases = Bases.of(subject.ledger, table, pin.plan.version)
    kind = pin.source.time_column.kind
    found = list(harper_rows(subject, plan, slices, kind, of_harper, chance))
    times_per_window = slices * max(TIMES_PER_SLICE, *of_source.values(), *of_harper.values())
    windows_at_once = max(1, MOST_TIMES // times_per_window)
    compared = Compared()
    places = [*of_source, *(place for place, _ in found)]
    for source, version in dict.fromkeys(_as_of(pin, place) for place in places):
        known = pin.restricted(bases.basis(version)).plan
        if source != pin.source:
            known = named_as(known, bases.versions[version])
        comparison = Comparison(subject, slices, source, RowPlan.of(known), chance)
        of_version = {place for place in places if _as_of(pin, place) == (source, version)}
        starts = sorted({place.start for place in of_version})
        for at in range(0, len(starts), windows_at_once):
            some = set(starts[at : at + windows_at_once])
            wanted = {p: n for p, n in of_source.items() if p in of_version and p.start in some}
            until = {p.start: p.until for p in sorted(wanted, key=lambda p: p.until)}
            times = times_of(
                subject.queries, source, until, subject.contract.window, times_per_window, seed
            )
            stored = [(p, row) for p, row in found if p in of_version and p.start in some]
            compared += comparison.of(wanted, times, stored)
    return compared


def _as_of(pin: Pinned, place: Place) -> tuple[Source, int]:
    """The source as it was at the place's commit; as it is now where BigQuery has no past of it."""
    is_past = pin.source.at is not None and is_kept(pin, place.t)
    return (replace(pin.source, at=place.t) if is_past else pin.source), place.schema_version


def _settled(subject: Subject, table: LogicalTable, look: Look) -> Look:
    """What is left of a difference when the ledger is asked again: runs go on meanwhile."""
    if look.difference is None:
        return look
    start = look.place.start
    cell = CellKey(start, start + subject.contract.window, look.place.slice)
    now = subject.ledger.cells(table, cell.window_start, cell.window_end, [cell.slice])
    if not any(r.is_clean and r.commit and r.commit.batch == look.place.batch for r in now):
        return Look(look.place, look.side, Outcome.MOVED)
    if look.difference.kind is DifferenceKind.MISSING and any(
        row.rejection.row_id == str(look.difference.id)
        for row in subject.ledger.quarantined(table, cell)
    ):
        return Look(look.place, look.side, Outcome.UNSTORABLE)
    return look


def _told(
    looks: Sequence[Look], asked: dict[str, Any], held: int, crowded: int, *, is_past: bool
) -> Verdict:
    """Of looks at places in which the ledger counts so many rows."""
    sides = Counter(look.side for look in looks if look.outcome is not Outcome.UNSTORABLE)
    outcomes = Counter(look.outcome for look in looks)
    metadata = asked | {
        "rows_from_bigquery": sides[Side.BIGQUERY],
        "rows_from_harper": sides[Side.HARPER],
        "rows_quarantined": outcomes[Outcome.UNSTORABLE],
        "rows_kept": outcomes[Outcome.KEPT],
        "rows_moved_meanwhile": outcomes[Outcome.MOVED],
        "crowded_times_left_out": crowded,
        "read_at_commit": is_past,
    }
    looked = sides.total()
    rows = tuple({(d.kind, d.id): d for look in looks if (d := look.difference)}.values())
    if rows:
        text = f"{len(rows)} of {looked} rows are not the same: {'; '.join(map(str, rows))}"
        if not is_past:
            text += ". BigQuery has no past of them, so they may have changed since the sync"
        severity = Severity.ERROR if is_past else Severity.WARN
        return _verdict(SpotStatus.ISSUES_FOUND, text, metadata, severity, rows=rows)
    if not looked:
        return _without_rows(outcomes, metadata, held)
    text = (
        f"{sides[Side.BIGQUERY]} rows of BigQuery are in Harper and {sides[Side.HARPER]} rows of "
        "Harper in BigQuery, each the same in every column"
    )
    return _verdict(SpotStatus.HEALTHY, text, metadata, passed=True)


def _without_rows(outcomes: Counter[Outcome], metadata: dict[str, Any], held: int) -> Verdict:
    """Passed only if there is no row that could have been looked at."""
    text, is_fine = "neither BigQuery nor Harper has a row there", True
    if outcomes[Outcome.UNSTORABLE]:
        text = "the rows that were looked at are in quarantine"
    elif held:
        text, is_fine = f"none of the {held:,} rows that were synced was met", False
        text += "; times that more than 100,000 rows share are left out"
    return _verdict(SpotStatus.NO_DATA, text, metadata, Severity.WARN, passed=is_fine)


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
