"""Column names that cannot be kept in Harper, and why."""

from bq_harper_assets.contract.identifiers import ROW_METADATA

LONGEST_NAME = 250  # bytes of UTF-8; Harper answers 400 to a longer attribute
# Harper 4.7.29 answers 400 to a record that has one: what every JavaScript object inherits.
_INHERITED = frozenset(
    {
        "__defineGetter__",
        "__defineSetter__",
        "__lookupGetter__",
        "__lookupSetter__",
        "__proto__",
        "constructor",
        "hasOwnProperty",
        "isPrototypeOf",
        "propertyIsEnumerable",
        "toLocaleString",
        "toString",
        "valueOf",
    }
)
# Taken when written, and then such a row is an error message or missing when it is read; declared
# in create_table, `then` stops a server thread for good.
_CALLED_WHEN_READ = frozenset({"then", "toJSON"})
# Harper fills these itself and drops what was sent; an upsert with one of the others is a 500.
_KEPT_BY_HARPER = frozenset({"__createdtime__", "__updatedtime__"})
_CALLED_WHEN_WRITTEN = frozenset({"getChanges", "getRecord"})
_REFUSED_NESTED = frozenset({"__proto__", "then"})


def refusal_of_column(name: str) -> str | None:
    """Why a top-level column of this name cannot be stored; None if it can."""
    for reserved in ROW_METADATA:
        if name.lower() == reserved.lower():
            return f"{reserved} is written by the sync into every record"
    if name in _INHERITED:
        return "Harper refuses an attribute of this name"
    if name in _CALLED_WHEN_READ:
        return "Harper calls an attribute of this name as a function when the row is read"
    if name in _KEPT_BY_HARPER:
        return "Harper keeps its own time in an attribute of this name"
    if name in _CALLED_WHEN_WRITTEN:
        return "Harper fails to write a record with an attribute of this name"
    if "/" in name or "`" in name:
        return "Harper refuses slashes and backticks in an attribute's name"
    if len(name.encode("utf-8")) > LONGEST_NAME:
        return f"it is longer than {LONGEST_NAME} bytes, the most Harper takes"
    return None


def refusal_of_field(name: str) -> str | None:
    """The same for a field of a STRUCT, where Harper takes more."""
    return "Harper cannot keep a field of this name" if name in _REFUSED_NESTED else None
