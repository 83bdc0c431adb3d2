"""Completes columns that the first release recorded: it did not record how its target stored them.

Nothing is added here for a new kind, because the first release knew none.
"""

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
