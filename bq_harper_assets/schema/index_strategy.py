"""Decides which columns a target indexes, and why: each index makes every write dearer."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.schema.logical import Column, Kind, TableSchema
from bq_harper_assets.schema.overrides import overrides_of
from bq_harper_assets.schema.selection import Selection
from bq_harper_assets.schema.target_types import TargetTypes

NO_RULE = "no rule"
_NAMES = ("id", "created_at", "updated_at")
_TIME_WORDS = ("time", "timestamp", "datetime")
_DATE_WORDS = ("date", "datetime")
# A name is not enough: time_to_port is a length of time, is_date_known a yes or no.
_TIME_NAMED = (
    Kind.TIMESTAMP,
    Kind.DATETIME,
    Kind.DATE,
    Kind.TIME,
    Kind.INT64,
    Kind.STRING,
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\dA-Za-z_]+")


@dataclass(frozen=True)
class IndexDecision:
    """An index decision says whether a column is indexed, and by which rule.

    Reasons are timestampColumn, partition, cluster, override, name:<rule>, refused: <why> and no
    rule.
    """

    column: str
    indexed: bool
    reason: str


def decide_indexes(
    selection: Selection,
    schema: TableSchema,
    contract: TableContract,
    types: TargetTypes,
    sampled_lengths: Mapping[str, int] | None = None,
) -> tuple[IndexDecision, ...]:
    """Decides for each column; `sampled_lengths` has the longest text found in a column."""
    lengths = sampled_lengths or {}
    return tuple(
        _decide(column, selection, schema, contract, types, lengths) for column in selection.columns
    )


def _decide(
    column: Column,
    selection: Selection,
    schema: TableSchema,
    contract: TableContract,
    types: TargetTypes,
    lengths: Mapping[str, int],
) -> IndexDecision:
    name, source = column.name, column.read_as
    if name == contract.timestamp_column:
        return IndexDecision(name, True, "timestampColumn")
    if name == selection.primary_key:
        return IndexDecision(name, False, "refused: it is the primary key, which needs no other")
    override = overrides_of(contract).get(source)
    if override is not None and override.indexed is not None:
        return IndexDecision(name, override.indexed, "override")
    if why := types.unindexable(column):
        return IndexDecision(name, False, f"refused: {why}")
    # Users search by the columns that partition or cluster the table, however long their texts are.
    if source == schema.partition_field:
        return IndexDecision(name, True, "partition")
    if source in schema.clustering:
        return IndexDecision(name, True, "cluster")
    if why := _too_long(column, lengths.get(source), types.longest_indexed):
        return IndexDecision(name, False, f"refused: {why}")
    if rule := _name_rule(column):
        return IndexDecision(name, True, f"name:{rule}")
    return IndexDecision(name, False, NO_RULE)


def _too_long(column: Column, sampled: int | None, most: int) -> str | None:
    if column.kind in (Kind.STRING, Kind.BYTES, Kind.UNKNOWN):
        for length, said in ((column.max_length, "declared"), (sampled, "found")):
            if length is not None and length > most:
                return f"text of up to {length} characters ({said}), more than {most}"
    return None


def _name_rule(column: Column) -> str | None:
    name = column.read_as
    if name in _NAMES:
        return name
    if name.endswith("_id"):
        return "_id"
    if name.endswith("Id"):
        return "Id"
    if column.kind not in _TIME_NAMED:
        return None
    words = {word.lower() for word in _WORD.findall(name)}
    if words.intersection(_TIME_WORDS):
        return "time"
    if words.intersection(_DATE_WORDS):
        return "date"
    return None
