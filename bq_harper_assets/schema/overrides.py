"""What a contract says about single columns, also after the source has renamed them."""

from collections.abc import Mapping

from bq_harper_assets.contract.table import ColumnOverride, TableContract


def overrides_of(contract: TableContract) -> Mapping[str, ColumnOverride]:
    """By path; what is said of a column holds under the name that `renames` gives it, too."""
    said = contract.schema_overrides
    return {renamed_path(path, contract): override for path, override in said.items()} | said


def renamed_path(path: str, contract: TableContract) -> str:
    """The path after the declared rename of its column; itself if there is none."""
    name, dot, rest = path.partition(".")
    return f"{contract.renames.get(name, name)}{dot}{rest}"
