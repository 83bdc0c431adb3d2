"""What a login without rights is told of a table, by answers that Harper gives to no other role."""

import pytest
from pydantic import SecretStr

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.errors import HarperUnauthorized
from bq_harper_assets_tests.fault_proxy import Answer, FaultProxy

DENIED = Answer(
    403,
    {
        "error": "This operation is not authorized",
        "unauthorized_access": [],
        "invalid_schema_items": ["Table 'data.Ships' does not exist"],
    },
)


def test_a_table_that_was_made_and_is_then_denied_is_a_lack_of_rights(nowhere: str) -> None:
    with FaultProxy(nowhere) as proxy:
        login = HarperConnection(url=proxy.url, user="nobody", password=SecretStr("none"))
        proxy.on(DENIED, operation="describe_table", times=9)
        proxy.on(Answer(200, b"{}"), operation="describe_all", times=9)
        proxy.on(Answer(200, b'{"message":"made"}'), operation="create_table")
        with HarperClient(login) as harper:
            assert harper.describe_table("Ships") is None
            assert harper.create_table("Ships", "id", []).is_new
            with pytest.raises(HarperUnauthorized, match="a right to it, if it is there"):
                harper.describe_table("Ships")
