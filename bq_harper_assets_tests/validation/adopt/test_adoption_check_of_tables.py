"""Whether a table fits, what a user must know of it, and where its windows begin."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.stores.harper.answers import Attribute, TableDescription
from bq_harper_assets.stores.harper.mirror.plugin_checkpoints import PluginCheckpoints
from bq_harper_assets.validation.adopt.adoption_check import (
    Beginning,
    Inspection,
    adoption_json,
    find_beginning,
    inspect,
)
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.stores.bigquery.by_hand import Asked, BigQueryByHand
from bq_harper_assets_tests.stores.memory_harper import MemoryHarper, client_of, harper_with
from bq_harper_assets_tests.validation.committed import DAY, MINUTE, at, ships
from bq_harper_assets_tests.validation.source_in_memory import SourceInMemory

TIME = Attribute(name="event_time", type="String", indexed=True)
NUMBER = Attribute(name="number", type="Long", indexed=True)
HASH = Attribute(name="_hash", type="String")
TABLE = TableDescription(
    database="data",
    name="Orders",
    primary_key="id",
    attributes=(Attribute(name="id", type="Long"), TIME, NUMBER, HASH),
    schema_defined=True,
    audit=True,
    record_count=3,
    is_count_exact=True,
)
KNOWN = Beginning(DAY, None)
PLUGIN = PluginCheckpoints(2, 1_000, DAY + 5 * MINUTE)


def row(row_id: Any, minute: float | None) -> dict[str, Any]:
    time = None if minute is None else at(minute)
    return {"id": row_id, "event_time": time, "number": row_id}


def inspected(
    rows: Sequence[Mapping[str, Any]],
    table: TableDescription = TABLE,
    beginning: Beginning = KNOWN,
    left_out: int = 0,
) -> Inspection:
    source = SourceInMemory(ships(manage="adopt"), [(1, 1), (2, 2)])
    counts = [{"moment": moment, "n": n} for moment, n in source.counts().items()]

    def answer(asked: Asked) -> Sequence[Mapping[str, Any]]:
        if "AS moment" in asked.sql:
            return counts
        return [{"without_time": 0, "before_start": left_out, "in_future": 0}]

    harper = harper_with({"Orders": [dict(each) for each in rows]})
    with (
        BigQueryByHand(answer) as service,
        service.queries() as queries,
        client_of(harper) as client,
    ):
        source.queries = queries
        pin: Any = source
        return inspect(queries, client, source.contract, pin, table, beginning)


def test_a_table_with_rows_as_a_sync_writes_them_fits() -> None:
    found = inspected([row(1, 1), row(2, 2)])
    assert (found.fits, found.problems, found.notes) == (True, (), ())
    assert found.is_searchable
    assert (found.sample.rows, found.sample.equal) == (2, 2)
    told = adoption_json(found)
    assert {name: told[name] for name in ("fits", "primary_key", "rows", "start", "plugin")} == {
        "fits": True,
        "primary_key": "id",
        "rows": 3,
        "start": "2026-01-05T00:00:00+00:00",
        "plugin": None,
    }
    assert (told["problems"], told["notes"], told["sample"]["equal"]) == ([], [], 2)
    assert [each["name"] for each in told["attributes"]][:3] == ["id", "event_time", "number"]


def test_what_the_plugin_said_is_told_to_programs() -> None:
    found = inspected([], beginning=Beginning(None, PLUGIN))
    told = adoption_json(found)
    assert told["start"] is None
    assert told["plugin"] == {
        "nodes": 2,
        "ingested": 1_000,
        "covered_until": "2026-01-05T00:05:00+00:00",
    }
    silent = replace(PLUGIN, covered_until=None)
    told = adoption_json(replace(found, beginning=Beginning(DAY, silent)))
    assert told["plugin"]["covered_until"] is None


def test_rows_that_no_window_finds_and_ids_of_another_type_do_not_fit() -> None:
    found = inspected([row(1, 1) | {"event_time": "garbage"}])
    assert not found.fits
    assert "rows have a timestamp such as garbage by which no window" in found.problems[0]
    found = inspected([row("1", 1)])
    assert "rows have ids such as '1', and a sync's would be numbers" in found.problems


def test_a_table_of_another_key_is_not_looked_into() -> None:
    found = inspected([row(1, 1)], replace(TABLE, primary_key="key"))
    assert not found.fits
    assert "its primary key is key" in found.problems[0]
    assert found.sample.rows == 0


@pytest.mark.parametrize(
    ("time", "is_searchable"),
    [
        (TIME, True),
        (replace(TIME, type=None), True),
        (replace(TIME, type="ID"), True),
        (replace(TIME, type="Date"), False),
        (replace(TIME, indexed=False), False),
        (replace(TIME, name="other"), False),
    ],
)
def test_a_timestamp_is_searched_by_its_texts_only_with_an_index(
    time: Attribute, is_searchable: bool
) -> None:
    table = replace(TABLE, attributes=(time, NUMBER, HASH))
    assert inspected([], table).is_searchable == is_searchable


def test_a_user_is_told_which_rows_stay_out_and_what_to_declare() -> None:
    rows = [row(1, 1), row(2, -1), row(3, None)]
    assert inspected(rows).notes == (
        "2 rows of Harper lie outside all windows, and stay as they are",
    )
    [note] = inspected([], replace(TABLE, attributes=(TIME, NUMBER))).notes
    assert note.startswith("declare _hash where the table is declared, the timestamp @indexed:")
    required = replace(TABLE, attributes=(TIME, replace(NUMBER, required=True), HASH))
    assert inspected([], required).notes == (
        "rows in which number is NULL go to quarantine: it is required there",
    )
    unseen = inspected([], replace(TABLE, attributes=())).notes
    assert unseen[0].startswith("the role of this login is shown no attributes")


def test_rows_that_are_older_than_where_the_plugin_began_are_counted() -> None:
    [note] = inspected([], beginning=Beginning(DAY, PLUGIN), left_out=1_200).notes
    assert note.startswith("1,200 rows of BigQuery are older than the first window")
    assert inspected([], beginning=KNOWN, left_out=1_200).notes == ()


@contextmanager
def _plugin(*rows: dict[str, Any]) -> Iterator[MemoryHarper]:
    theirs = {"id": 1, "tableId": "orders", "lastTimestamp": at(5), "recordsIngested": 7}
    yield harper_with({"SyncCheckpoint": [theirs], "Orders": list(rows)})


@pytest.mark.parametrize(
    ("oldest", "table", "start"),
    [
        (DAY + 400 * MINUTE, TABLE, DAY + 5 * MINUTE),
        (DAY + 400 * MINUTE, replace(TABLE, attributes=(NUMBER,)), DAY),
        (None, replace(TABLE, attributes=(NUMBER,)), None),
    ],
)
def test_windows_begin_where_the_plugin_did_if_harper_can_say_where_that_was(
    oldest: datetime | None, table: TableDescription, start: datetime | None, tmp_path: Path
) -> None:
    known = ships(sync={})
    with (
        open_ledger(empty_ledger(tmp_path / "ledger.db")) as ledger,
        BigQueryByHand(lambda asked: [{"oldest": oldest}]) as service,
        service.queries() as queries,
        _plugin(row(1, 9), row(2, 7)) as harper,
        client_of(harper) as client,
    ):
        found = find_beginning(ledger, queries, client, known, table)
        assert found == Beginning(start, PluginCheckpoints(1, 7, DAY + 5 * MINUTE))
        other = find_beginning(ledger, queries, client, ships(sync={}, id="other"), table)
    assert other == Beginning(DAY if oldest else None, None)
