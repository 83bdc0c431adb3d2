"""Configurations that must load as they stand: the sample, the examples, what users have."""

from pathlib import Path

import pytest
import yaml

from bq_harper_assets.contract.project import Project, load_project
from bq_harper_assets_tests.contract.conftest import NOW, Disk

DATA = Path(__file__).parent / "data"
ROOT = Path(__file__).parents[2]
EXAMPLES = {
    "events-and-logs": "quick-start",
    "orders-and-payments": "many-tables",
    "selected-columns": "selected-columns",
    "single-table": "single-table",
}


def load(disk: Disk, name: str) -> Project:
    return disk.tables((DATA / f"{name}.yaml").read_text(encoding="utf-8")).load()


@pytest.mark.promise("G12")
@pytest.mark.promise("G11")
def test_two_tables_keep_their_own_settings(disk: Disk) -> None:
    project = load(disk, "quick-start")
    events, logs = project.tables
    assert (events.id, events.dataset, events.table) == ("user_events", "production", "user_events")
    assert events.timestamp_column == "event_time"
    assert events.columns == ("event_time", "user_id", "event_type", "properties")
    assert (events.target_table, logs.target_table) == ("UserEvents", "AppLogs")
    assert logs.columns == ("*",)
    sizes = [
        (t.sync.initial_batch_size, t.sync.catchup_batch_size, t.sync.steady_batch_size)
        for t in project.tables
    ]
    assert sizes == [(10000, 1000, 500), (5000, 500, 100)]
    values = {setting.name: setting.value for setting in project.settings}
    assert values["bigquery.project"] == "your-gcp-project"
    assert values["bigquery.location"] == "US"


@pytest.mark.promise("G12")
def test_retries_and_poll_intervals_are_read(disk: Disk) -> None:
    project = load(disk, "many-tables")
    assert [table.sync.poll_interval for table in project.tables] == [30000, 60000]
    values = {setting.name: setting.value for setting in project.settings}
    assert values["bigquery.maxRetries"] == "5"
    assert values["bigquery.initialRetryDelay"] == "1000"


@pytest.mark.promise("G12")
@pytest.mark.promise("G4")
def test_a_file_of_tables_alone_is_enough(disk: Disk) -> None:
    (table,) = load(disk, "selected-columns").tables
    assert table.columns == ("event_time", "user_id", "event_type", "page_url", "session_id")


@pytest.mark.promise("G9")
def test_a_file_of_retries_alone_applies_to_the_tables_of_another(disk: Disk) -> None:
    disk.write("config/retries.yaml", "bigquery:\n  maxRetries: 2\n  initialRetryDelay: 10\n")
    text = (DATA / "selected-columns.yaml").read_text(encoding="utf-8")
    project = disk.tables(text).load(
        {"BIGQUERY_EMULATOR_HOST": "localhost:9050", "GOOGLE_CLOUD_PROJECT": "demo"}
    )
    assert project.bigquery.max_retries == 2
    assert project.bigquery.initial_retry_delay_ms == 10


@pytest.mark.promise("N6")
def test_the_limit_on_bytes_billed_and_the_results_dataset_reach_the_connection(
    disk: Disk,
) -> None:
    text = (DATA / "selected-columns.yaml").read_text(encoding="utf-8")
    environ = {"BIGQUERY_EMULATOR_HOST": "localhost:9050", "GOOGLE_CLOUD_PROJECT": "demo"}
    unlimited = disk.tables(text).load(environ).bigquery
    assert (unlimited.max_bytes_billed, unlimited.results_dataset) == (None, "bqh_results")

    disk.write("config/limits.yaml", "bigquery:\n  maxBytesBilled: 20000000\n")
    profile = "bigquery:\n  maxBytesBilled: ${MOST}\n  resultsDataset: scratch\n"
    disk.write("config/profiles/local.yaml", profile)
    project = disk.load({**environ, "MOST": "10485760"})
    connection = project.bigquery
    assert (connection.max_bytes_billed, connection.results_dataset) == (10_485_760, "scratch")
    shown = {setting.name: setting for setting in project.settings}
    assert shown["bigquery.maxBytesBilled"].value == "10485760"
    assert "overrules config/limits.yaml" in shown["bigquery.maxBytesBilled"].source


@pytest.mark.promise("N6")
@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("maxBytesBilled: 0", "must be a whole number from 10485760"),
        ("maxBytesBilled: 10", "BigQuery bills at least 10 MiB"),
        ("maxBytesBilled: 10GB", "must be a whole number from 10485760"),
        ("resultsDataset: my-project.scratch", "the dataset stands alone"),
    ],
)
def test_a_limit_or_dataset_that_cannot_be_meant_is_refused(
    disk: Disk, setting: str, told: str
) -> None:
    assert told in disk.tables(f"bigquery:\n  {setting}\n  tables: []\n").refusal()


@pytest.mark.promise("G9")
def test_a_project_of_retries_alone_loads_with_a_warning(disk: Disk) -> None:
    project = load(disk, "retries-only")
    assert project.tables == ()
    assert ["no table is declared" in str(warning) for warning in project.warnings] == [True]


@pytest.mark.promise("G12")
@pytest.mark.parametrize(("example", "known"), EXAMPLES.items())
def test_the_shipped_examples_say_what_users_know(example: str, known: str) -> None:
    ours = yaml.safe_load((ROOT / f"config/examples/{example}.yaml").read_text(encoding="utf-8"))
    assert ours == yaml.safe_load((DATA / f"{known}.yaml").read_text(encoding="utf-8"))


@pytest.mark.promise("G12")
def test_every_shipped_example_loads(disk: Disk) -> None:
    examples = sorted((ROOT / "config" / "examples").glob("*.yaml"))
    assert {file.stem for file in examples} == set(EXAMPLES)
    for file in examples:
        assert disk.tables(file.read_text(encoding="utf-8")).load().tables


@pytest.mark.promise("G2")
def test_the_sample_declares_the_maritime_tables() -> None:
    project = load_project(ROOT, environ={}, profile="local", now=NOW)
    assert [
        (t.dataset, t.table, t.timestamp_column, t.key, t.target_table) for t in project.tables
    ] == [
        ("maritime", "vessel_positions", "timestamp", None, "VesselPositions"),
        ("maritime", "port_events", "event_time", None, "PortEvents"),
        ("maritime", "vessel_metadata", "last_updated", ("mmsi",), "VesselMetadata"),
    ]
    assert project.warnings == ()


def test_the_gcp_profile_loads_with_variables_alone(disk: Disk) -> None:
    disk.write(
        "config/profiles/gcp.yaml", (ROOT / "config/profiles/gcp.yaml").read_text(encoding="utf-8")
    )
    key = disk.write("key.json", "{}")
    project = disk.load(
        {
            "BQH_PROFILE": "gcp",
            "GOOGLE_CLOUD_PROJECT": "my-project",
            "GOOGLE_APPLICATION_CREDENTIALS": str(key),
            "OPERATIONSAPI_URL": "https://harper.example.com:9925",
            "OPERATIONSAPI_PASS": "hunter2",
            "BQH_LEDGER_URL": "postgresql://sync:hunter2@db/ledger",
            "SPARK_MASTER": "spark://head:7077",
        }
    )
    assert project.profile_name == "gcp"
    assert project.bigquery.credentials == key
    assert project.bigquery.endpoint is None
    assert project.harper.url == "https://harper.example.com:9925"
    assert project.spark.master == "spark://head:7077"
    assert project.ledger.url.get_secret_value() == "postgresql://sync:hunter2@db/ledger"
    values = {setting.name: setting.value for setting in project.settings}
    assert values["ledger.url"] == "postgresql://***@db/ledger"


def snake(value: object) -> object:
    if isinstance(value, dict):
        return {
            "".join(f"_{c.lower()}" if c.isupper() else c for c in k): snake(v)
            for k, v in value.items()
        }
    return [snake(item) for item in value] if isinstance(value, list) else value


@pytest.mark.promise("G2")
@pytest.mark.parametrize("name", ["quick-start", "many-tables", "selected-columns", "single-table"])
def test_snake_case_says_the_same_as_camel_case(disk: Disk, name: str) -> None:
    camel = load(disk, name)
    text = (DATA / f"{name}.yaml").read_text(encoding="utf-8")
    assert disk.tables(yaml.safe_dump(snake(yaml.safe_load(text)))).load().tables == camel.tables
