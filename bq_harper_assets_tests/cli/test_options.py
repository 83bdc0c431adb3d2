"""Options are explained in the same words by all commands, and a profile holds for its command."""

import os
from collections import defaultdict

import click
import pytest

from bq_harper_assets.cli import options
from bq_harper_assets.cli.main import COMMANDS, bqh
from bq_harper_assets_tests.cli.test_exit_codes import leaves
from bq_harper_assets_tests.cli.typed import told, typed
from bq_harper_assets_tests.temporary_project import TemporaryProject

SHARED = {"profile", "output", "slices", "folder", "deep", "allow_deletes"}


def test_an_option_that_several_commands_take_is_explained_in_the_same_words() -> None:
    words: dict[str, set[str | None]] = defaultdict(set)
    takers: dict[str, int] = defaultdict(int)
    for name in COMMANDS:
        for _, command in leaves((name,), bqh.get_command(click.Context(bqh), name)):
            for option in command.params:
                if isinstance(option, click.Option) and option.name in SHARED:
                    words[option.name].add(option.help)
                    takers[option.name] += 1
    assert {name: len(each) for name, each in words.items()} == dict.fromkeys(SHARED, 1)
    assert min(takers.values()) > 1
    assert takers["profile"] > 20


def test_a_moment_is_a_day_or_a_time_of_a_day() -> None:
    for text in ("2026-11-18", "2026-11-18T07:00", "2026-11-18 07:00", "2026-11-18T07:00:00Z"):
        assert options.MOMENT.convert(text, None, None).day == 18


def test_a_profile_holds_for_the_command_that_names_it_and_not_for_the_process(
    serverless: TemporaryProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    serverless.declare()
    other = serverless.root / "config" / "profiles" / "other.yaml"
    other.write_text("ledger: {url: 'sqlite:///.local/other.db'}\n", encoding="utf-8")
    assert told("leases", "--profile", "other") == []
    assert (serverless.root / ".local" / "other.db").is_file()
    assert "BQH_PROFILE" not in os.environ
    monkeypatch.setenv("BQH_PROFILE", "nowhere")
    assert told("leases", "--profile", "other") == []
    assert "nowhere" in str(typed("leases").exception)
