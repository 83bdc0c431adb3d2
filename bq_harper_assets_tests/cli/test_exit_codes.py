"""One table of exit codes: every command's help, `bqh --help` and the docs say the same."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from bq_harper_assets.cli.exit_codes import MEANINGS, ExitCode
from bq_harper_assets.cli.main import COMMANDS, bqh
from bq_harper_assets.cli.output.run_results import RunResults
from bq_harper_assets.defs.checks.run_proof import RunProof
from bq_harper_assets.defs.runs.launch import Launched
from bq_harper_assets.validation.verdict import ProofStatus
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
        for path, command in _leaves((name,), bqh.get_command(click.Context(bqh), name)):
            assert "Exit codes:" in (command.epilog or ""), path
    assert "3  " in typed("quarantine", "replay", "--help").stdout


def _leaves(
    path: tuple[str, ...], command: click.Command | None
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    assert command is not None
    if isinstance(command, click.Group):
        for name, each in command.commands.items():
            yield from _leaves((*path, name), each)
    else:
        yield path, command


def test_a_sync_whose_proof_failed_or_found_differences_does_not_end_well() -> None:
    done = {"a": {}, "b": {}}
    equal = Launched("first", done, None, RunProof(ProofStatus.PROVED, "all"))
    for status, code, said in (
        (ProofStatus.PROVED, ExitCode.DONE, None),
        (ProofStatus.OPEN, ExitCode.DONE, None),
        (ProofStatus.SOURCE_CHANGED, ExitCode.CHANGED_SINCE, "BigQuery has changed since: why"),
        (ProofStatus.MOVING, ExitCode.NOT_PROVED, "could not be made: why"),
        (ProofStatus.DIFFERS, ExitCode.DIFFERS, "proof found rows that differ: why. Next: bqh"),
        (ProofStatus.CHECK_FAILED, ExitCode.NOT_PROVED, "could not be made: why. Next: bqh"),
        (None, ExitCode.NOT_PROVED, "the proof after them could not be made: why"),
    ):
        ran = RunResults(
            (equal, Launched("run", done, None, RunProof(status, "why")), equal), 4, 1.0
        )
        assert ran.exit_code is code
        assert ran.proof is not None
        told = ran.proof.told("ships")
        assert (said in (told or "")) if said else told is None
    assert (
        RunResults((Launched("run", done, "Harper is away"),), 3, 1.0).exit_code is ExitCode.PARTLY
    )
    assert RunResults((Launched("run", {}, "Harper is away"),), 3, 1.0).exit_code is ExitCode.ERROR
