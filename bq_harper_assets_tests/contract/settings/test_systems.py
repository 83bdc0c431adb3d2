"""Settings become connections: key files, passwords and emulators that fit, or a sentence."""

import pytest

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
