"""The resource as Dagster uses it: configured by the environment, and its secrets shown nowhere."""

from typing import Any

import dagster as dg
import pytest
from pydantic import SecretStr, ValidationError

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.stores.harper.resource import HarperResource

CANARY = "canary-password-31"


@dg.asset
def who(harper: HarperResource) -> str:
    """The user that has logged in."""
    with harper.client() as client:
        client.describe_all()
    return harper.connection().user


def materialise(resource: HarperResource, **options: Any) -> dg.ExecuteInProcessResult:
    return dg.materialize([who], resources={"harper": resource}, **options)


def shown_by_dagster(resource: HarperResource) -> str:
    """All that the resource's page in the UI is made of."""
    config: Any = resource.get_resource_definition().config_schema.as_field().config_type
    defaults = {
        name: field.default_value for name, field in config.fields.items() if field.default_provided
    }
    return f"{defaults} {resource!r} {resource}"


@pytest.mark.harper
@pytest.mark.promise("O2")
def test_address_and_login_come_from_the_environment_alone(
    harper_connection: HarperConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    resource = HarperResource(
        url=dg.EnvVar("TEST_HARPER_URL"),
        user=dg.EnvVar("TEST_HARPER_USER"),
        password=dg.EnvVar("TEST_HARPER_PASS"),
    )
    monkeypatch.setenv("TEST_HARPER_URL", harper_connection.url)
    monkeypatch.setenv("TEST_HARPER_USER", harper_connection.user)
    monkeypatch.setenv("TEST_HARPER_PASS", harper_connection.password.get_secret_value())
    assert materialise(resource).output_for_node("who") == harper_connection.user
    monkeypatch.setenv("TEST_HARPER_URL", "no address")
    with pytest.raises(Exception, match="resource_fn") as caught:
        materialise(resource)
    assert "url\n  Value error, must be a URL" in str(caught.value.__cause__)


@pytest.mark.harper
@pytest.mark.promise("O2")
def test_a_profiles_harper_works_in_a_run_and_keeps_its_password_out_of_the_config(
    harper_connection: HarperConnection,
) -> None:
    resource = HarperResource.from_connection(harper_connection)
    assert materialise(resource).output_for_node("who") == harper_connection.user
    assert harper_connection.password.get_secret_value() not in shown_by_dagster(resource)


def test_secrets_of_a_profile_are_not_shown_and_not_shared() -> None:
    connection = HarperConnection(
        url="http://127.0.0.1:9925",
        user="sink",
        password=SecretStr(CANARY),
        token=SecretStr(f"{CANARY}-token"),
        requests_in_flight=3,
    )
    resource = HarperResource.from_connection(connection, max_retries=1)
    assert resource.connection() == connection
    assert CANARY not in shown_by_dagster(resource)
    assert "9925" in shown_by_dagster(resource)
    other = HarperResource(url="http://127.0.0.1:9926", user="other", password="its own")
    assert "its own" not in repr(other)
    assert other.connection().password.get_secret_value() == "its own"
    assert other.connection().token is None


@pytest.mark.promise("G9")
def test_retries_are_what_was_set() -> None:
    resource = HarperResource(url="http://127.0.0.1:9925", max_retries=2, initial_retry_delay_ms=10)
    assert resource.retry() == RetryPolicy(max_retries=2, initial_delay_s=0.010)


@pytest.mark.promise("O2")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("url", "localhost"),
        ("url", f"http://u:{CANARY}@127.0.0.1:9925"),
        ("max_retries", -1),
        ("initial_retry_delay_ms", "soon"),
        ("requests_in_flight", 0),
        ("passwort", CANARY),
    ],
)
def test_a_bad_value_fails_at_load_and_names_its_field(field: str, value: object) -> None:
    given: dict[str, Any] = {"url": "http://127.0.0.1:9925", field: value}
    with pytest.raises(ValidationError, match=field) as caught:
        HarperResource(**given)
    assert CANARY not in str(caught.value)
