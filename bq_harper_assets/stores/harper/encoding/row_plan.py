"""A row plan says how the rows of a table are named, identified and stored in Harper."""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from bq_harper_assets.contract.identifiers import ROW_METADATA
from bq_harper_assets.schema.logical import Kind
from bq_harper_assets.schema.table_plan import TablePlan
from bq_harper_assets.stores.harper.encoding.geography import geojson_texts
from bq_harper_assets.stores.harper.encoding.key_ids import key_ids
from bq_harper_assets.stores.harper.types import HARPER_KINDS, Form, HarperColumn, harper_columns
from bq_harper_assets.sync.arrays.arrow_memory import plain
from bq_harper_assets.sync.identity.faults import RowFault


@dataclass(frozen=True, kw_only=True)
class RowPlan:
    """A row plan has all that is needed to turn a source row into a Harper record."""

    columns: tuple[HarperColumn, ...]
    timestamp: str
    key: tuple[str, ...] = ()
    primary_key: str = "id"  # Harper's attribute; may be the only key column itself
    geojson: Callable[[pa.Array], pa.Array] | None = None  # turns WKT texts into GeoJSON texts
    flags_deletes: bool = False  # rows that are written lose their deletion mark
    id_columns: tuple[HarperColumn, ...] = ()  # what keyless ids are made of
    # Paths that rows may have besides; any other makes a row differ. None: this is not checked.
    others: frozenset[str] | None = None

    @classmethod
    def of(cls, plan: TablePlan) -> "RowPlan":
        """Returns the row plan of a planned table."""
        chosen = plan.selection
        return cls(
            columns=harper_columns(plan.columns),
            timestamp=chosen.timestamp.name,
            key=chosen.key,
            primary_key=chosen.primary_key,
            geojson=geojson_texts,
            flags_deletes=plan.flags_deletes,
            id_columns=harper_columns(plan.id_columns),
        )

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        for name in (self.timestamp, *self.key):
            if name not in names:
                raise ValueError(f"{name} is not among the columns {names}")
        if taken := sorted(set(ROW_METADATA) & set(names)):
            raise ValueError(f"columns named {taken} would overwrite the row's own metadata")
        if self.geojson is None and any(map(_has_geography, self.columns)):
            raise ValueError("a GEOGRAPHY column needs a function that gives GeoJSON")
        if self.primary_key in names and not self.key_is_stored_as_id:
            raise ValueError(
                f"column {self.primary_key} holds something else than the row's id; "
                "give Harper's primary key another name"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the columns' names in Harper, in order."""
        return tuple(column.name for column in self.columns)

    def named(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Returns rows that were read under the names that Harper has for their columns."""
        by_source = dict(zip(batch.schema.names, batch.columns, strict=True))
        arrays = [_without_other_fields(by_source[c.read_as], c) for c in self.columns]
        return pa.RecordBatch.from_arrays(arrays, list(self.names))

    def what_ids_are_made_of(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """Returns the columns that ids of rows without a key are made of; None means all."""
        if not self.id_columns or frozenset(self.id_columns) == frozenset(self.columns):
            return None
        arrays = [_without_other_fields(batch.column(c.name), c) for c in self.id_columns]
        return pa.RecordBatch.from_arrays(arrays, [c.name for c in self.id_columns])

    def ids_of_key(self, batch: pa.RecordBatch) -> tuple[pa.Array, tuple[RowFault, ...]] | None:
        """Returns ids that are the values of the key; None if ids are hashes."""
        column = self.id_column
        return None if column is None else key_ids(plain(batch.column(column.name)), column)

    @property
    def id_column(self) -> HarperColumn | None:
        """Returns the column whose value is the id; None if ids are hashes."""
        if len(self.key) != 1:
            return None
        column = next(column for column in self.columns if column.name == self.key[0])
        return column if HARPER_KINDS[column.kind].is_id and not column.repeated else None

    @property
    def key_is_stored_as_id(self) -> bool:
        """Says whether the primary key may be the key column itself."""
        column = self.id_column
        if column is None or column.name != self.primary_key:
            return False
        return column.form is Form.TEXT or column.kind is Kind.INT64


def _without_other_fields(array: pa.Array, column: HarperColumn) -> pa.Array:
    type_ = _pruned(array.type, column)
    return array if type_ == array.type else array.cast(type_)


def _pruned(type_: pa.DataType, column: HarperColumn) -> pa.DataType:
    """Returns the type with only the fields that the column has."""
    if not column.fields:
        return type_
    if pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(_pruned(type_.value_type, column)))
    fields = {field.name: field for field in type_}
    return pa.struct(
        [fields[c.name].with_type(_pruned(fields[c.name].type, c)) for c in column.fields]
    )


def _has_geography(column: HarperColumn) -> bool:
    return column.kind is Kind.GEOGRAPHY or any(map(_has_geography, column.fields))
