"""Where settings come from: which place wins, what goes with what, and what is said of each."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from bq_harper_assets.contract.loading.problems import ConfigError
from bq_harper_assets.contract.project import Project, load_project
from bq_harper_assets.contract.settings.addresses import StackAddresses, write_addresses
from bq_harper_assets.contract.settings.root import find_project_root
from bq_harper_assets_tests.contract.conftest import Disk
from bq_harper_assets_tests.contract.test_table import OneTable

TOP = "bigquery:\n  projectId: from-file\n  credentials: key.json\n"


@pytest.fixture
def stack_files(disk: Disk) -> StackAddresses:
    """A local stack that was started once: its files are there."""
    password = disk.write(".local/admin-password", "of-the-stack\n")
    addresses = StackAddresses(
        harper_url="http://127.0.0.1:19925",
        harper_rest_url="http://127.0.0.1:19926",
        harper_user="stack-admin",
        harper_password_file=password,
        bigquery_url="http://127.0.0.1:19050",
        bigquery_storage="127.0.0.1:19060",
        bigquery_project="stack-project",
    )
    write_addresses(disk.root / ".local", addresses)
    return addresses


def sources(project: Project) -> dict[str, tuple[str, str]]:
    return {setting.name: (setting.value, setting.source) for setting in project.settings}


@pytest.mark.promise("A13")
def test_harper_has_an_address_and_a_user_by_default_but_no_password(disk: Disk) -> None:
    project = disk.load({"OPERATIONSAPI_PASS": "hunter2"})
    assert (project.harper.url, project.harper.user) == ("http://localhost:9925", "admin")
    assert project.harper.password == SecretStr("hunter2")
    assert sources(project)["harper.url"] == ("http://localhost:9925", "default")
    assert sources(project)["harper.password"] == ("***", "OPERATIONSAPI_PASS")


@pytest.mark.promise("A13")
def test_contracts_load_without_a_stack_and_its_absence_is_told_when_it_is_needed(
    disk: Disk,
) -> None:
    project = disk.load()
    with pytest.raises(ConfigError) as harper:
        _ = project.harper
    assert "bqh up" in str(harper.value)
    assert "OPERATIONSAPI_PASS" in str(harper.value)
    with pytest.raises(ConfigError) as bigquery:
        _ = project.bigquery
    assert "projectId" in str(bigquery.value)
    with pytest.raises(ConfigError, match="type bqh up"):
        _ = disk.load({"GOOGLE_CLOUD_PROJECT": "demo"}).bigquery


@pytest.mark.promise("A13")
def test_without_a_password_another_profile_names_the_variable(disk: Disk) -> None:
    disk.write("config/profiles/gcp.yaml", "harper:\n  url: https://harper.example.com:9925\n")
    with pytest.raises(ConfigError) as told:
        _ = disk.load(profile="gcp").harper
    assert "no password for Harper at https://harper.example.com:9925" in str(told.value)
    assert "OPERATIONSAPI_PASS" in str(told.value)
    assert "bqh up" not in str(told.value)


def test_a_password_that_this_user_cannot_read_is_not_a_stack_that_was_never_started(
    disk: Disk, stack_files: StackAddresses
) -> None:
    password = stack_files.harper_password_file
    password.unlink()
    with pytest.raises(ConfigError, match="start the local stack with bqh up"):
        _ = disk.load().harper
    password.mkdir()  # which nobody can read as a file, not even root
    with pytest.raises(ConfigError) as told:
        _ = disk.load().harper
    assert f"this user cannot read Harper's password in {password} (Is a directory)" in str(
        told.value
    )
    assert "bqh up" not in str(told.value)


@pytest.mark.promise("A13")
def test_environment_beats_dotenv_beats_file_beats_stack(
    disk: Disk, stack_files: StackAddresses
) -> None:
    def found(environ: dict[str, str] | None = None) -> tuple[str, str]:
        project = disk.load({"OPERATIONSAPI_PASS": "p", **(environ or {})})
        value, source = sources(project)["harper.url"]
        assert project.harper.url == value
        return value, source

    assert found() == ("http://127.0.0.1:19925", "local stack")
    disk.write("config/profiles/local.yaml", "harper:\n  url: http://localhost:3\n")
    assert found() == ("http://localhost:3", "config/profiles/local.yaml:2")
    disk.write(".env", "OPERATIONSAPI_URL=http://localhost:2\n")
    overruled = " (overrules config/profiles/local.yaml:2)"
    assert found() == ("http://localhost:2", f".env (OPERATIONSAPI_URL){overruled}")
    environ = {"OPERATIONSAPI_URL": "http://localhost:1"}
    assert found(environ) == ("http://localhost:1", f"OPERATIONSAPI_URL{overruled}")
    # An empty variable is one that is not set.
    assert found({"OPERATIONSAPI_URL": ""})[0] == "http://localhost:2"


@pytest.mark.promise("G1")
def test_project_and_credentials_of_a_file_beat_what_platforms_preset(disk: Disk) -> None:
    key = disk.write("config/key.json", "{}")
    disk.write("config/profiles/gcp.yaml", "")
    environ = {"GOOGLE_CLOUD_PROJECT": "preset", "GOOGLE_APPLICATION_CREDENTIALS": "/preset.json"}
    project = disk.tables(TOP).load(environ, profile="gcp")
    assert (project.bigquery.project, project.bigquery.credentials) == ("from-file", key)
    assert sources(project)["bigquery.project"] == (
        "from-file",
        "config/tables.yaml:2 (GOOGLE_CLOUD_PROJECT is overruled)",
    )
    alone = disk.tables("").load({"GOOGLE_CLOUD_PROJECT": "preset"}, profile="gcp")
    assert sources(alone)["bigquery.project"] == ("preset", "GOOGLE_CLOUD_PROJECT")
    assert alone.bigquery.credentials is None


@pytest.mark.promise("G1")
def test_a_profile_beats_the_tables_file(disk: Disk) -> None:
    disk.write("config/profiles/gcp.yaml", "bigquery:\n  project: of-profile\n  location: EU\n")
    project = disk.tables("bigquery:\n  projectId: of-tables\n").load(profile="gcp")
    assert (project.bigquery.project, project.bigquery.location) == ("of-profile", "EU")
    assert sources(project)["bigquery.project"][1] == (
        "config/profiles/gcp.yaml:2 (overrules config/tables.yaml:2)"
    )


@pytest.mark.promise("G1")
def test_the_local_profile_needs_no_key_file(disk: Disk, stack_files: StackAddresses) -> None:
    project = disk.tables(TOP).load()
    assert project.bigquery.credentials is None
    assert sources(project)["bigquery.credentials"][1].endswith("(an emulator needs none)")


def test_the_local_profile_reads_the_stack(disk: Disk, stack_files: StackAddresses) -> None:
    project = disk.load()
    assert project.harper.url == stack_files.harper_url
    assert project.harper.user == "stack-admin"
    assert project.harper.password == SecretStr("of-the-stack")
    assert project.bigquery.endpoint == stack_files.bigquery_url
    assert project.bigquery.storage_endpoint == stack_files.bigquery_storage
    assert project.bigquery.project == "stack-project"
    assert disk.tables("bigquery: {projectId: mine}").load().bigquery.project == "mine"


def test_another_profile_does_not_read_the_stack(disk: Disk, stack_files: StackAddresses) -> None:
    disk.write("config/profiles/gcp.yaml", "bigquery: {project: demo}")
    project = disk.load(profile="gcp")
    assert project.bigquery.endpoint is None
    with pytest.raises(ConfigError):
        _ = project.harper


@pytest.mark.parametrize(
    "environ",
    [{"OPERATIONSAPI_URL": "https://harper.example.com"}, {"OPERATIONSAPI_USER": "somebody"}],
    ids=["another server", "another user"],
)
def test_the_password_of_the_stack_is_given_to_nobody_else(
    environ: dict[str, str], disk: Disk, stack_files: StackAddresses
) -> None:
    with pytest.raises(ConfigError, match="no password for Harper"):
        _ = disk.load(environ).harper


def test_an_emulator_of_ones_own_is_not_mixed_with_the_stack(
    disk: Disk, stack_files: StackAddresses
) -> None:
    own = {"BIGQUERY_EMULATOR_HOST": "emulator:9050", "GOOGLE_CLOUD_PROJECT": "demo"}
    project = disk.load(own)
    assert project.bigquery.endpoint == "http://emulator:9050"
    assert project.bigquery.storage_endpoint == "emulator:9060"
    assert sources(project)["bigquery.storageEndpoint"] == (
        "emulator:9060",
        "BIGQUERY_EMULATOR_HOST (same host, port 9060)",
    )
    named = disk.load({**own, "BIGQUERY_EMULATOR_STORAGE_HOST": "emulator:7"})
    assert named.bigquery.storage_endpoint == "emulator:7"
    with pytest.raises(ConfigError, match="no Google Cloud project"):
        _ = disk.load({"BIGQUERY_EMULATOR_HOST": "emulator:9050"}).bigquery


def test_a_wrong_value_is_told_even_where_it_is_overruled(disk: Disk) -> None:
    disk.write("config/profiles/local.yaml", "harper:\n  url: nonsense\n  requestsInFlight: 0\n")
    told = disk.refusal({"OPERATIONSAPI_URL": "http://localhost:1"})
    assert told.startswith("2 problems ")


def test_a_wrong_variable_or_file_is_told_even_where_it_is_overruled(disk: Disk) -> None:
    disk.write("config/profiles/gcp.yaml", "bigquery: {project: demo}")
    disk.tables("bigquery: {projectId: WRONG FILE}")
    told = disk.refusal({"GOOGLE_CLOUD_PROJECT": "WRONG VARIABLE"}, profile="gcp")
    assert told.startswith("2 problems ")
    assert "config/tables.yaml:1: bigquery.projectId = WRONG FILE" in told
    assert "environment: GOOGLE_CLOUD_PROJECT = WRONG VARIABLE" in told


def test_the_default_of_max_retries_counts_as_given_only_if_it_is_written(disk: Disk) -> None:
    disk.write("config/profiles/gcp.yaml", "bigquery: {project: demo}")
    assert disk.load(profile="gcp").bigquery.max_retries is None
    disk.write("config/profiles/gcp.yaml", "bigquery: {project: demo, maxRetries: 5}")
    assert disk.load(profile="gcp").bigquery.max_retries == 5


def test_a_torn_address_file_is_told_with_what_to_do(disk: Disk) -> None:
    disk.write(".local/addresses.json", '{"harper_url": ')
    assert "delete it, then type bqh up" in disk.refusal()


def test_table_settings_tell_their_line(disk: Disk) -> None:
    disk.tables(
        "sync: {pollInterval: 5000}\ntables:\n- {id: a, dataset: b, table: c, timestampColumn: d,\n"
        "   targetTable: E, slices: 2}\n"
    )
    told = sources(disk.load())
    assert told["tables.a.slices"] == ("2", "config/tables.yaml:4")
    assert told["tables.a.window"] == ("60m", "default")
    assert told["tables.a.sync.pollInterval"] == ("5000", "config/tables.yaml:1")


def test_the_environment_of_the_process_is_used_when_none_is_given(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPERATIONSAPI_PASS", "p")
    monkeypatch.setenv("OPERATIONSAPI_USER", "somebody")
    assert load_project(disk.root).harper.user == "somebody"


def test_a_password_file_that_is_no_text_counts_as_none(
    disk: Disk, stack_files: StackAddresses
) -> None:
    stack_files.harper_password_file.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="no password for Harper"):
        _ = disk.load().harper


def test_a_home_of_nobody_is_taken_as_it_is(tmp_path: Path) -> None:
    root = find_project_root({"BQH_HOME": "~nobody-of-this-name/x"}, tmp_path)
    assert root.name == "x"


def test_every_setting_is_shown_as_a_user_writes_it(one_table: OneTable) -> None:
    disk = one_table(
        "columns: [created_at, total]\nlive: false\nsafetyLag: 90s\nwindow: 1d\n"
        "sync: {startTimestamp: 2026-01-05}"
    )
    shown = {each.name: each.value for each in disk.load().settings}
    wanted = {
        "columns": "created_at, total",
        "live": "false",
        "latest": "false",
        "safetyLag": "90s",
        "window": "1d",
        "key": "not set",
        "renames": "not set",
        "slices": "4",
        "sync.startTimestamp": "2026-01-05T00:00:00Z",
    }
    found = {name: shown[f"tables.orders.{name}"] for name in wanted}
    assert found == wanted
    assert shown["harper.token"] == "not set"


def test_spark_settings_are_shown_one_by_one_and_secrets_among_them_are_hidden(disk: Disk) -> None:
    disk.write(
        "config/profiles/local.yaml",
        "spark:\n  settings:\n    spark.executor.memory: 4g\n    spark.my.password: hunter2\n",
    )
    shown = {each.name: each for each in disk.load().settings}
    memory = shown["spark.settings.spark.executor.memory"]
    assert (memory.value, memory.source) == ("4g", "config/profiles/local.yaml:2")
    assert shown["spark.settings.spark.my.password"].value == "***"


def test_profiles_that_there_are_are_offered_in_order(disk: Disk) -> None:
    for name in ("zebra", "ant", "mole"):
        disk.write(f"config/profiles/{name}.yaml", "")
    assert "choose from ant, local, mole, zebra" in disk.refusal(profile="nope")
