"""One table of exit codes: every command's help, `bqh --help` and the docs say the same."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from bq_harper_assets.cli.exit_codes import MEANINGS, ExitCode
from bq_harper_assets.cli.main import COMMANDS, bqh
from bq_harper_assets_tests.cli.typed import typed, typed_well

ROOT = Path(__file__).parents[2]


def test_the_help_of_bqh_and_the_docs_have_the_same_table_of_exit_codes() -> None:
    shown = typed_well("--help").splitlines()
    at = shown.index("  Exit codes:")
    assert [line.split(maxsplit=1) for line in shown[at + 1 : at + 8]] == [
        [str(code.value), MEANINGS[code]] for code in ExitCode
    ]
    assert max(map(len, shown)) <= 80 + 12  # the line of signals is the longest
    page = (ROOT / "docs" / "sync.md").read_text(encoding="utf-8")
    for code in ExitCode:
        assert f"\n| {code.value} | {MEANINGS[code]} |\n" in page


@pytest.mark.parametrize(
    ("command", "codes"),
    [
        ("sync", "0123456"),
        ("verify", "012345"),
        ("repair", "012345"),
        ("reconcile", "0123456"),
        ("quarantine replay", "0123456"),
        ("demo", "012356"),
        ("adopt", "0123"),
        ("status", "012"),
        ("doctor", "012"),
    ],
)
def test_the_help_of_a_command_names_the_exit_codes_that_it_uses(command: str, codes: str) -> None:
    shown = typed_well(*command.split(), "--help")
    named = shown.partition("  Exit codes:\n")[2].splitlines()
    assert [line.split(maxsplit=1)[0] for line in named if line.strip()] == [*codes]


def test_every_command_names_its_exit_codes() -> None:
    for name in COMMANDS:
        for path, command in leaves((name,), bqh.get_command(click.Context(bqh), name)):
            assert "Exit codes:" in (command.epilog or ""), path
    assert "3  " in typed("quarantine", "replay", "--help").stdout


def leaves(
    path: tuple[str, ...], command: click.Command | None
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    assert command is not None
    if isinstance(command, click.Group):
        for name, each in command.commands.items():
            yield from leaves((*path, name), each)
    else:
        yield path, command
