"""Several commands of `bqh` take the same options, which are written once, here."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

MOMENT = click.DateTime(
    [
        *("%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"),
        *("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S"),
    ]
)
PORT_NUMBER = click.IntRange(1, 65535)

PROFILE = click.option(
    "--profile", help="The profile of config/profiles.  [default: BQH_PROFILE, else local]"
)
OUTPUT = click.option(
    "--output", type=click.Choice(["text", "json"]), default="text", show_default=True
)
STACK_FOLDER = click.option(
    "--folder",
    type=click.Path(path_type=Path),
    help="Where the stack keeps its files; another folder is another stack.  [default: .local]",
)
ALLOW_DELETES = click.option(
    "--allow-deletes",
    is_flag=True,
    help="Delete rows that are gone from BigQuery, even more of them than a run may.",
)
DEEP = click.option(
    "--deep", is_flag=True, help="Compute hashes again from what Harper holds, and trust none."
)
_SLICES = click.option("--slices", help="Only these slices, such as 0-1 or 2.  [default: all]")


def moments(
    first: str, last: str, *, first_default: str, last_default: str
) -> Callable[[Command], Command]:
    """Adds --from and --to, two instants in UTC that a command explains in its own words."""

    def add(command: Command) -> Command:
        from_ = click.option(
            "--from", "from_", type=MOMENT, help=f"{first}, UTC.  [default: {first_default}]"
        )
        to = click.option("--to", type=MOMENT, help=f"{last}, UTC.  [default: {last_default}]")
        return from_(to(command))

    return add


def cell_range(first_default: str, last_default: str) -> Callable[[Command], Command]:
    """Adds --from, --to and --slices, which choose cells of a table."""
    windows = moments(
        "First window",
        "End of the last window",
        first_default=first_default,
        last_default=last_default,
    )
    return lambda command: windows(_SLICES(command))
