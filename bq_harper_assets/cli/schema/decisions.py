"""`bqh schema diff`, `accept`, `apply` and `rollback` show what differs and take decisions."""

import getpass
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from bq_harper_assets.cli.exit_codes import exit_codes
from bq_harper_assets.cli.options import OUTPUT, PROFILE
from bq_harper_assets.cli.runs.asked_table import AskedTable, asked_table
from bq_harper_assets.cli.runs.reachability import require_servers
from bq_harper_assets.cli.schema.version_text import (
    change_lines,
    diff_lists,
    tell,
)
from bq_harper_assets.schema.change import Change, ChangeKind
from bq_harper_assets.schema.changes import changes_between, waiting_changes
from bq_harper_assets.schema.errors import SchemaMismatch, SchemaRefused
from bq_harper_assets.schema.version import TableVersion

if TYPE_CHECKING:
    from bq_harper_assets.stores.harper.table.schema_evolution import Evolved
    from bq_harper_assets.sync.schema_sync.requested_version import Deciding, Decision

_QUIET = "  ~ nothing that rows depend on, such as descriptions, order or clustering"
_YES = click.option("--yes", is_flag=True, help="Do it.  [default: only show what would be done]")


@click.command()
@click.argument("table")
@click.option("--from", "from_", type=click.IntRange(1), help="[default: the newest version]")
@click.option("--to", type=click.IntRange(1), help="[default: what BigQuery has now]")
@PROFILE
@OUTPUT
def diff(table: str, from_: int | None, to: int | None, profile: str | None, output: str) -> None:
    """Show what differs between two schema versions of TABLE, and what is done about it.

    Without numbers it compares the newest with what BigQuery has now; with --to alone, that
    version with the one before. Nothing is recorded. A difference is no failure; a change that
    cannot be followed is one.
    """
    if to is not None:
        from_ = from_ or to - 1
        if not 0 < from_ < to:
            raise click.UsageError(f"--to {to}: --from must be an earlier version")
    with asked_table(table, profile) as asked:
        sys.exit(_diff(asked, from_, to, output))


def _diff(asked: AskedTable, from_: int | None, to: int | None, output: str) -> int:
    contract = asked.contract
    _, recorded = asked.recorded(from_)
    before = TableVersion.parse(recorded.body)
    try:
        after = _to(asked, to)
    except (SchemaMismatch, SchemaRefused) as error:
        if output == "json":
            _tell_programs(asked, recorded.version, None, problem=str(error))
        else:
            click.echo(f"{contract.id} cannot follow what BigQuery has now:")
            for problem in error.problems:
                click.echo(f"  ! {problem}")
            click.echo("Harper keeps all rows as they are, and no sync changes them until then")
        return error.exit_code
    changes = changes_between(before, after, contract)
    waiting = waiting_changes(after, contract)
    equal = before == after
    if output == "json":
        _tell_programs(asked, recorded.version, to, changes, waiting, equal=equal)
        return 0
    first = f"schema version {recorded.version}"
    second = f"version {to}" if to else "what BigQuery has now"
    if equal:
        click.echo(f"{contract.id}: {first} and {second} are equal")
    else:
        click.echo(f"{contract.id}: from {first} to {second}")
        click.echo("\n".join(change_lines(changes)) or _QUIET)
    if waiting and to is None:
        names = ", ".join(map(waiting_name, waiting))
        click.echo(f"not synced yet: {names}; see: bqh schema apply {contract.id}")
    elif not equal and to is None:
        click.echo(f"recorded by the next look or sync: bqh sync {contract.id}")
    return 0


def waiting_name(change: Change) -> str:
    """Names what waits: a column, or the new fields of a column that is synced without them."""
    is_offer = change.kind is ChangeKind.WIDENED
    return f"new fields of {change.column}" if is_offer else change.column


def _tell_programs(
    asked: AskedTable,
    from_: int,
    to: int | None,
    changes: Sequence[Change] = (),
    waiting: Sequence[Change] = (),
    *,
    equal: bool = False,
    problem: str | None = None,
) -> None:
    tell(
        asked.contract.id,
        fromVersion=from_,
        toVersion=to,
        equal=equal,
        **diff_lists(changes),
        waiting=[change.body() for change in waiting],
        problem=problem,
    )


def _to(asked: AskedTable, number: int | None) -> TableVersion:
    """Gives that version, or the one that a look at BigQuery would record after the newest."""
    _, recorded = asked.recorded(number)
    version = TableVersion.parse(recorded.body)
    return version if number is not None else asked.planned(version).version


@click.command(epilog=exit_codes())
@click.argument("table")
@PROFILE
@OUTPUT
def accept(table: str, profile: str | None, output: str) -> None:
    """Say that you have seen what changed in the columns of TABLE up to the newest version.

    The check schema_drift stops warning of it. It goes on telling what waits for a decision, and
    no data is changed.
    """
    from bq_harper_assets.validation.schema_drift import accept_changes, accepted_version

    with asked_table(table, profile) as asked:
        contract = asked.contract
        known, newest = asked.recorded()
        before = accepted_version(asked.ledger, known)
        _, earlier = asked.recorded(before)
        first, last = TableVersion.parse(earlier.body), TableVersion.parse(newest.body)
        changes = changes_between(first, last, contract)
        if before < newest.version:
            accept_changes(asked.ledger, known, newest.version, getpass.getuser())
    if output == "json":
        tell(
            contract.id,
            fromVersion=before,
            toVersion=newest.version,
            changes=[change.body() for change in changes],
        )
    elif before == newest.version:
        click.echo(f"{contract.id}: schema version {before} was accepted before; nothing is new")
    else:
        click.echo(f"{contract.id}: accepted from schema version {before} to {newest.version}")
        click.echo("".join(f"{line}\n" for line in change_lines(changes)), nl=False)
        click.echo("Dagster shows it when schema_drift is executed, or at its sensor's next look")


@click.command()
@click.argument("table")
@_YES
@PROFILE
@OUTPUT
def apply(table: str, yes: bool, profile: str | None, output: str) -> None:
    """Sync what waits in TABLE from now on, but for what its policy freezes."""
    with asked_table(table, profile) as asked, asked.queries() as queries:
        decision = _deciding(asked, queries).apply(record=yes)
        evolved = _evolved(asked) if yes else None
    command = f"bqh schema apply {asked.contract.id} --yes"
    _tell(asked, decision, evolved, command, output)


@click.command()
@click.argument("table")
@click.option("--to", type=click.IntRange(1), required=True, help="The version to go back to.")
@_YES
@PROFILE
@OUTPUT
def rollback(table: str, to: int, yes: bool, profile: str | None, output: str) -> None:
    """Sync the columns that a version of TABLE had; what came since waits, and nothing is dropped.

    It is recorded as a new version; a later number rolls forward again.
    """
    with asked_table(table, profile) as asked, asked.queries() as queries:
        decision = _deciding(asked, queries).roll_back(to, record=yes)
        evolved = _evolved(asked) if yes else None
        _, earlier = asked.recorded(to)
    notes = rollback_notes(TableVersion.parse(earlier.body), decision.schema)
    command = f"bqh schema rollback {asked.contract.id} --to {to} --yes"
    _tell(asked, decision, evolved, command, output, notes)


def rollback_notes(wanted: TableVersion, now: TableVersion) -> list[str]:
    """Says what a rollback cannot bring back, and what it leaves as it is."""
    gone = [column for column in wanted.live if column.name not in now.live_names]
    stays = sorted(path for path in now.live_paths - wanted.live_paths if "." in path)
    return [
        *(
            f"{each.source.name} stays as it is:"
            f" BigQuery has no {each.type_text} of that name any more"
            for each in gone
        ),
        *(f"{path} goes on being synced: a rollback goes by whole columns" for path in stays),
    ]


def _deciding(asked: AskedTable, queries: Any) -> "Deciding":
    from bq_harper_assets.stores.bigquery.source import BigQuerySource
    from bq_harper_assets.stores.harper.schema import harper_plan
    from bq_harper_assets.sync.schema_sync.requested_version import Deciding

    require_servers(asked.project)  # what is decided is put on record before Harper hears of it
    source = BigQuerySource(queries, harper_plan)
    return Deciding(asked.ledger, source, asked.contract, getpass.getuser())


def _evolved(asked: AskedTable) -> "Evolved":
    """Makes in Harper what the newest version needs."""
    from bq_harper_assets.stores.harper.table.schema_evolution import evolve_table

    with asked.harper() as harper:
        return evolve_table(asked.ledger, harper, asked.contract)


def _tell(
    asked: AskedTable,
    decision: "Decision",
    evolved: "Evolved | None",
    command: str,
    output: str,
    notes: Sequence[str] = (),
) -> None:
    name = asked.contract.id
    if output == "json":
        tell(name, **_as_json(decision, evolved, notes))
        return
    for line in decision_lines(name, decision):
        click.echo(line)
    for note in notes:
        click.echo(f"  ! {note}")
    for change in decision.waiting:
        click.echo(f"  . {change.column} ({change.after}) {change.action}")
    if evolved:
        _tell_evolved(evolved)
    if decision.is_recorded:
        click.echo(f"the next sync writes rows of this version: bqh sync {name}")
    elif decision.changes:
        click.echo(f"nothing was changed; to do it, type: {command}")


def decision_lines(name: str, decision: "Decision") -> Iterator[str]:
    """Says which version the decision led to, or would lead to, and what that version changes."""
    version = f"schema version {decision.version}"
    if not decision.changes and not decision.is_recorded:
        yield f"{name} stays as {version} has it: nothing to change"
        return
    word = "is recorded" if decision.is_recorded else "would be followed by another"
    yield f"{name}: {version} {word}"
    yield "\n".join(change_lines(decision.changes)) or _QUIET


def _tell_evolved(evolved: "Evolved") -> None:
    ensured = evolved.ensured
    if ensured.added:
        click.echo(f"Harper has an index now on: {', '.join(ensured.added)}")
    if ensured.unindexed:
        names = ", ".join(ensured.unindexed)
        click.echo(f"warning: Harper cannot add an index to: {names}", err=True)
    if evolved.warning:
        click.echo(f"warning: {evolved.warning}", err=True)


def _as_json(
    decision: "Decision", evolved: "Evolved | None", notes: Sequence[str]
) -> dict[str, Any]:
    ensured = evolved.ensured if evolved else None
    return {
        "version": decision.version,
        "recorded": decision.is_recorded,
        **diff_lists(decision.changes),
        "waiting": [change.body() for change in decision.waiting],
        "notes": list(notes),
        "harper": ensured
        and {
            "action": ensured.action.value,
            "added": list(ensured.added),
            "unindexed": list(ensured.unindexed),
        },
        "warning": evolved.warning if evolved else None,
    }
