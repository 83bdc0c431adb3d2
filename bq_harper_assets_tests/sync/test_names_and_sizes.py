"""Names that SQL reserves, names with dashes, and texts that are larger than a request."""

import pytest
from google.cloud import bigquery

from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.validation.verdict import ProofStatus
from bq_harper_assets_tests.stores.small_tables import SmallTables, utc
from bq_harper_assets_tests.sync.conftest import Sync
from bq_harper_assets_tests.sync.side_by_side import land

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
START, END = utc(2026, 1, 5), utc(2026, 1, 5, 2)
RESERVED = ("order", "select", "group", "from", "where")


@pytest.mark.promise("G2")
@pytest.mark.parametrize("key", [None, "order"], ids=["keyless", "keyed"])
def test_a_table_with_a_dash_and_columns_of_reserved_names_is_synced_and_proved(
    sync: Sync, tables: SmallTables, key: str | None
) -> None:
    plain = tables.new_name()
    source = TableRef(plain.project, plain.dataset, plain.table.replace("_", "-"))
    fields = [bigquery.SchemaField(name, "INT64") for name in RESERVED]
    at = bigquery.SchemaField("timestamp", "TIMESTAMP")
    tables.queries.client.create_table(bigquery.Table(str(source), schema=[*fields, at]))
    columns = ", ".join(f"n + {number} AS `{name}`" for number, name in enumerate(RESERVED))
    tables.run(
        f"INSERT INTO {source.sql} SELECT {columns}, TIMESTAMP_ADD(TIMESTAMP '2026-01-05', INTERVAL"
        " n MINUTE) AS `timestamp` FROM UNNEST(GENERATE_ARRAY(0, 99)) AS n"
    )
    declared = {"key": [key]} if key else {}
    contract, report = land(sync, source, START, END, timestamp_column="timestamp", **declared)
    assert report.rows == 100
    stored = sync.harper.search_by_value(contract.target.table, "timestamp", "*", ("*",))
    assert sorted(tuple(row[name] for name in RESERVED) for row in stored) == [
        tuple(n + number for number in range(len(RESERVED))) for n in range(100)
    ]
    cells = sync.cells(contract, START, END)
    proofs = sync.prover(contract).prove(cells, deep=True)
    assert {proof.status for proof in proofs} == {ProofStatus.PROVED}


@pytest.mark.promise("B3")
def test_a_text_of_five_megabytes_is_stored_whole_beside_small_rows(
    sync: Sync, tables: SmallTables
) -> None:
    size = 5_000_000
    source = tables.make_from(
        f"SELECT n, IF(n = 7, REPEAT('aé', {size // 3}), 'small') AS text, TIMESTAMP_ADD(TIMESTAMP"
        " '2026-01-05', INTERVAL n MINUTE) AS ts FROM UNNEST(GENERATE_ARRAY(0, 19)) AS n"
    )
    contract, report = land(sync, source, START, END)
    assert (report.rows, sum(cell.result.quarantined for cell in report.cells)) == (20, 0)
    texts = {row["n"]: row["text"] for row in sync.rows(contract)}
    assert texts.pop(7) == "aé" * (size // 3)
    assert set(texts.values()) == {"small"}
