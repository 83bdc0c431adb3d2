"""What a table's columns are, independent of how BigQuery, Arrow or Harper spell them."""

import hashlib
import json
from dataclasses import asdict, dataclass
from enum import StrEnum


class Kind(StrEnum):
    """The logical types: BigQuery's, and UNKNOWN for those it may add."""

    INT64 = "INT64"
    FLOAT64 = "FLOAT64"
    NUMERIC = "NUMERIC"
    BIGNUMERIC = "BIGNUMERIC"
    BOOL = "BOOL"
    STRING = "STRING"
    BYTES = "BYTES"
    TIMESTAMP = "TIMESTAMP"
    DATETIME = "DATETIME"
    DATE = "DATE"
    TIME = "TIME"
    JSON = "JSON"
    GEOGRAPHY = "GEOGRAPHY"
    INTERVAL = "INTERVAL"
    RANGE = "RANGE"
    STRUCT = "STRUCT"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column or nested field."""

    name: str  # Harper's attribute where the column is planned, else the source's own name
    kind: Kind
    repeated: bool = False
    required: bool = False
    fields: tuple["Column", ...] = ()  # of a STRUCT
    spelling: str = ""  # the source's own type name where the kind does not say it all
    description: str = ""
    max_length: int | None = None  # of a STRING or BYTES, where the source declares one
    source_name: str = ""  # only where the source calls it otherwise

    @property
    def read_as(self) -> str:
        """What the source calls it."""
        return self.source_name or self.name


@dataclass(frozen=True, kw_only=True)
class TableSchema:
    """A table's columns in order, and what its store says about how it is laid out."""

    columns: tuple[Column, ...]
    partition_field: str | None = None
    clustering: tuple[str, ...] = ()
    primary_key: tuple[str, ...] = ()
    is_table: bool = True  # not a view or the like, which only a query can read

    def fingerprint(self) -> str:
        """Equal for equal columns, in the same order and layout, in every release."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode("utf-8")).hexdigest()[:32]

    def column(self, name: str) -> Column:
        """KeyError if there is none of that name."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)
