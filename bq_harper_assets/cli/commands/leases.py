"""`bqh leases` shows who may write which slice, and who looks for changed schemas."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime

import click

from bq_harper_assets.cli.options import OUTPUT, PROFILE
from bq_harper_assets.cli.output.aligned_columns import aligned
from bq_harper_assets.cli.runs.asked_table import open_project
from bq_harper_assets.ledger.ledger import Ledger, open_ledger


@dataclass(frozen=True, kw_only=True)
class Right:
    """A right is one lease or claim, as the ledger has it."""

    what: str
    owner: str | None  # None: free
    epoch: int  # how often it has changed hands
    since: datetime | None
    until: datetime | None
    is_live: bool


@click.command()
@PROFILE
@OUTPUT
def leases(profile: str | None, output: str) -> None:
    """Print every lease and claim of the ledger: its owner, since when, and until when.

    Nothing has to be freed by hand: a lease whose owner is gone is free once its time is over.
    """
    with open_ledger(open_project(profile).ledger.url) as ledger:
        rights = list(_rights(ledger))
    if output == "json":
        click.echo(json.dumps([asdict(right) for right in rights], default=_text, indent=2))
        return
    header = ("what", "owner", "epoch", "since", "until")
    for line in aligned(header, [_line(right) for right in rights]):
        click.echo(line)


def _rights(ledger: Ledger) -> Iterator[Right]:
    for each in ledger.claims():
        yield Right(
            what=each.name,
            owner=each.owner,
            epoch=each.epoch,
            since=each.acquired_at,
            until=each.expires_at,
            is_live=each.is_live,
        )
    for table in ledger.routes():
        for lease in ledger.leases(table):
            yield Right(
                what=f"{table.name} slice {lease.slice}",
                owner=lease.owner,
                epoch=lease.epoch,
                since=lease.acquired_at,
                until=lease.expires_at,
                is_live=lease.is_live,
            )


def _line(right: Right) -> tuple[str, ...]:
    owner = right.owner or "free"
    if right.owner and not right.is_live:
        owner += " (expired)"
    return right.what, owner, str(right.epoch), _text(right.since), _text(right.until)


def _text(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%F %T} UTC"
