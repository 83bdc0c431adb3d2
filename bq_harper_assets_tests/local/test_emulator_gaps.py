"""Each gap of the BigQuery emulator, once closed and once left open."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import grpc
import pyarrow as pa
import pytest
from google.api_core.client_options import ClientOptions
from google.api_core.exceptions import GoogleAPICallError, NotFound
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery
from google.cloud.bigquery_storage_v1 import BigQueryReadClient
from google.cloud.bigquery_storage_v1.services import big_query_read
from google.cloud.bigquery_storage_v1.services.big_query_read.transports import (
    BigQueryReadGrpcTransport,
)
from google.cloud.bigquery_storage_v1.types import DataFormat, ReadSession

from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets.local.emulator_gaps import GAPS, KEPT_COPIES
from bq_harper_assets.local.stack import LocalStack
from bq_harper_assets_tests.conftest import SESSION_MIB, environ_without_settings

pytestmark = pytest.mark.bigquery
DATASET = "gaps"


@dataclass(frozen=True)
class Emulator:
    """Both clients of one emulator, without the official clients' ten minutes of patience."""

    rest: bigquery.Client
    storage: BigQueryReadClient

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        job = self.rest.query(sql, retry=None, job_retry=None)
        return [tuple(row) for row in job.result(retry=None, job_retry=None, timeout=60)]

    def now(self) -> datetime:
        [(now,)] = self.run("SELECT CURRENT_TIMESTAMP()")
        time.sleep(0.005)  # what comes next is later
        return now

    def session(self, table: str, at: datetime | None = None) -> ReadSession:
        wanted = ReadSession(
            table=f"projects/{self.rest.project}/datasets/{DATASET}/tables/{table}",
            data_format=DataFormat.ARROW,
        )
        if at:
            wanted.table_modifiers.snapshot_time = at
        return self.storage.create_read_session(
            parent=f"projects/{self.rest.project}", read_session=wanted, retry=None
        )

    def messages(self, session: ReadSession, offset: int = 0) -> list[pa.RecordBatch]:
        schema = pa.ipc.read_schema(pa.py_buffer(session.arrow_schema.serialized_schema))
        return [
            pa.ipc.read_record_batch(
                pa.py_buffer(message.arrow_record_batch.serialized_record_batch), schema
            )
            for stream in session.streams
            for message in self.storage.read_rows(stream.name, offset, retry=None)
        ]

    def rows(self, session: ReadSession, offset: int = 0) -> list[Any]:
        return [n for batch in self.messages(session, offset) for n in batch["n"].to_pylist()]


def connect(addresses: StackAddresses) -> Iterator[Emulator]:
    rest = bigquery.Client(
        addresses.bigquery_project,
        AnonymousCredentials(),
        client_options=ClientOptions(api_endpoint=addresses.bigquery_url),
    )
    # The smallest limit on messages that a client may have: gRPC's own default, 4 MiB.
    with rest, grpc.insecure_channel(addresses.bigquery_storage) as channel:
        rest.create_dataset(DATASET, exists_ok=True)
        yield Emulator(
            rest, BigQueryReadClient(transport=BigQueryReadGrpcTransport(channel=channel))
        )


@pytest.fixture(scope="module")
def closed(bigquery_server: StackAddresses) -> Iterator[Emulator]:
    yield from connect(bigquery_server)


@pytest.fixture(scope="module")
def left_open(project_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    environ = environ_without_settings()
    environ["BQH_EMULATOR_GAPS_OPEN"] = ",".join(gap for gap in GAPS if gap != "spatial")
    folder = tmp_path_factory.mktemp("gaps-open")
    stack = LocalStack(
        project_root, folder, preferred={}, persistent=False, kill_after=1, environ=environ
    )
    try:
        yield from connect(stack.up(print, servers=["bigquery"]))
    finally:
        stack.down(print)


def a_pinned_storage_read_gives_the_rows_of_that_time(emulator: Emulator) -> None:
    emulator.run("CREATE OR REPLACE TABLE gaps.pinned (n INT64)")
    emulator.run("INSERT INTO gaps.pinned VALUES (1), (2)")
    before = emulator.now()
    emulator.run("DELETE FROM gaps.pinned WHERE n = 1")
    assert emulator.rows(emulator.session("pinned", at=before)) == [1, 2]
    assert emulator.rows(emulator.session("pinned", at=emulator.now())) == [2]
    assert emulator.rows(emulator.session("pinned")) == [2]


def a_stream_goes_on_at_its_offset(emulator: Emulator) -> None:
    emulator.run(
        "CREATE OR REPLACE TABLE gaps.resumed AS SELECT n FROM UNNEST(GENERATE_ARRAY(0, 99)) n"
    )
    session = emulator.session("resumed")
    whole = emulator.rows(session)
    assert emulator.rows(session, offset=40) == whole[40:]
    assert emulator.rows(session, offset=40) == whole[40:]
    assert emulator.rows(session, offset=100) == []
    assert emulator.rows(session) == whole


def wide_rows_come_in_messages_that_any_client_takes(emulator: Emulator) -> None:
    emulator.run(
        "CREATE OR REPLACE TABLE gaps.wide AS "
        "SELECT n, REPEAT('x', IF(n < 10, 1500000, 10)) AS text "
        "FROM UNNEST(GENERATE_ARRAY(0, 999)) n"
    )
    batches = emulator.messages(emulator.session("wide"))
    assert sum(batch.num_rows for batch in batches) == 1000
    assert len(batches) < 40  # narrow rows still travel together


def read_sessions_are_dropped_when_they_fill_the_memory(emulator: Emulator) -> None:
    emulator.run(
        "CREATE OR REPLACE TABLE gaps.heavy AS SELECT n, REPEAT('x', 1000000) AS text "
        f"FROM UNNEST(GENERATE_ARRAY(1, {SESSION_MIB // 2 - 8})) n"
    )
    first, second, third = (emulator.session("heavy") for _ in range(3))
    with pytest.raises(NotFound):
        emulator.storage.split_read_stream({"name": first.streams[0].name}, retry=None)
    for kept in (second, third):
        emulator.storage.split_read_stream({"name": kept.streams[0].name}, retry=None)


def a_pinned_query_knows_a_column_added_before_it(emulator: Emulator) -> None:
    emulator.run("CREATE OR REPLACE TABLE gaps.evolved (n INT64)")
    emulator.run("INSERT INTO gaps.evolved VALUES (1)")
    before = emulator.now()
    emulator.run("ALTER TABLE gaps.evolved ADD COLUMN added STRING")
    table = emulator.rest.get_table(f"{DATASET}.evolved")
    table.schema = [*table.schema, bigquery.SchemaField("added", "STRING")]
    emulator.rest.update_table(table, ["schema"])
    after = emulator.now()
    pinned = "SELECT {} FROM gaps.evolved FOR SYSTEM_TIME AS OF TIMESTAMP '{}'"
    assert emulator.run(pinned.format("n, added", after.isoformat())) == [(1, None)]
    assert emulator.run(pinned.format("*", before.isoformat())) == [(1,)]


def a_pinned_query_knows_a_replaced_table(emulator: Emulator) -> None:
    emulator.run("CREATE OR REPLACE TABLE gaps.replaced AS SELECT 1 AS n")
    before = emulator.now()
    emulator.run("CREATE OR REPLACE TABLE gaps.replaced AS SELECT 2 AS n")
    after = emulator.now()
    emulator.run("INSERT INTO gaps.replaced VALUES (3)")
    pinned = "SELECT n FROM gaps.replaced FOR SYSTEM_TIME AS OF TIMESTAMP '{}'"
    assert emulator.run(pinned.format(before.isoformat())) == [(1,)]
    assert emulator.run(pinned.format(after.isoformat())) == [(2,)]


def a_new_table_is_empty_before_its_first_row(emulator: Emulator) -> None:
    emulator.rest.delete_table(f"{DATASET}.fresh", not_found_ok=True)
    schema = [bigquery.SchemaField("n", "INT64")]
    emulator.rest.create_table(
        bigquery.Table(f"{emulator.rest.project}.{DATASET}.fresh", schema=schema)
    )
    before = emulator.now()
    assert emulator.rest.insert_rows_json(f"{DATASET}.fresh", [{"n": 1}]) == []
    pinned = f"SELECT n FROM gaps.fresh FOR SYSTEM_TIME AS OF TIMESTAMP '{before.isoformat()}'"
    assert emulator.run(pinned) == []


def every_statement_of_a_script_can_be_pinned(emulator: Emulator) -> None:
    emulator.run("CREATE OR REPLACE TABLE gaps.scripted (n INT64)")
    emulator.run("INSERT INTO gaps.scripted VALUES (1)")
    emulator.run("SELECT 1; INSERT INTO gaps.scripted VALUES (2);")
    after = emulator.now()
    pinned = "SELECT n FROM gaps.scripted FOR SYSTEM_TIME AS OF TIMESTAMP '{}' ORDER BY n"
    assert emulator.run(pinned.format(after.isoformat())) == [(1,), (2,)]


def old_copies_of_a_large_table_are_dropped(emulator: Emulator) -> None:
    emulator.run(
        "CREATE OR REPLACE TABLE gaps.large AS SELECT n FROM UNNEST(GENERATE_ARRAY(1, 1000000)) n"
    )
    times = []
    for _ in range(KEPT_COPIES.start + 1):
        emulator.run("INSERT INTO gaps.large VALUES (0)")
        times.append(emulator.now())
    pinned = "SELECT COUNTIF(n = 0) FROM gaps.large FOR SYSTEM_TIME AS OF TIMESTAMP '{}'"
    assert emulator.run(pinned.format(times[1].isoformat())) == [(2,)]
    with pytest.raises(GoogleAPICallError, match="before the table's first captured state"):
        emulator.run(pinned.format(times[0].isoformat()))


def streams_that_their_readers_left_do_not_block_others(emulator: Emulator) -> None:
    emulator.run(
        "CREATE OR REPLACE TABLE gaps.left AS SELECT n FROM UNNEST(GENERATE_ARRAY(1, 600000)) n"
    )
    [stream] = emulator.session("left").streams
    # The library's wrapper would not let go of the stream.
    read = big_query_read.BigQueryReadClient.read_rows
    # With the gap open six blocked threads are enough, but a reader that leaves between two
    # messages blocks none: on a busy machine these are many, so far more than six have to leave.
    for _ in range(60):
        messages = read(emulator.storage, read_stream=stream.name, retry=None, timeout=10)
        next(iter(messages))
        messages.cancel()
    whole = read(emulator.storage, read_stream=stream.name, retry=None, timeout=10)
    assert sum(message.row_count for message in whole) == 600_000


@dataclass(frozen=True)
class Check:
    """What a closed gap makes possible, and what is seen instead when the gap is open."""

    gap: str
    passes: Callable[[Emulator], None]
    seen_when_open: str


CHECKS = [
    Check(
        "snapshot_time",
        a_pinned_storage_read_gives_the_rows_of_that_time,
        r"assert \[2\] == \[1, 2\]",
    ),
    Check("offset", a_stream_goes_on_at_its_offset, r"assert \[0, 1, 2.* == \[40, 41"),
    Check(
        "message_size",
        wide_rows_come_in_messages_that_any_client_takes,
        "Sent message larger than max",
    ),
    Check(
        "session_memory",
        read_sessions_are_dropped_when_they_fill_the_memory,
        "DID NOT RAISE",
    ),
    Check("schema_snapshot", a_pinned_query_knows_a_column_added_before_it, '"added" not found'),
    Check("schema_snapshot", a_pinned_query_knows_a_replaced_table, "first captured state"),
    Check("schema_snapshot", a_new_table_is_empty_before_its_first_row, "first captured state"),
    Check(
        "schema_snapshot",
        every_statement_of_a_script_can_be_pinned,
        r"assert \[\(1,\)\] == \[\(1,\), \(2,\)\]",
    ),
    Check("snapshot_growth", old_copies_of_a_large_table_are_dropped, "DID NOT RAISE"),
    # Last: it leaves the emulator with the gap open unable to answer.
    Check("broken_stream", streams_that_their_readers_left_do_not_block_others, "Deadline"),
]
each_check = pytest.mark.parametrize(
    "check", [pytest.param(check, id=check.passes.__name__) for check in CHECKS]
)


@each_check
def test_a_gap_is_closed(closed: Emulator, check: Check) -> None:
    check.passes(closed)


@each_check
def test_a_gap_left_open_is_seen(left_open: Emulator, check: Check) -> None:
    open_gap = (AssertionError, GoogleAPICallError, pytest.fail.Exception)
    with pytest.raises(open_gap, match=check.seen_when_open):
        check.passes(left_open)


def test_every_gap_has_a_check() -> None:
    assert {check.gap for check in CHECKS} | {"spatial"} == set(GAPS)


def test_geography_functions_work(closed: Emulator) -> None:
    [(metres,)] = closed.run("SELECT ST_DISTANCE(ST_GEOGPOINT(4.4, 51.9), ST_GEOGPOINT(9.9, 53.5))")
    assert metres == pytest.approx(412_000, rel=0.02)


def run_launcher(folder: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bq_harper_assets.local.emulator_launcher"]
    command += ["--rest-port", "0", "--grpc-port", "0", "--project", "local"]
    command += ["--ready-file", str(folder / "ready"), "--uploads", str(folder / "uploads")]
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), **variables}
    return subprocess.run(
        command, env=environ, capture_output=True, text=True, check=False, timeout=60
    )


def test_without_the_packaged_extension_it_does_not_start_offline(tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # bound and not listening: every connection is refused
        proxy = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        offline = {"HTTP_PROXY": proxy, "http_proxy": proxy}
        done = run_launcher(tmp_path, {**offline, "BQH_EMULATOR_GAPS_OPEN": "spatial"})
    assert done.returncode == 1
    assert "DuckDB spatial extension is required" in done.stderr
    assert not (tmp_path / "ready").exists()


def test_an_unknown_gap_is_refused(tmp_path: Path) -> None:
    done = run_launcher(tmp_path, {"BQH_EMULATOR_GAPS_OPEN": "ofset"})
    assert done.returncode == 1
    assert "BQH_EMULATOR_GAPS_OPEN names ['ofset']; there are ['broken_stream'," in done.stderr


def test_another_version_of_the_emulator_is_refused(tmp_path: Path) -> None:
    package = tmp_path / "bqemulator-1.5.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Name: bqemulator\nVersion: 1.5.0\n", encoding="utf-8")
    done = run_launcher(tmp_path, {"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 1
    assert "bqemulator 1.5.0 is installed and 1.4.0 is needed" in done.stderr
    assert "Next: make setup" in done.stderr
