"""`bqh maritime` as a user types it, against a real BigQuery emulator."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bq_harper_assets.cli.commands.maritime import maritime
from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.errors import BqhError
from bq_harper_assets.maritime.warehouse import Warehouse

Bqh = Callable[..., Result]


@pytest.fixture
def dataset(request: pytest.FixtureRequest) -> str:
    return "cli_" + re.sub(r"\W", "_", request.node.name)[-50:]


@pytest.fixture
def at_emulator(
    bigquery_connection: BigQueryConnection, project_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BQH_HOME", str(project_root))
    monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", str(bigquery_connection.endpoint))


@pytest.fixture
def bqh(at_emulator: None, dataset: str) -> Iterator[Bqh]:
    def run(*arguments: str, answer: str | None = None) -> Result:
        return CliRunner().invoke(
            maritime, [*arguments, "--dataset", dataset], input=answer, catch_exceptions=True
        )

    yield run
    run("clean", "--yes")


def rows(bqh: Bqh) -> dict[str, int]:
    return {t["table"]: t["rows"] for t in json.loads(bqh("stats", "--output", "json").output)}


@pytest.mark.bigquery
@pytest.mark.promise("K1")
def test_a_scenario_is_loaded_counted_cleared_and_dropped(bqh: Bqh) -> None:
    made = bqh("initialize", "small", "--end", "2026-11-16T12:00:00")
    assert made.exit_code == 0
    assert made.output.splitlines()[:3] == [
        "vessel_metadata: 20 of 20 rows (100%)",
        "port_events: 10 of 10 rows (100%)",
        "vessel_positions: 100 of 100 rows (100%)",
    ]
    shown = bqh("stats").output
    assert "vessel_positions: 100 rows, 20 vessels\n  from 2026-11-16 11:00:1" in shown
    assert rows(bqh) == {"vessel_positions": 100, "port_events": 10, "vessel_metadata": 20}

    kept = bqh("clear", answer="n\n")
    assert kept.exit_code == 1
    assert rows(bqh)["vessel_positions"] == 100
    assert bqh("clear", answer="y\n").exit_code == 0
    assert rows(bqh) == {"vessel_positions": 0, "port_events": 0, "vessel_metadata": 0}

    assert bqh("clean", "--yes").exit_code == 0
    gone = bqh("stats")
    assert isinstance(gone.exception, BqhError)
    assert "bqh maritime initialize small" in str(gone.exception)


@pytest.mark.bigquery
@pytest.mark.promise("K1")
def test_reset_replaces_what_was_there(bqh: Bqh) -> None:
    bqh("initialize", "small")
    again = bqh("initialize", "small")
    assert isinstance(again.exception, BqhError)
    assert "bqh maritime reset" in str(again.exception)
    replaced = bqh("reset", "small", "--rows", "40", "--vessels", "7", "--deletes", "4", "--yes")
    assert replaced.exit_code == 0
    assert rows(bqh) == {"vessel_positions": 36, "port_events": 2, "vessel_metadata": 7}


@pytest.mark.bigquery
@pytest.mark.promise("K7")
def test_start_goes_on_from_initialize_and_from_itself(bqh: Bqh) -> None:
    bqh("initialize", "small", "--seed", "9")
    assert bqh("start", "--once").exit_code == 0
    first = rows(bqh)["vessel_positions"]
    assert first > 100
    assert bqh("start", "--once", "--seed", "1").output.startswith("going on with the stored fleet")
    # At most the minutes that have passed in between.
    second = rows(bqh)["vessel_positions"]
    assert (second - first) % 100 == 0
    # A batch each second from here on: some are due whatever the machine's pace.
    time.sleep(1.1)
    assert bqh("start", "--once", "--interval", "1s", "--batch", "7").exit_code == 0
    third = rows(bqh)["vessel_positions"]
    assert third > second


@pytest.mark.bigquery
@pytest.mark.promise("K7")
def test_start_ends_cleanly_on_sigterm(
    at_emulator: None, dataset: str, bigquery_connection: BigQueryConnection
) -> None:
    command = [sys.executable, "-c", "from bq_harper_assets.cli.main import main; main()"]
    process = subprocess.Popen(
        [*command, "maritime", "start", "--interval", "1s", "--batch", "5", "--dataset", dataset],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        for _ in range(3):
            assert "positions" in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        begun = time.monotonic()
        output, _ = process.communicate(timeout=20)
        assert time.monotonic() - begun < 10
    finally:
        process.kill()
    assert process.returncode == 0, output
    assert "the next start goes on from here" in output
    project = re.search(
        r"projectId: (\S+)", Path(os.environ["BQH_HOME"], "config/tables.yaml").read_text("utf-8")
    )
    assert project is not None
    warehouse = Warehouse(bigquery_connection.model_copy(update={"project": project[1]}), dataset)
    sent = warehouse.stats()[0].rows
    assert sent >= 15  # three lines told of a batch each
    assert sent % 5 == 0
    warehouse.clean(lambda _: None)


def test_no_stack_is_one_clear_error(project_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BQH_HOME", str(project_root))
    monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", "127.0.0.1:9")
    result = CliRunner().invoke(maritime, ["stats"])
    assert isinstance(result.exception, BqhError)
    assert str(result.exception) == "BigQuery does not answer at http://127.0.0.1:9: bqh up"


@pytest.mark.parametrize("command", ["clear", "clean", "reset"])
def test_outside_the_local_profile_the_project_must_be_named(
    command: str, project_root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    (config / "profiles").mkdir(parents=True)
    tables = (project_root / "config" / "tables.yaml").read_text(encoding="utf-8")
    (config / "tables.yaml").write_text(tables, encoding="utf-8")
    (config / "profiles" / "shared.yaml").write_text("{}\n", encoding="utf-8")
    monkeypatch.setenv("BQH_HOME", str(tmp_path))
    # Nobody listens there: a command that got past the guard would fail otherwise.
    monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", "127.0.0.1:9")
    for named in ([], ["--yes-really-on", "another-project"]):
        result = CliRunner().invoke(maritime, [command, "--profile", "shared", "--yes", *named])
        assert isinstance(result.exception, BqhError), result.output
        assert "add --yes-really-on maritime-demo" in str(result.exception)
    meant = CliRunner().invoke(
        maritime, [command, "--profile", "shared", "--yes-really-on", "maritime-demo"]
    )
    assert "does not answer at" in str(meant.exception)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["initialize", "30"], "'30' is not one of 'small', 'realistic', 'stress'"),
        (["initialize", "--vessels", "900001"], "900001 is not in the range 1<=x<=900000"),
        (["stats", "--dataset", "a`b"], "Invalid value for '--dataset'"),
        (["start", "--interval", "soon"], "must be a duration such as 90s"),
        (["start", "--interval", "0s"], "must be at least 1s"),
        (["initialize", "--late", "-1"], "-1.0 is not in the range x>=0"),
    ],
)
def test_a_wrong_argument_is_refused_with_what_is_right(
    arguments: list[str], said: str, project_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BQH_HOME", str(project_root))
    monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", "127.0.0.1:9")
    result = CliRunner().invoke(maritime, arguments)
    assert result.exit_code == 2
    assert said in result.output
