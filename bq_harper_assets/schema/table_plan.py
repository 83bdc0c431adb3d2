"""Plans a target's table from a contract and the schema of its source."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.schema.evolution import evolve
from bq_harper_assets.schema.index_strategy import IndexDecision, decide_indexes
from bq_harper_assets.schema.logical import Column, Spelling, TableSchema
from bq_harper_assets.schema.schema_rules import refuse_broken_rows, rules_of
from bq_harper_assets.schema.selection import Selection, select_columns
from bq_harper_assets.schema.target_types import TargetTypes
from bq_harper_assets.schema.version import (
    Layout,
    StorePair,
    TableVersion,
    VersionColumn,
    paths_of,
)


@dataclass(frozen=True, kw_only=True)
class TablePlan:
    """A table plan says what is read of a source, and how its columns are called in the target."""

    table: str  # the target's
    selection: Selection
    columns: tuple[VersionColumn, ...]
    indexes: tuple[IndexDecision, ...]
    version: TableVersion
    flags_deletes: bool  # rows gone from the source are marked instead of deleted
    warnings: tuple[str, ...] = ()
    source_fingerprint: str = ""  # counts the whole schema of the source

    @property
    def primary_key(self) -> str:
        return self.selection.primary_key

    @property
    def id_columns(self) -> tuple[VersionColumn, ...]:
        """Gives the columns that a keyless table's ids are made of, without later fields."""
        return _within(self.columns, self.version.id_paths)

    @property
    def indexed(self) -> tuple[str, ...]:
        """Names the columns that must have an index in the target."""
        return tuple(
            decision.column
            for decision in self.indexes
            if decision.indexed and decision.column != self.primary_key
        )


class Planner(Protocol):
    """A planner plans the tables of one target store."""

    def __call__(
        self, contract: TableContract, schema: TableSchema, before: TableVersion | None = None
    ) -> TablePlan:
        """Plans the version that follows `before`."""
        ...


def plan_table(
    contract: TableContract,
    schema: TableSchema,
    types: TargetTypes,
    before: TableVersion | None = None,
    sampled_lengths: Mapping[str, int] | None = None,
) -> TablePlan:
    """Plans the version that follows `before`; SchemaMismatch if contract and source do not fit.

    SchemaRefused if rows would get other ids or windows.
    """
    chosen = select_columns(contract, schema, types, before)
    found = [VersionColumn.of(column, types.spelling) for column in chosen.columns]
    columns = found if before is None else evolve(before, found, rules_of(contract, before, types))
    if before is not None:
        refuse_broken_rows(contract, before, columns, chosen)
    selection = replace(chosen, columns=tuple(c.logical for c in columns if c.is_live))
    indexes = decide_indexes(selection, schema, contract, types, sampled_lengths)
    indexed = {decision.column for decision in indexes if decision.indexed}
    version = TableVersion(
        columns=tuple(replace(c, indexed=c.name in indexed) if c.is_live else c for c in columns),
        key=selection.key,
        primary_key=selection.primary_key,
        id_paths=before.id_paths if before and before.id_paths else _id_paths(selection, columns),
        layout=Layout(schema.partition_field, schema.clustering, schema.primary_key),
        not_selected=tuple(
            c.name for c in schema.columns if c.name not in {f.source.name for f in found}
        ),
        stores=StorePair(contract.source.store, contract.target.store),
    )
    return TablePlan(
        table=contract.target.table,
        selection=selection,
        columns=version.live,
        indexes=indexes,
        version=version,
        flags_deletes=contract.deletes == "flag",
        warnings=tuple(types.warnings(selection.columns)),
        source_fingerprint=schema.fingerprint(),
    )


def restricted(plan: TablePlan, paths: Collection[str]) -> TablePlan:
    """Limits the plan to these paths, to compare rows that were synced without the others."""
    return _with_columns(plan, _within(plan.columns, paths))


def named_as(plan: TablePlan, then: TableVersion) -> TablePlan:
    """Gives the same columns the names that the source had for them in an earlier version."""
    names = {column.name: column.source.name for column in then.columns}
    return _with_columns(
        plan,
        tuple(
            replace(
                column, source=Spelling(names.get(column.name, column.name), column.source.type)
            )
            for column in plan.columns
        ),
    )


def _with_columns(plan: TablePlan, columns: tuple[VersionColumn, ...]) -> TablePlan:
    selection = replace(plan.selection, columns=logical_columns(columns))
    return replace(plan, selection=selection, columns=columns)


def logical_columns(columns: Sequence[VersionColumn]) -> tuple[Column, ...]:
    """Describes the columns for reading them from the source."""
    return tuple(column.logical for column in columns)


def _within(
    columns: tuple[VersionColumn, ...], paths: Collection[str], above: str = ""
) -> tuple[VersionColumn, ...]:
    return tuple(
        replace(column, fields=_within(column.fields, paths, f"{above}{column.name}."))
        for column in columns
        if f"{above}{column.name}" in paths
    )


def _id_paths(selection: Selection, columns: Sequence[VersionColumn]) -> tuple[str, ...]:
    return () if selection.key else tuple(paths_of(c for c in columns if c.is_live))
