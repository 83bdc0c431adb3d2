"""Says what a contract lets a schema do, and which changes a sync has to stop at."""

from collections.abc import Iterator, Sequence

from bq_harper_assets.contract.fields.column_lists import ALL_COLUMNS
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.schema.errors import SchemaRefused
from bq_harper_assets.schema.evolution import Rules
from bq_harper_assets.schema.overrides import overrides_of
from bq_harper_assets.schema.selection import Selection
from bq_harper_assets.schema.target_types import TargetTypes
from bq_harper_assets.schema.version import TableVersion, VersionColumn


def rules_of(contract: TableContract, before: TableVersion, types: TargetTypes) -> Rules:
    """Makes the rules: a column follows the source if it and all its fields have policy evolve."""
    reserved = {*types.own_names, before.primary_key} - set(before.key)
    return Rules(
        lambda source: policy_of(contract, source) == "evolve",
        {new: old for old, new in contract.renames.items()},
        frozenset(reserved),
    )


def policy_of(contract: TableContract, source: str) -> str:
    """Gives the strictest policy declared for the column or a field of it, else the table's."""
    said = {
        override.policy
        for path, override in overrides_of(contract).items()
        if override.policy is not None and path.split(".")[0] == source
    }
    return next((p for p in ("freeze", "approve", "evolve") if p in said), contract.schema_policy)


def refuse_broken_rows(
    contract: TableContract,
    before: TableVersion,
    columns: Sequence[VersionColumn],
    chosen: Selection,
) -> None:
    """Raises SchemaRefused if rows would get other ids or other windows."""
    if problems := tuple(_problems(contract, before, columns, chosen)):
        raise SchemaRefused(contract.id, problems, contract.target.store)


def _problems(
    contract: TableContract,
    before: TableVersion,
    columns: Sequence[VersionColumn],
    chosen: Selection,
) -> Iterator[str]:
    if chosen.key != before.key:
        was, now = (", ".join(key) or "the whole row" for key in (before.key, chosen.key))
        yield (
            f"the key was {was} and is now {now}: every row would get another id. To go on, take"
            " the change of key back, or sync into a new targetTable under another id"
        )
        return
    live = {column.name for column in columns if column.is_live}
    for name in (contract.timestamp_column, *before.key):
        if name in live:
            continue
        role = "timestampColumn" if name == contract.timestamp_column else "key"
        yield (
            f"{_change(contract, name, before, columns)}, and it is the {role}: rows could not be"
            " found again where they are. To go on, take the change of the contract back, give it"
            f" its old type in customQuery (SELECT * REPLACE (CAST({name} AS ...) AS {name})), or"
            " sync into a new targetTable under another id"
        )
    # If a STRUCT among them loses a field, it is not live any more, because it has a successor.
    for name in before.id_paths:
        if name in live or name == contract.timestamp_column or "." in name:
            continue
        yield (
            f"{_change(contract, name, before, columns)}, and rows without a key are told apart by"
            " it: every row would get another id. To go on, make it in customQuery (SELECT *,"
            f" CAST(NULL AS ...) AS {name}, or REPLACE (CAST({name} AS ...) AS {name})), or sync"
            " into a new targetTable under another id"
        )


def _change(
    contract: TableContract, name: str, before: TableVersion, columns: Sequence[VersionColumn]
) -> str:
    was = before.find(name)
    source = was.source.name if was else name
    now = [c for c in columns if c.source.name == source and c.name != name]
    if not now and contract.columns != ALL_COLUMNS and source not in contract.columns:
        return f"{source} is not named by columns any more, to which you can add it again"
    if not now:
        return f"{source} is gone from {contract.source.store}"
    if was is not None and was.type_text == now[0].type_text:
        return f"{source} was stored as {_stored(was)} and would now be stored as {_stored(now[0])}"
    old = was.type_text if was else "?"
    return f"{source} was {old} and is now {now[0].type_text} in {contract.source.store}"


def _stored(column: VersionColumn) -> str:
    return column.target.form or column.target.type
