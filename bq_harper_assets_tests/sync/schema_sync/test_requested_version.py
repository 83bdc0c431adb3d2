"""What waits for a person is synced once the person asks for it."""

import pytest
from google.cloud.bigquery import TimePartitioning

from bq_harper_assets.stores.bigquery.source import BigQuerySource
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.sync.schema_sync.requested_version import Deciding
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.conftest import Sync
from bq_harper_assets_tests.sync.evolving import (
    NEXT,
    NO,
    OLDER,
    OPEN,
    Evolving,
)
from bq_harper_assets_tests.sync.test_evolution import KEYED

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]


@pytest.mark.promise("D4", "F4")
def test_what_is_left_to_a_person_waits_and_the_sync_goes_on_without_it(
    sync: Sync, tables: SmallTables
) -> None:
    table = Evolving.made(
        sync,
        tables,
        "CAST(n AS STRING) AS name, CAST(n AS NUMERIC) AS price",
        **KEYED,
        schema_policy="approve",
        schema_overrides={"name": {"policy": "freeze"}},
    )
    table.mode("price", "REQUIRED")
    assert [str(each) for each in table.drift().changes] == [
        "price mode (NULLABLE -> REQUIRED): recorded"
    ]
    table.mode("price", "NULLABLE", "BIGNUMERIC")
    table.describe(clustering_fields=["name"], time_partitioning=TimePartitioning(field="ts"))
    assert [str(each) for each in table.drift().changes] == [
        "name index (not indexed -> indexed): Harper builds it at the next sync if the column came"
        " after the table was made; to an older one it adds none, and searches by it read the whole"
        f" table. See: bqh schema indexes {table.contract.id}",
        "price widened (NUMERIC -> BIGNUMERIC): recorded: Harper stores both alike",
        "partitioning (none -> ts): recorded",
    ]
    assert table.look() == set()

    listed = table.declared(columns=("number", "ts", "name", "price"))
    table.add(load="INT64")
    table.change("UPDATE T SET load = number WHERE TRUE")
    assert [str(each) for each in listed.drift().changes] == [
        "load not selected: not synced: the contract's columns do not name it"
    ]
    table.remake("* REPLACE (CAST(name AS INT64) AS name)")
    table.mode("price", "NULLABLE", "BIGNUMERIC")  # which the emulator makes a NUMERIC
    drift = table.drift()
    assert [f"{each.severity}: {each}" for each in drift.waiting] == [
        "error: name retyped (STRING -> INT64): not synced: the policy is freeze; undo the"
        " change in BigQuery, or set the policy to approve and type: bqh schema apply"
        f" {table.contract.id}",
        f"warn: load added (INT64): waits for: bqh schema apply {table.contract.id}",
    ]
    said: list[str] = []
    report = table.run(NEXT, say=said.append)
    assert report.waiting == drift.waiting
    assert said[1:] == [
        f"{table.contract.id} goes on with the columns it has: {each}" for each in drift.waiting
    ]
    names = ("name", "name_v2", "price", "load")
    assert table.values(*names)[20] == (NO, NO, 20, NO)
    assert table.values(*names)[0] == ("0", NO, 0, NO)
    table.assert_proved(OLDER, NEXT)

    deciding = Deciding(
        sync.stores.ledger, BigQuerySource(tables.queries, harper_plan), table.contract, "me"
    )
    decided = deciding.apply(record=True)
    assert (decided.version, [each.column for each in decided.changes]) == (
        drift.version + 1,
        ["load"],
    )
    assert [each.column for each in decided.waiting] == ["name"]
    table.run(OPEN)
    assert table.values(*names)[30] == ("30", NO, 30, 30)
    table.assert_proved(OLDER, NEXT, OPEN, without=dict.fromkeys((OLDER, NEXT), ("load",)))
    assert table.look() == set()

    table.remake("* REPLACE (CAST(number AS STRING) AS number)")
    problem = table.drift().problem
    assert problem is not None
    assert "number was INT64 and is now STRING in BigQuery, and it is the key" in problem
