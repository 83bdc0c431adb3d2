"""These functions translate contracts, schemas and cells into what the ledger records of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.instants import micros_at
from bq_harper_assets.ledger.errors import TableChanged
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.questions.status import CellCommit, CellRecord
from bq_harper_assets.ledger.records import (
    Batch,
    CellKey,
    LedgerRoute,
    RouteFacts,
    SchemaVersion,
)
from bq_harper_assets.schema.change import Change
from bq_harper_assets.schema.change_words import dated
from bq_harper_assets.schema.changes import changes_between
from bq_harper_assets.schema.table_plan import TablePlan
from bq_harper_assets.schema.version import TableVersion
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.grid import Part
from bq_harper_assets.sync.cells.key_range import KeyCut, KeyOrder
from bq_harper_assets.sync.protocols import Route


def version_of(recorded: SchemaVersion | None) -> TableVersion | None:
    """Parses the columns of a recorded schema version."""
    return None if recorded is None else TableVersion.parse(recorded.body)


def record_version(
    ledger: Ledger,
    table: LedgerRoute,
    contract: TableContract,
    seen: SchemaVersion | None,  # the newest before the source was read
    plan: TablePlan,
    by: str,
    cause: str,
) -> SchemaVersion:
    """Records the plan's schema, with what it changes under the current contract.

    A version that an earlier release recorded stays the newest while it says the same in its form.
    """
    before = version_of(seen)
    changes = changes_between(before, plan.version, contract)
    return ledger.record_schema(
        table,
        seen.body if seen and before == plan.version else plan.version.body(),
        seen.version if seen else 0,
        by=by,
        cause=cause,
        changes=[change.body() for change in changes],
        source_fingerprint=plan.source_fingerprint,
    )


def changes_of(
    recorded: SchemaVersion, before: SchemaVersion | None, contract: TableContract
) -> tuple[Change, ...]:
    """Returns what the version changed, as it was recorded.

    Records of earlier releases have no changes; these are computed now.
    """
    if recorded.changes is not None:
        parsed = map(Change.parse, recorded.changes)
        changes = tuple(change for change in parsed if change is not None)
    else:
        after = TableVersion.parse(recorded.body)
        changes = changes_between(version_of(before), after, contract)
    return tuple(dated(change, recorded.recorded_at) for change in changes)


def table_facts(contract: TableContract, project: str) -> RouteFacts:
    """Returns the facts of a contract that must not change once the table is synced.

    The source is named within `project`, which only its connection knows.
    """
    return RouteFacts(
        name=contract.id,
        table=contract.id,
        source=contract.source.name_in(project),
        target=contract.target.table,
        timestamp_column=contract.timestamp_column,
        key=contract.key or (),
        window=contract.window,
        slices=contract.slices,
    )


def refused_declaration(
    ledger: Ledger, contract: TableContract, project: str | None = None
) -> TableChanged | None:
    """Returns why the contract cannot be synced as it is declared now; None if it can.

    Without the project that the source is in, it is assumed to be the same.
    """
    known = ledger.find_route(contract.id)
    if project is not None:
        return ledger.refused_change(table_facts(contract, project))
    return None if known is None else ledger.refused_change(_with_source_of(known, contract))


def refused_declarations(
    ledger: Ledger, contracts: Iterable[TableContract]
) -> dict[str, TableChanged]:
    """Gives by contract id what `refused_declaration` says without the project.

    One statement is enough for all tables that are declared as they were synced.
    """
    known = {table.name: table for table in ledger.routes()}
    refused = {}
    for contract in contracts:
        table = known.get(contract.id)
        facts = _with_source_of(table, contract) if table else None
        # No other table can have the target of one that is as it was: the ledger keeps it unique.
        if table and facts and facts != table.facts and (why := ledger.refused_change(facts)):
            refused[contract.id] = why
    return refused


def _with_source_of(known: LedgerRoute, contract: TableContract) -> RouteFacts:
    return replace(table_facts(contract, ""), source=known.facts.source)


def registered(route: Route) -> LedgerRoute:
    """Registers the route, with the bounds of its key ranges; raises TableChanged if they differ.

    A row would be in another cell than the ledger says.
    """
    known = route.ledger.register_route(route.facts)
    if isinstance(route.cut, KeyCut):
        route.ledger.cut_by_key(known, route.cut.bounds)
    return known


def recorded_cut(ledger: Ledger, route: LedgerRoute, order: KeyOrder) -> KeyCut | None:
    """Returns the key ranges that the route was cut into; None if none was recorded yet."""
    ranges = ledger.key_ranges(route)
    return KeyCut(tuple(each.low or "" for each in ranges[1:]), order) if ranges else None


def cell_key(cell: Cell) -> CellKey:
    """Returns the ledger's key of a cell; the ledger does not know how cells are cut."""
    return CellKey(cell.range.axis_start, cell.range.axis_end, cell.slice)


def recorded_cells(
    ledger: Ledger, route: LedgerRoute, cells: Sequence[Cell]
) -> Mapping[Cell, CellRecord]:
    """Reads what the ledger has of these cells; those it does not know are left out."""
    keys = {cell_key(cell): cell for cell in cells}
    start, end = min(key.start for key in keys), max(key.end for key in keys)
    records = ledger.cells(route, start, end)
    return {keys[record.cell]: record for record in records if record.cell in keys}


def part_of(batch: Batch, cell: Cell) -> Part:
    """Returns the part of the cell that its batch covers."""
    begin = cell.range.axis_start if batch.since is None else micros_at(batch.since)
    return Part(batch.seq, begin, micros_at(batch.upto))


def committed_part(commit: CellCommit, cell: Cell) -> Part:
    """Returns the part of the cell that is committed."""
    end = cell.range.axis_end if commit.is_closed else micros_at(commit.upto)
    return Part(commit.batch, cell.range.axis_start, end)
