"""Lists the column names that Harper cannot store, and says why."""

from bq_harper_assets.contract.identifiers import ROW_METADATA

LONGEST_NAME = 250  # bytes of UTF-8; Harper answers 400 to a longer attribute
# Every JavaScript object inherits these; Harper 4.7.29 answers 400 to a record that has one.
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
# Harper accepts these in a write, but the row is then missing or an error message when it is read;
# if create_table declares `then`, a server thread stops for good.
_CALLED_WHEN_READ = frozenset({"then", "toJSON"})
# Harper fills these itself and drops what was sent; it answers 500 to an upsert with the next two.
_KEPT_BY_HARPER = frozenset({"__createdtime__", "__updatedtime__"})
_CALLED_WHEN_WRITTEN = frozenset({"getChanges", "getRecord"})
_REFUSED_NESTED = frozenset({"__proto__", "then"})


def refusal_of_column(name: str) -> str | None:
    """Says why a top-level column of this name cannot be stored; None if it can."""
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
    """Says why a field of a STRUCT cannot have this name; Harper accepts more names there."""
    return "Harper cannot keep a field of this name" if name in _REFUSED_NESTED else None
