"""Secrets stay out of files, messages, reprs and lists of settings."""

from base64 import b64encode

import pytest
from pydantic import ValidationError

from bq_harper_assets.contract.loading.problems import ConfigError
from bq_harper_assets.contract.secrets import (
    literal_part,
    password_in_url,
    value_without_secrets,
    without_secrets,
)
from bq_harper_assets.contract.settings.profile import HarperProfile
from bq_harper_assets_tests.contract.conftest import Disk

CANARY = "hunter2-canary"
PLACES = [
    "harper:\n  password: {0}\n",
    "harper:\n  token: {0}\n",
    "harper:\n  password: ${{PW:-{0}}}\n",
    "ledger:\n  url: postgresql://sync:{0}@db/ledger\n",
    "ledger:\n  url: postgresql://db/ledger?user=sync&password={0}\n",
    "ledger:\n  url: postgresql://sync:{0} {0}@db/ledger\n",
    "spark:\n  settings:\n    spark.hadoop.fs.s3a.secret.key: {0}\n",
    "spark:\n  settings:\n    spark.hadoop.fs.gs.auth.service.account.private.key: {0}\n",
    "spark:\n  settings:\n    spark.hadoop.fs.azure.account.key.a.blob.core.windows.net: {0}\n",
    "spark:\n  remote: sc://head:443/;user_id=me;token={0}\n",
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
    "harper:\n  password:{0}\n",
    "harper: {{password:{0}}}\n",
    "harper:\n  password: *{0}\n",
    "harper:\n  password: !{0}\n",
    "bigquery:\n  endpoint: sync:{0}@emulator:9050\n",
    'bigquery:\n  credentials: \'{{"private_key": "{0}"}}\'\n',
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
    texts = [project.spark.remote, *(secret.get_secret_value() for secret in held if secret)]
    assert any(text and CANARY in text for text in texts)
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
    assert value_without_secrets(text) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("postgresql://a:p w@h/d", "postgresql://***@h/d"),
        ("a:b@h:1", "***@h:1"),
        ("password:a b", "password:***"),
    ],
)
def test_values_hide_more_than_prose(value: str, shown: str) -> None:
    assert value_without_secrets(value) == shown
    told = '{"error": "token: not known, ask admin@example.com"}'
    assert without_secrets(told) == told


def test_what_a_file_says_itself_is_told_apart_from_variables() -> None:
    assert literal_part("${A}") == ""
    assert literal_part("x${A}y${B:-z}") == "xyz"
    assert literal_part("$${A}") == "$${A}"
    assert password_in_url("postgresql://a:b@h/d")
    assert not password_in_url(literal_part("postgresql://a:${B}@h/d"))
    assert not password_in_url("sqlite:///a.db")


KEY_ITSELF = '{"type": "service_account", "private_key": "' + CANARY + "x" * 5000 + '"}'


@pytest.mark.parametrize(
    "key", [KEY_ITSELF, b64encode(KEY_ITSELF.encode()).decode()], ids=["JSON", "base64"]
)
def test_a_key_in_place_of_its_file_is_refused_and_not_shown(key: str, disk: Disk) -> None:
    disk.write("config/profiles/gcp.yaml", "")
    told = disk.refusal({"GOOGLE_APPLICATION_CREDENTIALS": key}, profile="gcp")
    assert told.startswith("1 problem ")
    assert "GOOGLE_APPLICATION_CREDENTIALS = ***" in told
    assert "save it in a file" in told
    assert CANARY not in told


@pytest.mark.parametrize("password", ["''", "' '"])
def test_a_blank_password_is_none(password: str, disk: Disk) -> None:
    disk.write("config/profiles/local.yaml", f"harper:\n  password: {password}\n")
    assert "harper.password = ***\n    is blank" in disk.refusal()


def test_a_password_that_cannot_be_sent_is_told(disk: Disk) -> None:
    assert "is not UTF-8 text" in disk.refusal({"OPERATIONSAPI_PASS": "a\udcff"})
