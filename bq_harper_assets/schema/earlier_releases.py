"""Reads columns as earlier releases recorded them: it speaks of their JSON, which never changes.

The first release recorded no form and no type of its target. Later ones let single fields wait for
a person's decision, where now the column waits for all of them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

_LIVE, _WAITING = "live", "waiting"
# Nothing is added here for a new kind, because the first release knew none.
_NUMBERS = {"INT64": "Long", "FLOAT64": "Float", "NUMERIC": "Float", "BIGNUMERIC": "Float"}
_OBJECTS = ("JSON", "GEOGRAPHY", "STRUCT")


def as_first_stored(kind: str, repeated: bool) -> dict[str, str]:
    """Returns the type and the form that the first release's target had for a column."""
    type_, form = "String", "text"
    if kind in _NUMBERS:
        type_, form = _NUMBERS[kind], "number"
    elif kind == "BOOL":
        type_, form = "Boolean", "boolean"
    elif kind in _OBJECTS:
        type_, form = "Any", "object"
    return {"type": "Any" if repeated else type_, "form": form}


def has_offer(field: Mapping[str, Any]) -> bool:
    """Says whether a field, or one inside it, waits for a person's decision."""
    return _is_offered(field) or any(map(has_offer, field["fields"]))


def synced_fields(fields: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Gives the fields that are synced, among them those that a rollback of old had set aside.

    Rows hold values of these: a field that is not synced would lose them at the next upsert.
    """
    return [
        {
            **each,
            "state": _LIVE if each.get("state") == _WAITING else each.get("state", _LIVE),
            "fields": synced_fields(each["fields"]),
        }
        for each in fields
        if not _is_offered(each)
    ]


def decided(field: Mapping[str, Any]) -> dict[str, Any]:
    """Gives a field as it is once somebody has decided to sync it."""
    return {
        **field,
        "state": _LIVE,
        "written": True,
        "fields": [*map(decided, field["fields"])],
    }


def _is_offered(field: Mapping[str, Any]) -> bool:
    """Says whether this field waits, and no row holds a value of it."""
    return field.get("state") == _WAITING and not field.get("written", True)
