"""Says how Harper stores each column: the attribute's type, and what its values are in JSON."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from bq_harper_assets.contract.table import ColumnOverride, TableContract, ValuePolicies
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.schema.overrides import overrides_of


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


NATIVE = {
    Kind.INT64: Form.NUMBER,
    Kind.FLOAT64: Form.NUMBER,
    Kind.NUMERIC: Form.NUMBER,
    Kind.BIGNUMERIC: Form.NUMBER,
    Kind.BOOL: Form.BOOLEAN,
    Kind.JSON: Form.OBJECT,
    Kind.GEOGRAPHY: Form.OBJECT,
    Kind.STRUCT: Form.OBJECT,
}  # every other kind is stored as text
_OVERRIDES = {
    "number": Form.NUMBER,
    "string": Form.TEXT,
    "boolean": Form.BOOLEAN,
    "object": Form.OBJECT,
}
_FALLBACK = (Kind.INTERVAL, Kind.RANGE, Kind.UNKNOWN)


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
        native = NATIVE.get(self.kind, Form.TEXT)
        if self.form not in (native, Form.TEXT):
            raise ValueError(
                f"{self.name}: {self.kind} is stored as {native} or text, not {self.form}"
            )

    @classmethod
    def of(
        cls,
        column: Column,
        as_text: Collection[Kind] = (),
        forms: Mapping[str, Form] | None = None,
        path: str = "",
    ) -> "HarperColumn":
        """Gives the column in its native form; kinds in `as_text` are stored as text at any depth.

        `forms` sets the form of single columns and fields, by their path in the source.
        """
        path = f"{path}.{column.name}" if path else column.read_as
        native = Form.TEXT if column.kind in as_text else NATIVE.get(column.kind, Form.TEXT)
        form = (forms or {}).get(path, native)
        fields = tuple(cls.of(field, as_text, forms, path) for field in column.fields)
        return cls(
            name=column.name,
            kind=column.kind,
            form=form,
            repeated=column.repeated,
            fields=fields,
            source_name=column.source_name,
        )

    @property
    def read_as(self) -> str:
        """Gives the name that the column has in the source."""
        return self.source_name or self.name

    @property
    def type(self) -> HarperType:
        """Gives the type that the column's attribute is declared with."""
        if self.repeated or self.form is Form.OBJECT:
            return HarperType.ANY
        if self.form is Form.TEXT:
            return HarperType.STRING
        if self.form is Form.BOOLEAN:
            return HarperType.BOOLEAN
        return HarperType.LONG if self.kind is Kind.INT64 else HarperType.FLOAT


def harper_column(column: Column, contract: TableContract) -> HarperColumn:
    """Gives the stored column that follows from the contract's overrides and value policies."""
    forms = {
        path: _OVERRIDES[override.type]
        for path, override in overrides_of(contract).items()
        if override.type in _OVERRIDES  # an array's elements have the form of their kind
    }
    return HarperColumn.of(column, _kept_as_text(contract.values), forms)


def form_of(column: Column, contract: TableContract) -> Form:
    """Gives a top-level column's form: from its override, else from the policies, else native."""
    return harper_column(column, contract).form


def impossible_override(column: Column, override: ColumnOverride) -> str | None:
    """Says why the source's type cannot be stored as the type asked for; None if it can."""
    if override.type is None:
        return None
    native = NATIVE.get(column.kind, Form.TEXT)
    # Of a column that is text anyway both are the same.
    allowed = ["array"] if column.repeated else [*dict.fromkeys((_override_of(native), "string"))]
    if override.type in allowed:
        return None
    source = column.spelling or column.kind
    source = f"ARRAY<{source}>" if column.repeated else source
    return (
        f"is {source} in BigQuery, which cannot be stored as {override.type};"
        f" it can be {' or '.join(allowed)}"
    )


def fallback_warnings(columns: tuple[Column, ...], path: str = "") -> Iterator[str]:
    """Warns of each column, at any depth, that is stored as text because Harper lacks its type."""
    for column in columns:
        name = f"{path}.{column.name}" if path else column.name
        if column.kind in _FALLBACK:
            known = "an unknown type" if column.kind is Kind.UNKNOWN else "no type of Harper's"
            yield f"{name} is {column.spelling or column.kind}, {known}: it is stored as text"
        yield from fallback_warnings(column.fields, name)


def _override_of(form: Form) -> str:
    return "string" if form is Form.TEXT else form.value


def _kept_as_text(values: ValuePolicies) -> tuple[Kind, ...]:
    whole = (Kind.INT64,) if values.int64 == "string" else ()
    decimal = (Kind.NUMERIC, Kind.BIGNUMERIC) if values.numeric == "string" else ()
    return whole + decimal
