"""Columns as Harper stores them, made of columns of a source."""

from collections.abc import Collection

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.schema.version import VersionColumn
from bq_harper_assets.stores.harper.schema import HarperTypes
from bq_harper_assets.stores.harper.types import HARPER_KINDS, Form, HarperColumn


def harper_column(column: Column, contract: TableContract) -> HarperColumn:
    """The column as the contract has it stored."""
    return HarperColumn.of(VersionColumn.of(column, HarperTypes(contract).spelling))


def native_column(column: Column, as_text: Collection[Kind] = ()) -> HarperColumn:
    """The column in the form of its kind; kinds in `as_text` are text at any depth."""
    return HarperColumn(
        name=column.name,
        kind=column.kind,
        form=Form.TEXT if column.kind in as_text else HARPER_KINDS[column.kind].form,
        repeated=column.repeated,
        fields=tuple(native_column(field, as_text) for field in column.fields),
        source_name=column.source_name,
    )
