"""Settings become connections: key files, passwords and emulators that fit, or a sentence."""

from pathlib import Path

import pytest

from bq_harper_assets.contract.loading.problems import ConfigError
from bq_harper_assets_tests.contract.conftest import Disk
from bq_harper_assets_tests.contract.settings.test_origins import TOP


@pytest.mark.promise("G1")
@pytest.mark.parametrize("place", ["config", "."], ids=["beside the file", "in the project's root"])
def test_a_key_file_is_found_beside_the_file_and_in_the_root(place: str, disk: Disk) -> None:
    key = disk.write(f"{place}/key.json", "{}")
    disk.write("config/profiles/gcp.yaml", "")
    project = disk.tables(TOP).load(profile="gcp")
    assert project.bigquery.credentials == key
    assert project.bigquery.location == "US"


def test_an_emulator_of_ones_own_is_not_mixed_with_that_of_a_file(disk: Disk) -> None:
    text = "bigquery: {project: demo, endpoint: 'http://filed:1', storageEndpoint: 'filed:2'}"
    disk.write("config/profiles/local.yaml", text)
    assert disk.load().bigquery.storage_endpoint == "filed:2"
    own = disk.load({"BIGQUERY_EMULATOR_HOST": "emulator:9050"})
    assert own.bigquery.storage_endpoint == "emulator:9060"


def test_an_emulator_outside_the_local_profile_is_used_with_a_warning(disk: Disk) -> None:
    disk.write("config/profiles/gcp.yaml", "bigquery: {project: demo}")
    project = disk.tables(TOP).load(
        {"BIGQUERY_EMULATOR_HOST": "https://emulator:9050"}, profile="gcp"
    )
    assert project.bigquery.endpoint == "https://emulator:9050"
    assert project.bigquery.credentials is None
    assert any("profile gcp reads from an emulator" in str(warning) for warning in project.warnings)


@pytest.mark.parametrize("path", ["~nobody-of-this-name/key.json", "x" * 290])
def test_a_key_file_that_cannot_be_is_told(path: str, disk: Disk) -> None:
    disk.write("config/profiles/gcp.yaml", "")
    told = disk.tables(f"bigquery: {{credentials: {path}.json}}").refusal(profile="gcp")
    assert "there is no key file at" in told


def test_a_blank_key_file_is_told_once(disk: Disk) -> None:
    disk.write("config/profiles/gcp.yaml", "")
    told = disk.tables("bigquery: {credentials: ' '}").refusal(profile="gcp")
    assert told.startswith("1 problem ")


def test_a_key_file_named_in_dotenv_is_relative_to_the_project(disk: Disk) -> None:
    key = disk.write("keys/key.json", "{}")
    disk.write("config/profiles/gcp.yaml", "bigquery: {project: demo}")
    disk.write(".env", "GOOGLE_APPLICATION_CREDENTIALS=keys/key.json\n")
    assert disk.load(profile="gcp").bigquery.credentials == key


@pytest.mark.parametrize("user", ["a\nb", "a\x1b[31m", "a\udcff"])
def test_text_with_control_characters_is_refused(user: str, disk: Disk) -> None:
    assert "control character" in disk.refusal({"OPERATIONSAPI_USER": user})


PROFILE = "config/profiles/gcp.yaml"
HARPER = {"OPERATIONSAPI_URL": "https://harper.example.com:9925", "OPERATIONSAPI_PASS": "hunter2"}


def test_a_connection_that_is_not_complete_says_so_when_it_is_used(disk: Disk) -> None:
    local = disk.load()
    with pytest.raises(ConfigError, match=r"profile local: bigquery\.project\n.*no Google Cloud"):
        _ = local.bigquery
    with pytest.raises(ConfigError, match=r"harper\.password\n.*start the local stack with bqh up"):
        _ = local.harper
    named = disk.load({"GOOGLE_CLOUD_PROJECT": "p"})
    with pytest.raises(ConfigError, match=r"bigquery\.endpoint\n.*the local stack was not started"):
        _ = named.bigquery
    disk.write(PROFILE, "")
    remote = disk.load(
        {"OPERATIONSAPI_URL": HARPER["OPERATIONSAPI_URL"], "GOOGLE_CLOUD_PROJECT": "p"},
        profile="gcp",
    )
    with pytest.raises(ConfigError, match=r"no password for Harper at https://harper\.example"):
        _ = remote.harper
    assert remote.bigquery.endpoint is None


def test_a_token_stands_for_a_password(disk: Disk) -> None:
    disk.write(PROFILE, "harper: {token: '${TOKEN}', url: '${URL}'}")
    url = HARPER["OPERATIONSAPI_URL"]
    harper = disk.load({"TOKEN": "t0ken", "URL": url}, profile="gcp").harper
    assert harper.token is not None
    assert (harper.token.get_secret_value(), harper.password.get_secret_value()) == ("t0ken", "")
    both = disk.load({**HARPER, "TOKEN": "t0ken", "URL": url}, profile="gcp").harper
    assert both.password.get_secret_value() == "hunter2"
    with_password = disk.load(HARPER).harper
    assert (with_password.password.get_secret_value(), with_password.token) == ("hunter2", None)


@pytest.mark.parametrize(
    ("written", "master", "remote"),
    [
        ("", "local[*]", None),
        ("spark: {master: 'spark://head:7077'}", "spark://head:7077", None),
        ("spark: {remote: 'sc://head:15002'}", None, "sc://head:15002"),
    ],
)
def test_spark_runs_here_unless_it_is_said_where(
    written: str, master: str | None, remote: str | None, disk: Disk
) -> None:
    disk.write(PROFILE, written)
    spark = disk.load(profile="gcp").spark
    assert (spark.master, spark.remote) == (master, remote)


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("sqlite:///data/ledger.db", "sqlite:///{root}/data/ledger.db"),
        ("sqlite:////data/ledger.db", "sqlite:////data/ledger.db"),
        ("postgresql://u@db/ledger", "postgresql://u@db/ledger"),
    ],
)
def test_a_ledger_in_a_file_lies_in_the_project_wherever_a_command_is_typed(
    url: str, found: str, disk: Disk
) -> None:
    disk.write(PROFILE, f"ledger: {{url: '{url}'}}")
    ledger = disk.load(profile="gcp").ledger
    assert ledger.url.get_secret_value() == found.format(root=disk.root)


@pytest.mark.parametrize(
    ("url", "allowed", "is_refused"),
    [
        ("http://harper.example.com:9925", None, True),
        ("http://harper.example.com:9925", "false", True),
        ("http://harper.example.com:9925", "true", False),
        ("http://127.0.0.1:9925", None, False),
        ("https://harper.example.com:9925", None, False),
    ],
)
def test_a_password_travels_unencrypted_only_to_this_machine_or_if_that_is_allowed(
    url: str, allowed: str | None, is_refused: bool, disk: Disk
) -> None:
    disk.write(PROFILE, f"harper: {{allowHttp: {allowed}}}" if allowed else "")
    environ = {**HARPER, "OPERATIONSAPI_URL": url}
    if is_refused:
        told = disk.refusal(environ, profile="gcp")
        assert told.startswith("1 problem ")
        assert "would send the password unencrypted to another machine" in told
    else:
        assert disk.load(environ, profile="gcp").harper.url == url


def test_a_storage_address_alone_is_told_and_so_is_a_value_that_is_overruled(disk: Disk) -> None:
    disk.write(PROFILE, "bigquery: {storageEndpoint: 'emulator:9060'}")
    told = disk.refusal(profile="gcp")
    assert told.startswith("1 problem ")
    assert "needs endpoint, the emulator's REST address, beside it" in told
    disk.write(PROFILE, "bigquery: {maxRetries: many}\nharper: {url: 5}")
    told = disk.refusal(HARPER, profile="gcp")
    assert told.startswith("2 problems ")  # the variable overrules harper.url, and may be gone soon
    assert "harper.url = 5" in told
    assert "bigquery.maxRetries = many" in told


def test_a_number_of_retries_counts_only_where_it_is_written(disk: Disk) -> None:
    disk.write(PROFILE, "bigquery: {project: p}")
    assert disk.load(profile="gcp").bigquery.max_retries is None
    assert disk.load(profile="gcp").bigquery.initial_retry_delay_ms == 1_000
    disk.write(PROFILE, "bigquery: {project: p, maxRetries: 5, initialRetryDelay: 20}")
    found = disk.load(profile="gcp").bigquery
    assert (found.max_retries, found.initial_retry_delay_ms) == (5, 20)


def test_a_key_file_of_the_environment_is_relative_to_where_the_command_is_typed(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = tmp_path / "elsewhere"
    typed.mkdir()
    (typed / "key.json").write_text("{}", encoding="utf-8")
    monkeypatch.chdir(typed)
    disk.write(PROFILE, "bigquery: {project: p}")
    environ = {"GOOGLE_APPLICATION_CREDENTIALS": "key.json"}
    assert disk.load(environ, profile="gcp").bigquery.credentials == typed / "key.json"
    told = disk.refusal({"GOOGLE_APPLICATION_CREDENTIALS": "other.json"}, profile="gcp")
    assert f"there is no key file at {typed / 'other.json'}: put it there" in told
