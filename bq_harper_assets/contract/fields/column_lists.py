"""Users write a list of columns as '*', one name, or several."""

from typing import Any

from bq_harper_assets.contract.fields.declared_model import FieldFault, Reads, Wrong
from bq_harper_assets.contract.identifiers import column_name

ALL_COLUMNS = ("*",)
_NAME = {"type": "string", "minLength": 1}
_LIST = {"type": "array", "items": _NAME, "minItems": 1, "uniqueItems": True}


def _columns(value: Any) -> tuple[str, ...]:
    if value == "*":
        return ALL_COLUMNS
    if not isinstance(value, list | tuple):
        raise ValueError("must be a list of column names, or '*' for all")
    if not value:
        raise ValueError("is an empty list: name the columns, or leave the key out for all")
    if list(value) == ["*"]:
        return ALL_COLUMNS
    return _distinct(value)


def _key(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (column_name(value),)
    if not isinstance(value, list | tuple) or not value:
        raise ValueError("must be a column name or a list; leave it out if rows have no key")
    return _distinct(value)


def _distinct(value: list[Any] | tuple[Any, ...]) -> tuple[str, ...]:
    names: list[str] = []
    faults: list[FieldFault] = []
    for at, item in enumerate(value):
        try:
            names.append(_one_more(item, names))
        except ValueError as error:
            faults.append(FieldFault((at,), str(error)))
    if faults:
        raise Wrong(*faults)
    return tuple(names)


def _one_more(item: Any, names: list[str]) -> str:
    if item == "*":
        raise ValueError("'*' means all columns and stands alone")
    return _not_twice(column_name(item), names)


def _not_twice(name: str, names: list[str]) -> str:
    if name.lower() in (other.lower() for other in names):
        raise ValueError("is listed twice (upper and lower case are the same): keep one")
    return name


def refuse_wrong_paths(value: Any) -> Any:
    """Returns the mapping by columns, or fields in them (address.zip), if each name is possible."""
    paths: list[str] = []
    faults: list[FieldFault] = []
    for path in value if isinstance(value, dict) else ():
        try:
            names = [column_name(name) for name in str(path).split(".")]
            paths.append(_not_twice(".".join(names), paths))
        except ValueError as error:
            faults.append(FieldFault((path,), str(error)))
    if faults:
        raise Wrong(*faults)
    return value


def _renames(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError("must be a block of old: new")
    faults: list[FieldFault] = []
    renames: dict[str, str] = {}
    for old, new in value.items():
        try:
            if column_name(old).lower() == column_name(new).lower():
                raise ValueError("is renamed to itself: take it out")
            renames[old] = _one_more(new, [*renames.values()])
        except ValueError as error:
            faults.append(FieldFault((old,), str(error)))
    if faults:
        raise Wrong(*faults)
    return renames


COLUMNS = Reads(_columns, {"anyOf": [{"const": "*"}, _LIST]})
KEY = Reads(_key, {"anyOf": [_NAME, _LIST]})
RENAMES = Reads(_renames, {"type": "object", "additionalProperties": _NAME})
