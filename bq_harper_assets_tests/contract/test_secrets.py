"""Secrets stay out of files, messages, reprs and lists of settings."""

import pytest
from pydantic import ValidationError

from bq_harper_assets.contract.problems import ConfigError
from bq_harper_assets.contract.profile import HarperProfile
from bq_harper_assets.contract.secrets import literal_part, password_in_url, without_secrets
from bq_harper_assets_tests.contract.conftest import Disk

CANARY = "hunter2-canary"
PLACES = [
    "harper:\n  password: {0}\n",
    "harper:\n  token: {0}\n",
    "harper:\n  password: ${{PW:-{0}}}\n",
    "ledger:\n  url: postgresql://sync:{0}@db/ledger\n",
    "ledger:\n  url: postgresql://db/ledger?user=sync&password={0}\n",
    "spark:\n  settings:\n    spark.hadoop.fs.s3a.secret.key: {0}\n",
]
WRONG = [
    *PLACES,
    "harper:\n  pasword: {0}\n",
    "harper:\n  password: [{0}]\n",
    "harper: {0}:\n",
    "harper:\n  url: http://admin:{0}@localhost:9925\n",
    "harper:\n  url: http://{0}@localhost:9925\n",
    "ledger:\n  url: mysql://sync:{0}@db/ledger\n",
    "harper:\n  password: '{0}\n",
    "operations:\n  password: {0}\n",
]


@pytest.mark.promise("A13")
@pytest.mark.parametrize("place", PLACES)
def test_a_secret_in_a_file_is_refused_but_for_the_local_profile(place: str, disk: Disk) -> None:
    disk.write("config/profiles/gcp.yaml", place.format(CANARY))
    disk.write("config/profiles/local.yaml", place.format(CANARY))
    told = disk.refusal(profile="gcp")
    assert "written in a file" in told
    assert CANARY not in told
    assert CANARY not in repr(disk.load())


@pytest.mark.parametrize("place", [place for place in PLACES if ":-" not in place])
def test_a_secret_in_a_variable_is_taken_and_never_shown(place: str, disk: Disk) -> None:
    disk.write("config/profiles/gcp.yaml", place.format("${SECRET}"))
    project = disk.load({"SECRET": CANARY}, profile="gcp")
    held = [project.ledger.url, *project.spark.settings.values()]
    if "harper" in place:
        held += [project.harper.password, project.harper.token]
        assert CANARY not in repr(project.harper)
        assert CANARY not in str(project.harper)
    assert any(secret and CANARY in secret.get_secret_value() for secret in held)
    assert CANARY not in repr(project)
    assert CANARY not in repr(project.settings)


@pytest.mark.parametrize("profile", ["local", "gcp"])
@pytest.mark.parametrize("place", WRONG)
def test_no_message_holds_a_secret(place: str, profile: str, disk: Disk) -> None:
    disk.write(f"config/profiles/{profile}.yaml", place.format(CANARY) + "nonsense: 1\n")
    with pytest.raises(ConfigError) as caught:
        disk.load(profile=profile)
    assert CANARY not in str(caught.value)
    assert CANARY not in repr(caught.value)
    assert caught.value.__context__ is None


def test_a_secret_in_the_wrong_file_or_variable_is_not_shown(disk: Disk) -> None:
    told = disk.tables(f"harper:\n  password: {CANARY}\nbigquery:\n  password: {CANARY}\n").refusal(
        {"OPERATIONSAPI_URL": f"http://a:{CANARY}@h", "OPERATIONSAPI_PASS": CANARY}
    )
    assert told.startswith("3 problems ")
    assert CANARY not in told


def test_a_model_made_by_hand_shows_no_input_either() -> None:
    with pytest.raises(ValidationError) as caught:
        HarperProfile.model_validate({"password": [CANARY]})
    assert CANARY not in str(caught.value)


def test_a_value_of_a_variable_is_not_shown_in_a_message(disk: Disk) -> None:
    told = disk.tables("bigquery:\n  location: ${X}\n").refusal({"X": f"{CANARY} !"})
    assert "bigquery.location = ${X}" in told
    assert CANARY not in told


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://a:b@h/c", "http://***@h/c"),
        ("postgresql://a:p@ss/w@h/d", "postgresql://***@h/d"),
        ("postgresql://h/d?password=x&a=b", "postgresql://h/d?password=***&a=b"),
        ("http://h:1", "http://h:1"),
    ],
)
def test_urls_are_shown_without_what_is_secret(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


def test_what_a_file_says_itself_is_told_apart_from_variables() -> None:
    assert literal_part("${A}") == ""
    assert literal_part("x${A}y${B:-z}") == "xyz"
    assert literal_part("$${A}") == "$${A}"
    assert password_in_url("postgresql://a:b@h/d")
    assert not password_in_url(literal_part("postgresql://a:${B}@h/d"))
    assert not password_in_url("sqlite:///a.db")
