"""Says of each logical kind how Harper stores it: a new kind is one row of HARPER_KINDS.

A STRUCT is stored by its fields and a GEOGRAPHY needs a function that gives GeoJSON, so that
encoding/column_values.py and reading/from_harper.py know these two by name.
"""

import base64
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import StrEnum
from typing import Any

import pyarrow as pa

from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.schema.version import VersionColumn
from bq_harper_assets.stores.harper.encoding.bytes_text import base64_text
from bq_harper_assets.stores.harper.encoding.intervals_and_ranges import interval_texts, range_texts
from bq_harper_assets.stores.harper.encoding.single_values import (
    Stored,
    as_it_is,
    decimals,
    floats,
    integer_texts,
    integers,
    json_values,
    unknown,
)
from bq_harper_assets.stores.harper.encoding.text_forms import (
    read_interval,
    read_range,
    strictly,
)
from bq_harper_assets.stores.harper.encoding.times import (
    date_text,
    datetime_texts,
    time_texts,
    timestamp_texts,
)
from bq_harper_assets.sync.identity.decimals import decimal_texts


class Form(StrEnum):
    """A form says what a value is in Harper's JSON; a repeated column is an array of them."""

    NUMBER = "number"
    TEXT = "text"
    BOOLEAN = "boolean"
    OBJECT = "object"  # a column of kind JSON may hold any JSON value


class HarperType(StrEnum):
    """A Harper type is one we declare: Harper checks it at each write, except Any."""

    LONG = "Long"  # whole numbers from -2^53 to 2^53, which are those that JSON keeps exactly
    FLOAT = "Float"
    BOOLEAN = "Boolean"
    # Harper's Date is never used: it drops microseconds, and stores null for a text it cannot read.
    STRING = "String"
    ANY = "Any"


@dataclass(frozen=True, kw_only=True)
class StoredKind:
    """Says how Harper stores the values of a kind: in its own form, or as text if that is asked."""

    form: Form = Form.TEXT
    type: HarperType = HarperType.STRING
    values: Callable[[pa.Array, str], Stored] = as_it_is  # in its own form; the path is for faults
    texts: Callable[[pa.Array], pa.Array] | None = None  # None: as text, its JSON is stored
    of_text: Callable[[str], Any] | None = None  # reads a text back; raises ValueError
    of_json: Callable[[Any], Any] | None = None  # reads another form back; raises ValueError
    is_id: bool = False  # a key of this kind alone is the row's id; other ids are hashes
    has_counterpart: bool = True  # Harper has a type or a form that means the same


def _whole(value: Any) -> int:
    if _number(value) != int(value):
        raise ValueError("not a whole number")
    return int(value)


def _number(value: Any) -> float | int:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueError("not a number")
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("not a boolean")
    return value


_DECIMAL = StoredKind(
    form=Form.NUMBER,
    type=HarperType.FLOAT,
    values=decimals,
    texts=decimal_texts,
    of_text=strictly(Decimal),
    # The shortest text of a double holds the 15 digits that were written.
    of_json=lambda value: Decimal(repr(_number(value))),
    is_id=True,
)
HARPER_KINDS: dict[Kind, StoredKind] = {
    Kind.INT64: StoredKind(
        form=Form.NUMBER,
        type=HarperType.LONG,
        values=integers,
        texts=integer_texts,
        of_text=strictly(int),
        of_json=_whole,
        is_id=True,
    ),
    Kind.FLOAT64: StoredKind(
        form=Form.NUMBER,
        type=HarperType.FLOAT,
        values=floats,
        of_json=lambda value: float(_number(value)),
    ),
    Kind.NUMERIC: _DECIMAL,
    Kind.BIGNUMERIC: _DECIMAL,
    Kind.BOOL: StoredKind(form=Form.BOOLEAN, type=HarperType.BOOLEAN, of_json=_boolean),
    Kind.STRING: StoredKind(is_id=True),
    Kind.BYTES: StoredKind(texts=base64_text, of_text=strictly(base64.b64decode), is_id=True),
    # A zone that is missing, or too much, is noticed when the value is written again.
    Kind.TIMESTAMP: StoredKind(
        texts=timestamp_texts,
        of_text=strictly(lambda text: datetime.fromisoformat(text).replace(tzinfo=UTC)),
        is_id=True,
    ),
    Kind.DATETIME: StoredKind(
        texts=datetime_texts,
        of_text=strictly(lambda text: datetime.fromisoformat(text).replace(tzinfo=None)),
        is_id=True,
    ),
    Kind.DATE: StoredKind(texts=date_text, of_text=strictly(date.fromisoformat), is_id=True),
    Kind.TIME: StoredKind(texts=time_texts, of_text=strictly(time.fromisoformat), is_id=True),
    Kind.JSON: StoredKind(
        form=Form.OBJECT,
        type=HarperType.ANY,
        values=json_values,
        texts=lambda values: values,
        of_json=lambda value: value,
    ),
    Kind.GEOGRAPHY: StoredKind(form=Form.OBJECT, type=HarperType.ANY),
    Kind.INTERVAL: StoredKind(texts=interval_texts, of_text=read_interval, has_counterpart=False),
    Kind.RANGE: StoredKind(texts=range_texts, of_text=strictly(read_range), has_counterpart=False),
    Kind.STRUCT: StoredKind(form=Form.OBJECT, type=HarperType.ANY),
    Kind.UNKNOWN: StoredKind(texts=unknown, has_counterpart=False),
}


@dataclass(frozen=True, kw_only=True)
class HarperColumn:
    """A Harper column is a column or nested field as Harper stores it."""

    name: str
    kind: Kind
    form: Form
    repeated: bool = False
    fields: tuple["HarperColumn", ...] = ()
    source_name: str = ""  # set only where the source has another name for it

    def __post_init__(self) -> None:
        native = HARPER_KINDS[self.kind].form
        if self.form not in (native, Form.TEXT):
            raise ValueError(
                f"{self.name}: {self.kind} is stored as {native} or text, not {self.form}"
            )

    @classmethod
    def of(cls, column: VersionColumn) -> "HarperColumn":
        """Gives the column of a version as Harper stores it."""
        return cls(
            name=column.name,
            kind=column.kind,
            form=Form(column.target.form),
            repeated=column.repeated,
            fields=tuple(cls.of(field) for field in column.fields),
            source_name="" if column.source.name == column.name else column.source.name,
        )

    @property
    def read_as(self) -> str:
        """Gives the name that the column has in the source."""
        return self.source_name or self.name

    @property
    def type(self) -> HarperType:
        """Gives the type that the column's attribute is declared with."""
        return type_of(self.kind, self.form, self.repeated)


def type_of(kind: Kind, form: Form, repeated: bool) -> HarperType:
    """Gives the type that an attribute is declared with which holds such values."""
    if repeated:
        return HarperType.ANY
    return HARPER_KINDS[kind].type if form is HARPER_KINDS[kind].form else HarperType.STRING


def harper_columns(columns: Sequence[VersionColumn]) -> tuple[HarperColumn, ...]:
    """Gives the columns of a version as Harper stores them."""
    return tuple(map(HarperColumn.of, columns))


def fallback_warnings(columns: Sequence[Column], path: str = "") -> Iterator[str]:
    """Warns of each column, at any depth, that is stored as text because Harper lacks its type."""
    for column in columns:
        name = f"{path}.{column.name}" if path else column.name
        if not HARPER_KINDS[column.kind].has_counterpart:
            known = "an unknown type" if column.kind is Kind.UNKNOWN else "no type of Harper's"
            yield f"{name} is {column.spelling or column.kind}, {known}: it is stored as text"
        yield from fallback_warnings(column.fields, name)


def storage_note(column: VersionColumn) -> str:
    """Says why a column is not stored as its type has it; empty if it is."""
    alone = replace(column.logical, fields=())
    if warning := next(fallback_warnings((alone,)), None):
        return warning.partition(", ")[2]
    if column.target.form == Form.TEXT and HARPER_KINDS[column.kind].form is not Form.TEXT:
        return "as text: schemaOverrides or values say so"
    return ""


def read_text(kind: Kind, text: str) -> Any:
    """Reads the value that a text stands for; raises ValueError if no value of the kind has it."""
    read = HARPER_KINDS[kind].of_text
    return text if read is None else read(text)
