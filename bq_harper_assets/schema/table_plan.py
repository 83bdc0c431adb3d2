"""All that a contract and a source schema decide about one Harper table."""

from collections.abc import Mapping
from dataclasses import dataclass

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.schema.harper_types import (
    HarperColumn,
    HarperType,
    fallback_warnings,
    harper_column,
)
from bq_harper_assets.schema.index_strategy import IndexDecision, decide_indexes
from bq_harper_assets.schema.logical import Kind, TableSchema
from bq_harper_assets.schema.selection import Selection, select_columns

# Declared from the first day, so that they can be searched and shown like any other.
_METADATA = {
    "_syncedAt": HarperType.STRING,
    "_batch": HarperType.LONG,
    "_hash": HarperType.STRING,
}
DELETED_AT = "_deletedAt"  # only where rows gone from the source are marked instead of deleted


@dataclass(frozen=True)
class PlannedAttribute:
    """An attribute as it is declared when the table is made."""

    name: str
    type: HarperType
    indexed: bool = False


@dataclass(frozen=True)
class TablePlan:
    """The Harper table that a contract wants."""

    table: str
    selection: Selection
    columns: tuple[HarperColumn, ...]
    indexes: tuple[IndexDecision, ...]
    attributes: tuple[PlannedAttribute, ...]  # the primary key first
    warnings: tuple[str, ...] = ()

    @property
    def primary_key(self) -> str:
        return self.selection.primary_key

    @property
    def flags_deletes(self) -> bool:
        """Whether rows gone from the source are marked instead of deleted."""
        return any(attribute.name == DELETED_AT for attribute in self.attributes)

    @property
    def indexed(self) -> tuple[str, ...]:
        """The attributes that must have an index."""
        return tuple(attribute.name for attribute in self.attributes if attribute.indexed)


def plan_table(
    contract: TableContract,
    schema: TableSchema,
    sampled_lengths: Mapping[str, int] | None = None,
) -> TablePlan:
    """SchemaMismatch if the contract does not fit the schema."""
    selection = select_columns(contract, schema)
    columns = tuple(harper_column(column, contract) for column in selection.columns)
    indexes = decide_indexes(selection, schema, contract, sampled_lengths)
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
        contract.target_table,
        selection,
        columns,
        indexes,
        tuple(attributes),
        tuple(fallback_warnings(selection.columns)),
    )


def _id_type(selection: Selection, columns: tuple[HarperColumn, ...]) -> HarperType:
    """An INT64 key stays a number; every other id is text. Harper's own ID would refuse numbers."""
    if selection.id_column is None or selection.id_column.kind is not Kind.INT64:
        return HarperType.STRING
    return next(column.type for column in columns if column.name == selection.id_column.name)
