"""Who logs in and with what, and what is said where that is not enough."""

import pytest
from pydantic import SecretStr

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.stores.harper.errors import (
    HarperUnauthorized,
)
from bq_harper_assets_tests.fault_proxy import (
    FaultProxy,
)
from bq_harper_assets_tests.stores.harper.test_client import direct, make, proxy
from bq_harper_assets_tests.stores.harper_clients import (
    Make,
    admin,
)

__all__ = ["direct", "make", "proxy"]
pytestmark = pytest.mark.harper


@pytest.mark.promise("A6", "E3")
def test_a_wrong_password_is_told_with_user_and_address_only(
    make: Make, proxy: FaultProxy, harper_connection: HarperConnection
) -> None:
    wrong = harper_connection.model_copy(
        update={"url": proxy.url, "password": SecretStr("canary-5a1b")}
    )
    with pytest.raises(HarperUnauthorized) as caught:
        make(wrong).describe_all()
    assert str(caught.value) == (
        f"describe_all failed: Harper at {proxy.url} answered 401: Login failed (for user"
        f" {wrong.user!r}). Nothing was changed. Next: set OPERATIONSAPI_USER and"
        " OPERATIONSAPI_PASS, then: bqh doctor"
    )
    assert len(proxy.seen()) == 1


@pytest.mark.promise("A6")
def test_a_token_logs_in_instead_of_the_password(
    make: Make, harper_connection: HarperConnection
) -> None:
    login = {
        "username": harper_connection.user,
        "password": harper_connection.password.get_secret_value(),
    }
    told = admin(harper_connection, "create_authentication_tokens", **login).json()
    update = {"token": SecretStr(told["operation_token"]), "password": SecretStr("wrong")}
    assert make(harper_connection.model_copy(update=update)).server_threads()
    bad = harper_connection.model_copy(update={"token": SecretStr("canary-token")})
    with pytest.raises(HarperUnauthorized, match="the token") as caught:
        make(bad).describe_all()
    assert "canary" not in str(caught.value)
