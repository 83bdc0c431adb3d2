"""Decides, attribute by attribute, whether an existing table can store a contract's rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from bq_harper_assets.contract.identifiers import DELETED_AT, HASH
from bq_harper_assets.schema.table_plan import TablePlan
from bq_harper_assets.stores.harper.answers import Attribute, TableDescription
from bq_harper_assets.stores.harper.schema import PlannedAttribute, attributes_of

# These declared types accept every value of the planned type.
_WIDER = {"Long": ("Float", "BigInt"), "String": ("ID",)}


class Holding(StrEnum):
    """A holding says whether the table can store a planned attribute."""

    FITS = "fits"
    ADDED = "added"  # it is not declared, and Harper stores it with the first row
    CANNOT = "cannot"


@dataclass(frozen=True, kw_only=True)
class AttributeFit:
    """An attribute fit compares one planned attribute with the table that exists."""

    name: str
    planned: str  # its planned type
    there: str | None  # its type in the table; None if Harper checks no values
    indexed: bool
    holding: Holding
    why: str = ""


def attribute_fits(found: TableDescription, plan: TablePlan) -> tuple[AttributeFit, ...]:
    """Returns one fit per planned attribute, in the plan's order."""
    declared = {attribute.name: attribute for attribute in found.attributes}
    return tuple(_fit(each, declared.get(each.name), found, plan) for each in attributes_of(plan))


def conflicts(found: TableDescription, plan: TablePlan) -> Iterator[str]:
    """Yields every reason why the table cannot store the rows."""
    if found.primary_key != plan.primary_key:
        yield f"its primary key is {found.primary_key}, and the rows' is {plan.primary_key}"
    yield from (fit.why for fit in attribute_fits(found, plan) if fit.holding is Holding.CANNOT)
    planned = {attribute.name for attribute in attributes_of(plan)}
    for there in found.attributes:
        if there.required and there.name not in planned:
            yield f"{there.name} is required there, and the rows have none"


def unfit(found: TableDescription, plan: TablePlan) -> tuple[str, ...]:
    """Lists every reason why the table cannot be adopted as it is."""
    return (
        *conflicts(found, plan),
        *(
            f"{name} is declared without an index, and each window is read back by it; Harper adds"
            " none later, so declare it @indexed"
            for name in without_index(found, (plan.selection.timestamp.name,))
        ),
    )


def read_back_by(plan: TablePlan) -> tuple[str, ...]:
    """Lists the attributes that must be declared, because Harper returns no others to compare."""
    chosen = plan.selection
    key = chosen.key if chosen.id_column is None else ()
    flag = (DELETED_AT,) if plan.flags_deletes else ()
    return tuple(dict.fromkeys((chosen.timestamp.name, *key, HASH, *flag)))


def is_seen(found: TableDescription) -> bool:
    """Says whether our role may see the attributes; if not, nothing can be said of them."""
    return bool(found.attributes)


def undeclared(found: TableDescription, names: tuple[str, ...]) -> tuple[str, ...]:
    """Lists the names that Harper does not know: it neither searches by them nor returns them."""
    if not is_seen(found):
        return ()
    known = {attribute.name for attribute in found.attributes}
    return tuple(name for name in names if name not in known)


def without_index(found: TableDescription, names: tuple[str, ...]) -> tuple[str, ...]:
    """Lists declared names without an index, which Harper cannot add: searching reads all rows."""
    if not is_seen(found) or not found.schema_defined:
        return ()
    plain = {attribute.name for attribute in found.attributes if not attribute.indexed}
    return tuple(name for name in names if name in plain)


def _fit(
    planned: PlannedAttribute,
    there: Attribute | None,
    found: TableDescription,
    plan: TablePlan,
) -> AttributeFit:
    holding, type_ = Holding.FITS, there.type if there else None
    indexed = there.indexed if there else not found.schema_defined
    if there is None and is_seen(found):
        holding = Holding.ADDED
    why = _refusal(planned, type_, plan)
    return AttributeFit(
        name=planned.name,
        planned=planned.type,
        there=type_,
        indexed=indexed,
        holding=Holding.CANNOT if why else holding,
        why=why,
    )


def _refusal(planned: PlannedAttribute, type_: str | None, plan: TablePlan) -> str:
    if planned.name == plan.selection.timestamp.name and type_ == "Any":
        # This was measured: if the column is String or has no type, Harper finds the same rows.
        return f"{planned.name} is Any there, and Harper then finds no time that is stored as text"
    if type_ in (None, "Any", planned.type, *_WIDER.get(planned.type, ())):
        return ""
    if type_ == "array" and any(c.repeated and c.name == planned.name for c in plan.columns):
        return ""
    held = planned.type if planned.type != "Any" else "arrays or objects"
    return f"{planned.name} is {type_} there, and the rows hold {held}"
