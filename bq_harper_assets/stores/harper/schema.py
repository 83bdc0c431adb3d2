"""Plans the table that a contract wants in Harper: its columns, its attributes and its id."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from bq_harper_assets.contract.identifiers import BATCH, DELETED_AT, HASH, ROW_METADATA, SYNCED_AT
from bq_harper_assets.contract.table import ColumnOverride, TableContract
from bq_harper_assets.schema.logical import Column, Kind, Spelling, TableSchema
from bq_harper_assets.schema.overrides import overrides_of
from bq_harper_assets.schema.table_plan import TablePlan, plan_table
from bq_harper_assets.schema.version import TableVersion
from bq_harper_assets.stores.harper.table import reserved_names
from bq_harper_assets.stores.harper.types import (
    HARPER_KINDS,
    Form,
    HarperType,
    fallback_warnings,
    harper_columns,
    type_of,
)

LONGEST_INDEXED = 256  # characters
_OVERRIDES = {
    "number": Form.NUMBER,
    "string": Form.TEXT,
    "boolean": Form.BOOLEAN,
    "object": Form.OBJECT,
}  # an array's elements have the form of their kind
# These are declared when the table is made, so that they can be searched and shown like any other.
_METADATA = {
    SYNCED_AT: HarperType.STRING,
    BATCH: HarperType.LONG,
    HASH: HarperType.STRING,
}


@dataclass(frozen=True)
class HarperTypes:
    """Says how Harper stores the columns of one contract, and what it cannot store."""

    contract: TableContract

    @property
    def own_names(self) -> Collection[str]:
        """Names what the sync itself writes into every record."""
        return ROW_METADATA

    @property
    def longest_indexed(self) -> int:
        """Returns how many characters a text may have whose column is indexed."""
        return LONGEST_INDEXED

    def spelling(self, column: Column, path: str) -> Spelling:
        """Returns a column's form by its override, else by the policies, else that of its kind."""
        native = Form.TEXT if column.kind in self._kept_as_text else HARPER_KINDS[column.kind].form
        form = self._forms.get(path, native)
        return Spelling(column.name, type_of(column.kind, form, column.repeated).value, form.value)

    def impossible_override(self, column: Column, override: ColumnOverride) -> str | None:
        """Says why a column cannot have the type that the contract asks for; None if it can."""
        if override.type is None:
            return None
        native = HARPER_KINDS[column.kind].form
        # Of a column that is text anyway both are the same.
        allowed = (
            ["array"] if column.repeated else [*dict.fromkeys((_override_of(native), "string"))]
        )
        if override.type in allowed:
            return None
        source = column.spelling or column.kind
        source = f"ARRAY<{source}>" if column.repeated else source
        return (
            f"is {source} in {self.contract.source.store}, which cannot be stored as"
            f" {override.type}; it can be {' or '.join(allowed)}"
        )

    def refusal_of_column(self, name: str) -> str | None:
        """Says why no attribute can have this name; None if one can."""
        return reserved_names.refusal_of_column(name)

    def refusal_of_field(self, name: str) -> str | None:
        """Says why no field inside an attribute can have this name; None if one can."""
        return reserved_names.refusal_of_field(name)

    def is_id(self, column: Column) -> bool:
        """Says whether a key of this column alone is the id of a record."""
        return HARPER_KINDS[column.kind].is_id

    def is_stored_as_id(self, column: Column) -> bool:
        """Says whether the id is the very value that the column's attribute has."""
        return column.kind is Kind.INT64 or self._form(column) is Form.TEXT

    def unindexable(self, column: Column) -> str | None:
        """Says why Harper cannot search by this column; None if it can."""
        if column.repeated:
            return "an array"
        if column.kind is Kind.JSON:
            return "JSON"
        if column.kind is Kind.STRUCT or self._form(column) is Form.OBJECT:
            return "an object"
        return None

    def warnings(self, columns: Sequence[Column]) -> Sequence[str]:
        """Warns of columns and fields that are stored as text because Harper lacks their type."""
        return tuple(fallback_warnings(columns))

    def _form(self, column: Column) -> Form:
        return Form(self.spelling(column, column.read_as).form)

    @cached_property
    def _forms(self) -> Mapping[str, Form]:
        return {
            path: _OVERRIDES[override.type]
            for path, override in overrides_of(self.contract).items()
            if override.type in _OVERRIDES
        }

    @cached_property
    def _kept_as_text(self) -> Collection[Kind]:
        values = self.contract.values
        whole = (Kind.INT64,) if values.int64 == "string" else ()
        decimal = (Kind.NUMERIC, Kind.BIGNUMERIC) if values.numeric == "string" else ()
        return whole + decimal


def _override_of(form: Form) -> str:
    return "string" if form is Form.TEXT else form.value


def harper_plan(
    contract: TableContract,
    schema: TableSchema,
    before: TableVersion | None = None,
    sampled_lengths: Mapping[str, int] | None = None,
) -> TablePlan:
    """Plans the version that follows `before`, as Harper stores it."""
    return plan_table(contract, schema, HarperTypes(contract), before, sampled_lengths)


@dataclass(frozen=True)
class PlannedAttribute:
    """A planned attribute is an attribute as it is declared when the table is made."""

    name: str
    type: HarperType
    indexed: bool = False


def attributes_of(plan: TablePlan) -> tuple[PlannedAttribute, ...]:
    """Gives the attributes that a planned table has, the primary key first."""
    return (
        PlannedAttribute(plan.primary_key, _id_type(plan)),
        *(
            PlannedAttribute(column.name, column.type, column.name in plan.indexed)
            for column in harper_columns(plan.columns)
            if column.name != plan.primary_key
        ),
        *(PlannedAttribute(name, type_) for name, type_ in _METADATA.items()),
        *((PlannedAttribute(DELETED_AT, HarperType.STRING),) if plan.flags_deletes else ()),
    )


def _id_type(plan: TablePlan) -> HarperType:
    """Keeps an INT64 key a number; every other id is text. Harper's own type ID refuses numbers."""
    found = plan.selection.id_column
    if found is None or found.kind is not Kind.INT64:
        return HarperType.STRING
    columns = harper_columns(plan.columns)
    return next(column.type for column in columns if column.name == found.name)
