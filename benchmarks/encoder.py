"""Rows per CPU second from BigQuery's Arrow to Harper's HTTP body, with nothing read or sent."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.harper.encoding.record import encode_batch
from bq_harper_assets.stores.harper.encoding.request_body import Body, bodies
from bq_harper_assets.stores.harper.encoding.row_plan import RowPlan
from bq_harper_assets.stores.harper.types import HARPER_KINDS, HarperColumn
from bq_harper_assets.sync.identity.row_hash import row_hashes
from bq_harper_assets.sync.identity.row_id import identify

BATCH_ROWS = 10_000
BATCHES = 20
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)

Schema = tuple[Column, ...]
Batches = list[pa.RecordBatch]


def positions(rows: int, seed: int) -> tuple[Schema, pa.RecordBatch]:
    """Sixteen columns like those of a vessel's position reports."""
    chance = np.random.default_rng(seed)
    start = int(NOON.timestamp()) * 1_000_000
    micros = np.sort(start + chance.integers(0, 3_600_000_000, rows))

    def words(*choices: str) -> pa.Array:
        return pa.array(np.array(choices)[chance.integers(0, len(choices), rows)])

    def rounded(most: float, digits: int) -> pa.Array:
        return pa.array(np.round(chance.uniform(-most, most, rows), digits))

    moment = pa.timestamp("us", "UTC")
    columns: dict[str, tuple[Kind, pa.Array]] = {
        "event_time": (Kind.TIMESTAMP, pa.array(micros).cast(moment)),
        "mmsi": (
            Kind.STRING,
            pa.array(chance.integers(200_000_000, 700_000_000, rows)).cast(pa.string()),
        ),
        "imo": (Kind.INT64, pa.array(chance.integers(9_000_000, 9_900_000, rows))),
        "vessel_name": (Kind.STRING, words("PACIFIC VOYAGER", "NORDIC STAR", "AMBER DAWN")),
        "callsign": (Kind.STRING, words("WXYZ1", "9V2345", "LAAB7")),
        "vessel_type": (Kind.STRING, words("container", "bulk carrier", "tanker", "fishing")),
        "flag": (Kind.STRING, words("PA", "LR", "MH", "SG")),
        "latitude": (Kind.FLOAT64, rounded(60, 6)),
        "longitude": (Kind.FLOAT64, rounded(180, 6)),
        "speed_knots": (Kind.FLOAT64, rounded(25, 1)),
        "course": (Kind.FLOAT64, rounded(360, 1)),
        "heading": (Kind.INT64, pa.array(chance.integers(0, 360, rows))),
        "nav_status": (Kind.STRING, words("Under way using engine", "At anchor", "Moored")),
        "destination": (Kind.STRING, words("ROTTERDAM", "SINGAPORE", "SANTOS")),
        "eta": (Kind.TIMESTAMP, pa.array(micros // 10**9 * 10**9).cast(moment)),
        "is_stale": (
            Kind.BOOL,
            pa.array(chance.random(rows) < 0.1, mask=chance.random(rows) < 0.1),
        ),
    }
    schema = tuple(Column(name=name, kind=kind) for name, (kind, _) in columns.items())
    return schema, pa.record_batch({name: array for name, (_, array) in columns.items()})


def with_costly_kinds(schema: Schema, batch: pa.RecordBatch) -> tuple[Schema, pa.RecordBatch]:
    """The same rows with a decimal, bytes, JSON and an array in place of four texts."""
    rows = batch.num_rows
    numbers = pa.array(np.arange(rows))
    pairs = pa.array(np.arange(0, 2 * rows + 1, 2, dtype=np.int32))
    costly = {
        Column(name="vessel_name", kind=Kind.NUMERIC): numbers.cast(pa.decimal128(38, 9)),
        Column(name="callsign", kind=Kind.BYTES): numbers.cast(pa.string()).cast(pa.binary()),
        Column(name="vessel_type", kind=Kind.JSON): pa.array(
            [f'{{"seq":{row},"tags":["a","b"]}}' for row in range(rows)]
        ),
        Column(name="flag", kind=Kind.INT64, repeated=True): pa.ListArray.from_arrays(
            pairs, pa.array(np.arange(2 * rows))
        ),
    }
    columns = {column.name: column for column in schema} | {c.name: c for c in costly}
    arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
    arrays |= {column.name: array for column, array in costly.items()}
    return tuple(columns.values()), pa.record_batch(arrays)


def measure(title: str, step: Callable[[pa.RecordBatch], object], batches: Batches) -> None:
    """Print the best of three passes, by CPU time of this process."""
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        for batch in batches:
            step(batch)
        best = min(best, time.process_time() - began)
    rows = sum(batch.num_rows for batch in batches)
    print(f"  {title:<26} {rows / best:>12,.0f} rows/s  {best / rows * 1e9:>7,.0f} ns/row")


def stored_columns(schema: Schema) -> tuple[HarperColumn, ...]:
    """The columns as Harper stores them."""
    return tuple(
        HarperColumn(name=column.name, kind=column.kind, form=HARPER_KINDS[column.kind].form)
        for column in schema
    )


def run(title: str, schema: Schema, batches: Batches, key: tuple[str, ...] = ()) -> None:
    """The steps one after the other, then all together."""
    plan = RowPlan(columns=stored_columns(schema), timestamp="event_time", key=key)

    def encode(batch: pa.RecordBatch) -> pa.RecordBatch:
        identity = identify(batch, plan)
        return encode_batch(batch, plan, identity, synced_at=NOON, batch_number=1).accepted

    def cut(records: pa.RecordBatch) -> list[Body]:
        return list(bodies(records, most_rows=10_000, most_bytes=262_144))

    print(f"{title}: {len(schema)} columns, batches of {batches[0].num_rows:,} rows, one core")
    measure("hash", row_hashes, batches)
    measure("hash, id", lambda batch: identify(batch, plan), batches)
    measure("hash, id, values", encode, batches)
    measure("bodies alone", cut, [encode(batch) for batch in batches])
    measure("hash, id, values, bodies", lambda batch: cut(encode(batch)), batches)


def main() -> None:
    """Print the figures."""
    made = [positions(BATCH_ROWS, seed) for seed in range(BATCHES)]
    schema, batches = made[0][0], [batch for _, batch in made]
    run("no key", schema, batches)
    run("key of two columns", schema, batches, ("mmsi", "event_time"))
    costly = [with_costly_kinds(schema, batch) for batch in batches]
    run("decimal, bytes, JSON, array", costly[0][0], [batch for _, batch in costly])
    run("no key", schema, [batch.slice(0, 500) for batch in batches])


if __name__ == "__main__":
    main()
