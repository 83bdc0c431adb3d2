"""What differs between two versions that is not said of one synced column."""

from collections.abc import Iterator

from bq_harper_assets.schema.change import Change, ChangeKind
from bq_harper_assets.schema.version import State, TableVersion


def table_changes(before: TableVersion, after: TableVersion) -> Iterator[Change]:
    """Layout, order, and columns that the contract leaves out."""
    old, new = before.layout, after.layout
    for kind, was, now in (
        (ChangeKind.PARTITIONING, old.partition_field or "", new.partition_field or ""),
        (ChangeKind.CLUSTERING, ", ".join(old.clustering), ", ".join(new.clustering)),
        (ChangeKind.PRIMARY_KEY, ", ".join(old.primary_key), ", ".join(new.primary_key)),
    ):
        if was != now:
            action = "recorded"
            if kind is ChangeKind.PRIMARY_KEY:
                action = f"recorded: rows keep the ids made of {', '.join(after.key) or 'all'}"
            yield Change(kind, "", was or "none", now or "none", action)
    if _order(before, after) != _order(after, before):
        yield Change(ChangeKind.ORDER, "", "", "", "recorded: no row depends on it")
    for name in after.not_selected:
        if name not in before.not_selected and not any(before.of_source(name)):
            action = "not synced: the contract's columns do not name it"
            yield Change(ChangeKind.NOT_SELECTED, name, "", "", action, "warn")
    for name in before.not_selected:
        if name not in after.not_selected and not any(after.of_source(name)):
            yield Change(ChangeKind.REMOVED, name, "", "", "it was not synced")


def _order(version: TableVersion, other: TableVersion) -> list[str]:
    """The columns that both have in the source, as this one has them."""
    there = {column.name for column in other.columns if column.state is not State.RETIRED}
    columns = (column for column in version.columns if column.state is not State.RETIRED)
    return [column.name for column in columns if column.name in there]
