"""A source that changes its columns between the reading of its schema and of its rows."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Event, Thread

import pyarrow as pa
import pytest

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.errors import TransientError
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.bigquery.arrival_check import require_planned
from bq_harper_assets.sync.errors import SourceSchemaMoved
from bq_harper_assets_tests.fault_proxy import Delay, FaultProxy, Seen
from bq_harper_assets_tests.stores.harper_columns import native_column
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.conftest import Sync
from bq_harper_assets_tests.sync.evolving import NEXT, NO, OPEN, Evolving

ADDRESS = pa.struct([("zip", pa.string()), ("codes", pa.list_(pa.int64()))])
ARRIVES = {
    Kind.INT64: pa.int64(),
    Kind.FLOAT64: pa.float64(),
    Kind.NUMERIC: pa.decimal128(38, 9),
    Kind.BOOL: pa.bool_(),
    Kind.STRING: pa.string(),
    Kind.BYTES: pa.binary(),
    Kind.TIMESTAMP: pa.timestamp("us", "UTC"),
    Kind.DATETIME: pa.timestamp("us"),
    Kind.DATE: pa.date32(),
    Kind.TIME: pa.time64("us"),
    Kind.STRUCT: ADDRESS,
}


def moved(planned: Column, *arrives: pa.Field) -> str | None:
    """What is told of rows of these fields; None if they are as planned."""
    schema = pa.schema(arrives).serialize().to_pybytes()
    try:
        require_planned("ships", schema, [native_column(planned)])
    except SourceSchemaMoved as error:
        return str(error)
    return None


def test_each_type_is_taken_as_it_arrives_and_for_no_other() -> None:
    fields = (
        Column(name="zip", kind=Kind.STRING),
        Column(name="codes", kind=Kind.INT64, repeated=True),
    )
    for kind, type_ in ARRIVES.items():
        planned = Column(name="c", kind=kind, fields=fields if kind is Kind.STRUCT else ())
        for other in ARRIVES.values():
            told = moved(planned, pa.field("c", other))
            assert (told is None) is (other == type_), (kind, other)
            listed = moved(replace(planned, repeated=True), pa.field("c", pa.list_(other)))
            assert (listed is None) is (other == type_), (kind, other)
        assert moved(planned, pa.field("c", pa.list_(type_))) is not None
        assert moved(replace(planned, repeated=True), pa.field("c", type_)) is not None


def test_types_that_are_stored_alike_or_sent_otherwise_by_other_servers_are_taken() -> None:
    assert moved(Column(name="c", kind=Kind.NUMERIC), pa.field("c", pa.decimal256(76, 38))) is None
    assert (
        moved(Column(name="c", kind=Kind.BIGNUMERIC), pa.field("c", pa.decimal128(38, 9))) is None
    )
    json = pa.field("c", pa.string(), metadata={"ARROW:extension:name": "google:sqlType:json"})
    assert moved(Column(name="c", kind=Kind.JSON), json) is None
    assert moved(Column(name="c", kind=Kind.GEOGRAPHY), pa.field("c", pa.binary())) is None
    told = moved(Column(name="c", kind=Kind.STRING), json)
    assert "c was STRING and arrives as google:sqlType:json" in (told or "")


def test_what_is_gone_or_changed_inside_a_column_is_told_with_its_path() -> None:
    fields = (Column(name="zip", kind=Kind.INT64), Column(name="city", kind=Kind.STRING))
    planned = Column(name="address", kind=Kind.STRUCT, fields=fields, source_name="place")
    assert moved(planned, pa.field("place", ADDRESS)) == (
        "the columns of ships changed in the source while the run was planned: place.zip was INT64"
        " and arrives as string; place.city is gone. Nothing of it was written. Run it again; it"
        " will use the new columns: bqh sync ships"
    )
    assert "place is gone" in (moved(planned, pa.field("other", ADDRESS)) or "")


def test_it_is_worth_another_try() -> None:
    assert issubclass(SourceSchemaMoved, TransientError)


@contextmanager
def changed_before_the_first_query(
    bigquery: BigQueryConnection, change: Callable[[], None]
) -> Iterator[BigQueryConnection]:
    """The change happens when a run knows the columns, and has not yet asked for the time."""
    go = Event()
    with FaultProxy(str(bigquery.endpoint)) as proxy:
        proxy.on(Delay(go), matching=_asks_a_query)

        def watch() -> None:
            limit = time.monotonic() + 60
            while not any(seen.fault for seen in proxy.seen()):
                if time.monotonic() > limit:
                    return  # no query came: the test says so
                time.sleep(0.02)
            change()
            go.set()

        watching = Thread(target=watch, daemon=True)
        watching.start()
        yield bigquery.model_copy(update={"endpoint": proxy.url})
        watching.join()


def _asks_a_query(seen: Seen) -> bool:
    return seen.method == "POST" and seen.path.split("?")[0].endswith(("/jobs", "/queries"))


@pytest.mark.harper
@pytest.mark.bigquery
@pytest.mark.spark
@pytest.mark.promise("D4", "D8")
def test_a_change_while_a_run_is_planned_writes_nothing_and_the_next_run_follows_it(
    sync: Sync, tables: SmallTables
) -> None:
    table = Evolving.made(
        sync, tables, "CAST(n AS STRING) AS name, CAST(n AS STRING) AS speed", key=("number",)
    )
    before = sync.rows(table.contract)
    changes = {
        "speed was STRING and arrives as int64": lambda: table.remake(
            "* REPLACE (CAST(speed AS INT64) AS speed)"
        ),
        "name was removed": lambda: table.drop("name"),
    }
    for told, change in changes.items():
        with changed_before_the_first_query(sync.stores.bigquery, change) as bigquery:
            behind = replace(sync, stores=replace(sync.stores, bigquery=bigquery))
            with pytest.raises(SourceSchemaMoved) as caught:
                replace(table, sync=behind).run(NEXT)
        assert str(caught.value) == (
            f"the columns of {table.contract.id} changed in the source while the run was planned:"
            f" {told}. Nothing of it was written. Run it again; it will use the new columns:"
            f" bqh sync {table.contract.id}"
        )
        assert sync.rows(table.contract) == before

    # What changes once the instant is pinned is the next run's: rows of one version are of one T.
    report = table.run(NEXT, say=lambda line: table.add(load="INT64"))
    assert report.schema_version == 3  # the second was seen by the run that was sent back
    assert table.values("name", "speed", "speed_v2", "load")[20] == (NO, NO, 20, NO)
    assert table.run(OPEN).schema_version == 4
    table.assert_proved(NEXT, without={NEXT: ("load",)})
