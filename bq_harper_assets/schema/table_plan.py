"""Plans one Harper table from a contract and the schema of its source."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from bq_harper_assets.contract.identifiers import BATCH, DELETED_AT, HASH, SYNCED_AT
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.schema.evolution import evolve
from bq_harper_assets.schema.harper_types import (
    HarperColumn,
    HarperType,
    fallback_warnings,
    harper_column,
)
from bq_harper_assets.schema.index_strategy import IndexDecision, decide_indexes
from bq_harper_assets.schema.logical import Column, Kind, TableSchema
from bq_harper_assets.schema.schema_rules import refuse_broken_rows, rules_of
from bq_harper_assets.schema.selection import Selection, select_columns
from bq_harper_assets.schema.version import Layout, TableVersion, VersionColumn, paths_of

# These are declared when the table is made, so that they can be searched and shown like any other.
_METADATA = {
    SYNCED_AT: HarperType.STRING,
    BATCH: HarperType.LONG,
    HASH: HarperType.STRING,
}
_Nested = TypeVar("_Nested", Column, HarperColumn)


@dataclass(frozen=True)
class PlannedAttribute:
    """A planned attribute is an attribute as it is declared when the table is made."""

    name: str
    type: HarperType
    indexed: bool = False


@dataclass(frozen=True, kw_only=True)
class TablePlan:
    """A table plan describes the Harper table that a contract wants."""

    table: str
    selection: Selection
    columns: tuple[HarperColumn, ...]
    indexes: tuple[IndexDecision, ...]
    attributes: tuple[PlannedAttribute, ...]  # the primary key first
    version: TableVersion
    warnings: tuple[str, ...] = ()
    source_fingerprint: str = ""  # counts the whole schema of the source

    @property
    def primary_key(self) -> str:
        return self.selection.primary_key

    @property
    def id_columns(self) -> tuple[Column, ...]:
        """Gives the columns that a keyless table's ids are made of, without later fields."""
        return _within(self.selection.columns, self.version.id_paths)

    @property
    def stored_id_columns(self) -> tuple[HarperColumn, ...]:
        """Gives the columns that a keyless table's ids are made of, as Harper stores them."""
        return _within(self.columns, self.version.id_paths)

    @property
    def flags_deletes(self) -> bool:
        """Says whether rows gone from the source are marked instead of deleted."""
        return any(attribute.name == DELETED_AT for attribute in self.attributes)

    @property
    def indexed(self) -> tuple[str, ...]:
        """Names the attributes that must have an index."""
        return tuple(attribute.name for attribute in self.attributes if attribute.indexed)


def plan_table(
    contract: TableContract,
    schema: TableSchema,
    before: TableVersion | None = None,
    sampled_lengths: Mapping[str, int] | None = None,
) -> TablePlan:
    """Plans the version that follows `before`; SchemaMismatch if contract and source do not fit.

    SchemaRefused if rows would get other ids or windows.
    """
    chosen = select_columns(contract, schema, before)
    found = [_as_found(column, contract) for column in chosen.columns]
    columns = found if before is None else evolve(before, found, rules_of(contract, before))
    if before is not None:
        refuse_broken_rows(contract, before, columns, chosen)
    selection = replace(chosen, columns=tuple(c.logical for c in columns if c.is_live))
    indexes = decide_indexes(selection, schema, contract, sampled_lengths)
    indexed = {decision.column for decision in indexes if decision.indexed}
    planned = _planned(
        contract,
        selection,
        indexes,
        TableVersion(
            columns=tuple(
                replace(c, indexed=c.name in indexed) if c.is_live else c for c in columns
            ),
            key=selection.key,
            primary_key=selection.primary_key,
            id_paths=before.id_paths
            if before and before.id_paths
            else _id_paths(selection, columns),
            layout=Layout(schema.partition_field, schema.clustering, schema.primary_key),
            not_selected=tuple(
                c.name for c in schema.columns if c.name not in {f.source for f in found}
            ),
        ),
    )
    return replace(planned, source_fingerprint=schema.fingerprint())


def restricted(plan: TablePlan, paths: Collection[str]) -> TablePlan:
    """Limits the plan to these paths, to compare rows that were synced without the others."""
    selection = replace(plan.selection, columns=_within(plan.selection.columns, paths))
    return replace(plan, selection=selection, columns=_within(plan.columns, paths))


def named_as(plan: TablePlan, then: TableVersion) -> TablePlan:
    """Gives the same columns the names that the source had for them in an earlier version."""
    selection = replace(plan.selection, columns=_renamed(plan.selection.columns, then))
    return replace(plan, selection=selection, columns=_renamed(plan.columns, then))


def _renamed(columns: tuple[_Nested, ...], then: TableVersion) -> tuple[_Nested, ...]:
    names = {column.name: column.logical.source_name for column in then.columns}
    return tuple(replace(column, source_name=names.get(column.name, "")) for column in columns)


def _within(
    columns: tuple[_Nested, ...], paths: Collection[str], above: str = ""
) -> tuple[_Nested, ...]:
    return tuple(
        replace(column, fields=_within(column.fields, paths, f"{above}{column.name}."))
        for column in columns
        if f"{above}{column.name}" in paths
    )


def _as_found(column: Column, contract: TableContract) -> VersionColumn:
    return VersionColumn.of(column, harper_column(column, contract))


def _id_paths(selection: Selection, columns: Sequence[VersionColumn]) -> tuple[str, ...]:
    return () if selection.key else tuple(paths_of(c for c in columns if c.is_live))


def _planned(
    contract: TableContract,
    selection: Selection,
    indexes: tuple[IndexDecision, ...],
    version: TableVersion,
) -> TablePlan:
    columns = tuple(column.stored for column in version.live)
    indexed = {decision.column for decision in indexes if decision.indexed}
    attributes = [
        PlannedAttribute(selection.primary_key, _id_type(selection, columns)),
        *(
            PlannedAttribute(column.name, column.type, column.name in indexed)
            for column in columns
            if column.name != selection.primary_key
        ),
        *(PlannedAttribute(name, type_) for name, type_ in _METADATA.items()),
        *((PlannedAttribute(DELETED_AT, HarperType.STRING),) if contract.deletes == "flag" else ()),
    ]
    return TablePlan(
        table=contract.target.table,
        selection=selection,
        columns=columns,
        indexes=indexes,
        attributes=tuple(attributes),
        version=version,
        warnings=tuple(fallback_warnings(selection.columns)),
    )


def _id_type(selection: Selection, columns: tuple[HarperColumn, ...]) -> HarperType:
    """Keeps an INT64 key a number; every other id is text. Harper's own type ID refuses numbers."""
    if selection.id_column is None or selection.id_column.kind is not Kind.INT64:
        return HarperType.STRING
    return next(column.type for column in columns if column.name == selection.id_column.name)
