"""Describes a table's columns independently of how stores and Arrow spell their types."""

import hashlib
import json
from dataclasses import asdict, dataclass
from enum import StrEnum


class Kind(StrEnum):
    """A kind is a logical type, or UNKNOWN for a type of a store that has no kind here."""

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


TIME_KINDS = (Kind.TIMESTAMP, Kind.DATETIME, Kind.DATE)  # what can put a row into a window
# Two values of these may look different and be equal, or have no order: they identify no row.
NO_KEYS = frozenset({Kind.JSON, Kind.GEOGRAPHY, Kind.STRUCT, Kind.RANGE, Kind.UNKNOWN})
# Only the source's own name of the type says which one it is: RANGE<DATE>.
OF_SEVERAL_TYPES = frozenset({Kind.RANGE, Kind.UNKNOWN})
WIDER_KINDS = {Kind.NUMERIC: Kind.BIGNUMERIC}  # every value of the one is a value of the other


@dataclass(frozen=True)
class Spelling:
    """A spelling is what a store calls a column, and the type that it has there."""

    name: str
    type: str = ""  # in the store's words; empty where they are those of the kind
    form: str = ""  # how values are written, where the type does not say it


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column is one column of a table, or one field inside a STRUCT."""

    name: str  # the target's name where the column is planned, else the source's own
    kind: Kind
    repeated: bool = False
    required: bool = False
    fields: tuple["Column", ...] = ()  # the fields of a STRUCT
    spelling: str = ""  # the source's own type name where the kind does not say it all
    description: str = ""
    max_length: int | None = None  # the length that the source declares for a STRING or BYTES
    source_name: str = ""  # set only where the source has another name for it

    @property
    def read_as(self) -> str:
        """Gives the name that the column has in the source."""
        return self.source_name or self.name


@dataclass(frozen=True, kw_only=True)
class TableSchema:
    """A table schema is a table's columns in order, with what its store says about its layout."""

    columns: tuple[Column, ...]
    partition_field: str | None = None
    clustering: tuple[str, ...] = ()
    primary_key: tuple[str, ...] = ()
    is_table: bool = True  # False for a view or the like, which only a query can read

    def fingerprint(self) -> str:
        """Hashes columns, their order and the layout; equal schemas are equal in every release."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode("utf-8")).hexdigest()[:32]

    def column(self, name: str) -> Column:
        """Finds a column by its name; raises KeyError if there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)
