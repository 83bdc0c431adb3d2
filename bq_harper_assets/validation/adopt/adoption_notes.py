"""Writes what a user should know before a table is taken over."""

from collections.abc import Iterator

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.schema.table_plan import TablePlan
from bq_harper_assets.stores.bigquery.fingerprint import Outside
from bq_harper_assets.stores.harper.answers import TableDescription
from bq_harper_assets.stores.harper.fitting import is_seen, read_back_by, undeclared
from bq_harper_assets.sync.adopt.existing_table import COUNTED
from bq_harper_assets.sync.adopt.plugin_checkpoints import PluginCheckpoints
from bq_harper_assets.validation.adopt.foreign_rows import StoredSample


def unfit_rows(sample: StoredSample) -> Iterator[str]:
    """Says why the sync would never compare rows that the table holds."""
    if sample.lost:
        yield (
            f"rows have a timestamp such as {sample.lost} by which no window will find them: it is"
            " a date or number there, or no time at all, and windows are ranges of texts such as"
            " 2026-11-16T07:00:00.000000Z"
        )
    if sample.other_type:
        ours = "numbers" if sample.other_type[0] in "'\"" else "texts"
        yield f"rows have ids such as {sample.other_type}, and a sync's would be {ours}"


def notes_on_attributes(found: TableDescription, plan: TablePlan) -> Iterator[str]:
    """Says what a sync adds to the table's declaration, and what it does not add."""
    if not is_seen(found):
        yield "the role of this login is shown no attributes, so nothing is known of their types"
    if added := undeclared(found, read_back_by(plan)):
        yield (
            f"{', '.join(added)} must be declared for rows to be read back: a sync adds what is"
            " missing, with an index. Where a component declares the table, Harper forgets it"
            " when it loads the component again; declare it there, the timestamp @indexed"
        )
    required = {attribute.name for attribute in found.attributes if attribute.required}
    if null := [c.name for c in plan.selection.columns if c.name in required and not c.required]:
        yield f"rows in which {' or '.join(null)} is NULL go to quarantine: it is required there"
    own = undeclared(found, tuple(n for n in plan.indexed if n not in read_back_by(plan)))
    if own and found.schema_defined:
        yield f"no index is added on {', '.join(own)}: its declaration is not ours to change"


def notes_on_rows(contract: TableContract, sample: StoredSample) -> Iterator[str]:
    """Says what the first sync does to rows that the table holds."""
    if unmarked := sample.rows - sample.with_hash:
        yield (
            f"{unmarked} of {sample.rows} rows were not written by a sync: the first one writes"
            " them once more with its metadata, whatever they hold"
        )
    if sample.other_form and not sample.lost:
        yield f"{sample.other_form} rows have a timestamp in another form, such as {sample.form}"
    if sample.other_id:
        others = {"mirror": "deletes", "keep": "keeps", "flag": "flags"}[contract.deletes]
        yield (
            f"{sample.other_id} of {sample.rows} rows match BigQuery rows but have different ids:"
            f" the first sync writes them under its own, and {others} the old ones as its guard"
            " allows"
        )


def notes_on_range(
    plugin: PluginCheckpoints | None, outside: Outside | None, left_out: int, *, searchable: bool
) -> Iterator[str]:
    """Says which rows stay outside all windows."""
    if outside and (told := _outside_in_words(outside)):
        yield f"no window will ever hold these rows of Harper: {told}"
    if left_out:
        yield (
            f"{left_out:,} rows of BigQuery are older than the first window, which begins where"
            " the plugin began; sync.startTimestamp takes them in"
        )
    if plugin and plugin.covered_until is None:
        yield "a checkpoint of the plugin has no time that can be read: no range is compared"
    elif plugin and not searchable:
        yield (
            "Harper cannot search by the timestamp yet: the plugin's range is not compared before"
            " the first sync, which compares every window"
        )


def _outside_in_words(outside: Outside) -> str:
    counts = {
        "without a time": outside.without_time,
        "before the first window": outside.before_start,
        "in the future": outside.in_future,
    }
    return ", ".join(
        f"{f'more than {COUNTED:,}' if count > COUNTED else f'{count:,}'} {where}"
        for where, count in counts.items()
        if count
    )
