"""`bqh maritime`: sample data in BigQuery, made, kept growing, counted and taken away."""

import json
import signal
import threading
from collections.abc import Callable
from dataclasses import asdict, fields
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from bq_harper_assets.cli.options import OUTPUT, PROFILE, Command
from bq_harper_assets.cli.runs.asked_table import open_project
from bq_harper_assets.cli.runs.reachability import require_servers
from bq_harper_assets.contract.fields.quantities import duration
from bq_harper_assets.contract.identifiers import dataset_name
from bq_harper_assets.contract.project import Project
from bq_harper_assets.contract.settings.profile import LOCAL
from bq_harper_assets.errors import BqhError
from bq_harper_assets.maritime.disorder import Disorder
from bq_harper_assets.maritime.feed import StreamPlan, fleet_of, resume
from bq_harper_assets.maritime.fleet import MAX_VESSELS
from bq_harper_assets.maritime.initialize import SCENARIOS, Sample, sized
from bq_harper_assets.maritime.initialize import initialize as fill
from bq_harper_assets.maritime.reports import microseconds
from bq_harper_assets.maritime.warehouse import TableStats, Warehouse

DEFAULT_SEED, DEFAULT_VESSELS = 7, 100
_SEED = click.IntRange(0, 2**63 - 1)


class NotOnThisProject(BqhError):
    """A destructive command outside the local profile, without the project's name."""


def _warehouse(project: Project, dataset: str) -> Warehouse:
    """Opens the sample tables, if BigQuery answers."""
    require_servers(project, harper=False)
    return Warehouse(project.bigquery, dataset)


def _parsed(parse: Callable[[str], Any]) -> Callable[..., Any]:
    """Makes a callback of click that reads an option, or says what is wrong with it."""

    def read(ctx: click.Context, parameter: click.Parameter, value: str | None) -> Any:
        try:
            return None if value is None else parse(value)
        except ValueError as error:
            raise click.BadParameter(str(error)) from error

    return read


_DURATION = _parsed(duration(timedelta(days=3650)).parse)
_DATASET = click.option(
    "--dataset", default="maritime", show_default=True, callback=_parsed(dataset_name)
)


def _where(command: Command) -> Command:
    return PROFILE(_DATASET(command))


def _destructive(command: Command) -> Command:
    yes = click.option("--yes", is_flag=True, help="Do not ask.")
    really = click.option(
        "--yes-really-on",
        metavar="PROJECT",
        help="The project's name; needed outside the local profile.",
    )
    return yes(really(_where(command)))


def _disordered(command: Command) -> Command:
    for field in reversed(fields(Disorder)):
        command = click.option(
            f"--{field.name}",
            type=click.FloatRange(0),
            default=0.0,
            metavar="N",
            help=f"Rows that {field.metadata['rows that']}. Below 1 a share, else a number.",
        )(command)
    return command


def _sampled(command: Command) -> Command:
    for option in (
        click.option(
            "--end",
            type=click.DateTime(),
            help="When the data ends, UTC. [default: now, to the minute]",
        ),
        click.option("--seed", type=_SEED, default=DEFAULT_SEED, show_default=True),
        click.option("--vessels", type=click.IntRange(1, MAX_VESSELS), help="Size of the fleet."),
        click.option("--rows", type=click.IntRange(2), help="Positions; events are a twentieth."),
        click.argument("scenario", type=click.Choice(list(SCENARIOS)), default="realistic"),
    ):
        command = option(command)
    return command


def _meant(
    dataset: str, profile: str | None, what: str, yes: bool, yes_really_on: str | None
) -> Warehouse:
    """Opens the sample tables only if the user means it, and means this project."""
    project = open_project(profile)
    name = project.bigquery.project
    local = project.profile_name == LOCAL and project.bigquery.endpoint is not None
    if not local and yes_really_on != name:
        raise NotOnThisProject(
            f"this would {what} in project {name}, which is not the local stack. Nothing was"
            f" changed; if you mean it, add --yes-really-on {name}."
        )
    warehouse = _warehouse(project, dataset)
    if local and not yes:
        click.confirm(f"{what.capitalize()} in {warehouse.dataset.id}?", abort=True)
    return warehouse


def _fill(
    warehouse: Warehouse,
    scenario: str,
    rows: int | None,
    vessels: int | None,
    seed: int,
    end: datetime | None,
    **disorder: float,
) -> None:
    ends = (end or datetime.now(UTC)).replace(second=0, microsecond=0, tzinfo=UTC)
    size = sized(SCENARIOS[scenario], rows, vessels)

    def progress(table: str, done: int, total: int) -> None:
        share = f" ({min(1.0, done / total):.0%})" if total else ""
        click.echo(f"{table}: {done:,} of {total:,} rows{share}")

    fill(warehouse, Sample(size, seed, microseconds(ends), Disorder(**disorder)), progress)
    click.echo(f"{scenario} sample data is in {warehouse.dataset.id}")


@click.group()
def maritime() -> None:
    """Make sample data: vessels that move between 29 ports, their port calls and their register."""


@maritime.command()
@_sampled
@_disordered
@_where
def initialize(dataset: str, profile: str | None, **sample: Any) -> None:
    """Fill empty tables with SCENARIO: small, realistic (default) or stress."""
    _fill(_warehouse(open_project(profile), dataset), **sample)


@maritime.command()
@click.option("--batch", type=click.IntRange(1), default=100, show_default=True, help="Rows.")
@click.option(
    "--interval", default="60s", show_default=True, callback=_DURATION, help="Of a batch."
)
@click.option("--once", is_flag=True, help="Send what is due, then end.")
@click.option("--for", "for_", callback=_DURATION, help="End after this time, such as 10m.")
@click.option("--retention-days", type=click.IntRange(1), default=30, show_default=True)
@click.option("--late-batches", type=click.IntRange(1), default=5, show_default=True,
              help="A late row comes at most this many batches after its own.")  # fmt: skip
@click.option("--seed", type=_SEED, help="Of a new fleet, if there is none.")
@click.option("--vessels", type=click.IntRange(1, MAX_VESSELS), help="Of a new fleet.")
@_disordered
@_where
def start(
    dataset: str,
    profile: str | None,
    batch: int,
    interval: timedelta,
    once: bool,
    for_: timedelta | None,
    retention_days: int,
    late_batches: int,
    seed: int | None,
    vessels: int | None,
    **disorder: float,
) -> None:
    """Append positions and port events on the clock until stopped (Ctrl-C or SIGTERM).

    Goes on from the newest row stored: what would have come while it was stopped comes first.
    """
    if interval < timedelta(seconds=1):
        raise click.BadParameter("must be at least 1s", param_hint="--interval")
    warehouse = _warehouse(open_project(profile), dataset)
    known = fleet_of(warehouse)
    fleet = known or (DEFAULT_SEED if seed is None else seed, vessels or DEFAULT_VESSELS)
    if known and (seed not in (None, known[0]) or vessels not in (None, known[1])):
        click.echo(f"going on with the stored fleet: seed {known[0]}, {known[1]:,} vessels")
    plan = StreamPlan(
        seed=fleet[0],
        vessels=fleet[1],
        interval=interval // timedelta(microseconds=1),
        batch=batch,
        since=0,
        late_batches=late_batches,
        disorder=Disorder(**disorder),
    )
    stop = threading.Event()
    previous = {s: signal.signal(s, lambda *_: stop.set()) for s in (signal.SIGTERM, signal.SIGINT)}
    try:
        begun = datetime.now(UTC)
        feed = resume(warehouse, plan, begun, timedelta(days=retention_days), click.echo)
        until = begun if once else begun + for_ if for_ is not None else None
        sent = feed.run(lambda: datetime.now(UTC), stop.wait, until)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    click.echo(f"stopped after {sent:,} positions; the next start goes on from here")


@maritime.command()
@OUTPUT
@_where
def stats(dataset: str, profile: str | None, output: str) -> None:
    """Count rows and vessels, and show the time range of each table."""
    now = datetime.now(UTC)
    found = _warehouse(open_project(profile), dataset).stats()
    if output == "json":
        click.echo(json.dumps([_as_json(table, now) for table in found], indent=2))
        return
    for table in found:
        click.echo(f"{table.table}: {table.rows:,} rows, {table.vessels:,} vessels")
        if table.oldest is not None and table.newest is not None:
            age = _ago(now - table.newest)
            click.echo(f"  from {table.oldest:%F %T} to {table.newest:%F %T}, newest {age}")


def _as_json(table: TableStats, now: datetime) -> dict[str, Any]:
    return asdict(table) | {
        "oldest": table.oldest and table.oldest.isoformat(),
        "newest": table.newest and table.newest.isoformat(),
        "newest_age_s": table.newest and (now - table.newest).total_seconds(),
    }


def _ago(age: timedelta) -> str:
    minutes = abs(age) // timedelta(minutes=1)
    days, hours = divmod(minutes // 60, 24)
    text = f"{days} d {hours} h" if days else f"{hours} h {minutes % 60} min"
    return f"{text} ahead" if age < timedelta(0) else f"{text} old"


@maritime.command()
@_destructive
def clear(dataset: str, profile: str | None, yes: bool, yes_really_on: str | None) -> None:
    """Delete all rows of the sample tables; the tables stay."""
    _meant(dataset, profile, "delete all sample rows", yes, yes_really_on).clear(click.echo)


@maritime.command()
@_destructive
def clean(dataset: str, profile: str | None, yes: bool, yes_really_on: str | None) -> None:
    """Drop the sample tables."""
    _meant(dataset, profile, "drop the sample tables", yes, yes_really_on).clean(click.echo)


@maritime.command()
@_sampled
@_disordered
@_destructive
def reset(
    dataset: str, profile: str | None, yes: bool, yes_really_on: str | None, **sample: Any
) -> None:
    """Drop the sample tables and fill new ones with SCENARIO."""
    warehouse = _meant(dataset, profile, "drop the sample tables", yes, yes_really_on)
    warehouse.clean(click.echo)
    _fill(warehouse, **sample)
