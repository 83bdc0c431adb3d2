"""A password that no header can carry is refused before anything is sent, and is never quoted."""

import pytest
from pydantic import SecretStr

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.stores.harper.errors import HarperUnsafe
from bq_harper_assets.stores.harper.login import login_to


def connection(password: str) -> HarperConnection:
    return HarperConnection(url="http://127.0.0.1:9", user="u", password=SecretStr(password))


def test_the_last_character_that_harper_reads_is_sent() -> None:
    assert login_to(connection("secret ÿ")).header.startswith("Basic ")


def test_a_character_that_harper_cannot_read_is_refused_without_the_password() -> None:
    with pytest.raises(HarperUnsafe, match="only a token can replace") as refused:
        login_to(connection("secret Ā"))
    assert "secret" not in str(refused.value)
