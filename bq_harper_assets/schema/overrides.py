"""Finds what a contract says about single columns, also after the source has renamed them."""

from collections.abc import Mapping

from bq_harper_assets.contract.table import ColumnOverride, TableContract


def overrides_of(contract: TableContract) -> Mapping[str, ColumnOverride]:
    """Gives the overrides by path; each also holds under the name that `renames` has for it."""
    said = contract.schema_overrides
    return {renamed_path(path, contract): override for path, override in said.items()} | said


def renamed_path(path: str, contract: TableContract) -> str:
    """Gives the path after the declared rename of its column, or the same path if there is none."""
    name, dot, rest = path.partition(".")
    return f"{contract.renames.get(name, name)}{dot}{rest}"
