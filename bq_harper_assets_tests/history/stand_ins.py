"""Makes worlds: real code on real servers, with a clock that only the history moves."""

import random
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.stores.bigquery import source
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.stores.harper import transport
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.lease.send_deadline import Deadline
from bq_harper_assets.stores.harper.writing import removal, row_writer
from bq_harper_assets.sync.lease.keeper import Keeper
from bq_harper_assets.sync.plan import delete_guard
from bq_harper_assets.sync.turn import turn
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.history.clock import Beats, Clock
from bq_harper_assets_tests.history.script import Setting
from bq_harper_assets_tests.history.source import Source
from bq_harper_assets_tests.history.watch import LAG, MOST_DELETES, Watch
from bq_harper_assets_tests.history.world import START, Servers, World

BEGAN = START + timedelta(seconds=750)  # two windows have closed and the third is open
ROWS_PER_REQUEST = 2


@contextmanager
def made_world(servers: Servers, folder: Path, setting: Setting) -> Iterator[World]:
    """With an empty source and a ledger in the folder; what was started in it is ended after."""
    clock = Clock(BEGAN)
    name = f"T{uuid.uuid4().hex[:12]}"
    url = empty_ledger(folder / f"{name}.db")
    with ExitStack() as stack:
        stack.enter_context(clock.in_databases())
        ledger = stack.enter_context(open_ledger(url, monotonic=clock.seconds))
        harper = stack.enter_context(HarperClient(servers.harper))
        made = Source.make(servers.tables, clock)
        contract = _contract(name, made.table, setting)
        watch = Watch(source=made, contract=contract, ledger=ledger, harper=harper, start=START)
        world = World(
            servers=servers,
            clock=clock,
            source=made,
            contract=contract,
            ledger=ledger,
            watch=watch,
            counts=watch.counts,
        )
        stack.enter_context(_stand_ins(world))
        stack.callback(world.close)
        yield world


def _contract(name: str, table: TableRef, setting: Setting) -> TableContract:
    sizes = ("initial_batch_size", "catchup_batch_size", "steady_batch_size")
    sync = {"start_timestamp": START.isoformat(), **dict.fromkeys(sizes, ROWS_PER_REQUEST)}
    return TableContract.model_validate(
        {
            "id": name.lower(),
            "dataset": table.dataset,
            "table": table.table,
            "timestamp_column": "ts",
            "target_table": name,
            "slices": setting.slices,
            "deletes": setting.deletes,
            "window": "5m",
            "safety_lag": f"{int(LAG.total_seconds())}s",
            "sync": sync,
            **({"key": ["n"]} if setting.keyed else {"columns": ["ts", "v", "c"]}),
        }
    )


@contextmanager
def _stand_ins(world: World) -> Iterator[None]:
    """Clocks, waits, the order in which BigQuery gives rows, and limits that few rows reach."""
    clock = world.clock

    class SteppedKeeper(Keeper):
        def __enter__(self) -> Keeper:
            self._ended: Any = Beats()
            entered = super().__enter__()
            staged = world.named(self._owner)
            staged.beats, staged.renewed_at = self._ended, clock.now
            return entered

        def __exit__(self, *exc: Any) -> None:
            world.named(self._owner).beats = None
            super().__exit__(*exc)

    def keeper(*args: Any, **named: Any) -> Keeper:
        return SteppedKeeper(*args, **named, wall=clock.seconds, monotonic=clock.seconds)

    def deadline(*args: Any) -> Deadline:
        return Deadline(*args, now=clock.seconds, monotonic=clock.seconds)

    def server_time(queries: Any) -> datetime:
        t = clock.now - timedelta(seconds=world.t_behind_s())
        clock.move(0.001)
        return t

    def source_at(plan: Any, table: Any, t: datetime, row_filter: str | None) -> Any:
        return made_source(plan, table, world.source.real_instant(t), row_filter)

    def open_session(*args: Any) -> Any:
        world.sessions += 1
        plan = opened(*args)
        parts = [f"{stream}|{world.sessions}|{part}" for stream in plan.streams for part in (0, 1)]
        return replace(plan, streams=tuple(parts))

    def read_stream(
        connection: Any, stream: str, schema: bytes, **named: Any
    ) -> Iterator[pa.RecordBatch]:
        whole, session, part = stream.rsplit("|", 2)
        for batch in read(connection, whole, schema, **named):
            order = list(range(batch.num_rows))
            random.Random(f"{world.seed} {session}").shuffle(order)
            yield batch.take(pa.array(order[int(part) :: 2], pa.int64()))

    def fingerprints(queries: Any, pinned: Any, *span: Any) -> Any:
        return world.source.fingerprints(pinned.at, *span, keyed=world.watch.is_keyed)

    made_source = source._source
    opened, read = source.open_session, source.read_stream
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turn, "Keeper", keeper)
        patch.setattr(row_writer, "Deadline", deadline)
        patch.setattr(removal, "Deadline", deadline)
        patch.setattr(source, "server_time", server_time)
        patch.setattr(source, "_source", source_at)
        # They have tests of their own, and cost the emulator more than all else.
        patch.setattr(source, "fingerprints", fingerprints)
        # BigQuery promises no order of rows, and cuts them into streams as it likes.
        patch.setattr(source, "open_session", open_session)
        patch.setattr(source, "read_stream", read_stream)
        patch.setattr(delete_guard, "MOST_UNGUARDED_ROWS", MOST_DELETES)
        # A connection's age is real time, which means nothing here.
        patch.setattr(transport, "STALE_AFTER_S", 1e9)
        patch.setattr(transport, "LONGEST_IDLE_S", 1e9)
        patch.setattr(TaskContext, "_taskContext", world.attempt)
        yield
