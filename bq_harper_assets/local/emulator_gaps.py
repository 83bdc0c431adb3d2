"""Closes the gaps of bqemulator that would make a faithful sync fail.

Each gap is one function in GAPS, with the reason in its docstring. The functions change the inside
of one version of bqemulator, and the launcher refuses any other.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

SESSION_MIB_VARIABLE = "BQH_EMULATOR_SESSION_MIB"
SESSION_MIB = 1024
MESSAGE_BYTES = 2 * 1024**2  # gRPC clients take 4 MiB by default
KEPT_ROWS = 5_000_000  # the copies of one table for time travel have at most so many: about 400 MB
COPY_SIZES = """
    SELECT table_name, estimated_size FROM duckdb_tables()
    WHERE schema_name = '_bqemulator_snapshots'
"""
DROPS_PER_CHECKPOINT = 16
KEPT_COPIES = range(8, 1000)  # at least and at most so many copies are kept, whatever their rows


def _inside(module: str) -> Any:
    """Imports a module of bqemulator as Any, because its types do not allow changes."""
    return import_module(f"bqemulator.{module}")


def spatial() -> None:
    """bqemulator downloads DuckDB's spatial extension at its first start, or stops.

    The same file comes with a package; a link to it is made in the folder that DuckDB reads before
    it downloads.
    """
    import duckdb
    import duckdb_extension_spatial

    name = "spatial.duckdb_extension"
    release = f"v{duckdb.__version__}"
    row = duckdb.sql("PRAGMA platform").fetchone()
    assert row is not None
    file = Path(duckdb_extension_spatial.__file__).parent / "extensions" / release / name
    place = Path.home() / ".duckdb" / "extensions" / release / str(row[0]) / name
    place.parent.mkdir(parents=True, exist_ok=True)
    # The file is large, so it is linked, at each start: the package may have a new path.
    place.unlink(missing_ok=True)
    place.symlink_to(file)


def snapshot_time() -> None:
    """CreateReadSession ignores snapshot_time: a pinned read would give the table as it is now."""
    from google.cloud.bigquery_storage_v1 import types

    read_servicer = _inside("grpc_api.read_servicer")
    handler = read_servicer.BigQueryReadHandler
    create, resolve = handler._handle_create_read_session, read_servicer._resolve_read_target
    current = threading.local()

    def create_at(self: Any, request: bytes, context: Any) -> Any:
        asked = types.CreateReadSessionRequest.deserialize(request).read_session.table_modifiers
        at = asked.snapshot_time if asked else None
        current.at = at if at and at.timestamp() > 0 else None
        current.snapshots = self._ctx.snapshots
        return create(self, request, context)

    def resolve_at(read_session: Any, context: Any) -> Any:
        target = resolve(read_session, context)
        if target is None or current.at is None:
            return target
        project, dataset, table, _, fields = target
        kept = current.snapshots.resolve_time_travel(project, dataset, table, current.at)
        if kept is None:
            return target
        return project, dataset, table, f'"{kept.duckdb_schema}"."{kept.duckdb_table}"', fields

    handler._handle_create_read_session = create_at
    read_servicer._resolve_read_target = resolve_at


def offset() -> None:
    """ReadRows ignores offset: a stream taken up again after a fault gives its rows twice.

    The rest of the stream is given a name of its own, as a split stream is.
    """
    from bqemulator.streaming.read_session import ReadStream, get_session
    from google.cloud.bigquery_storage_v1 import types

    handler = _inside("grpc_api.read_servicer").BigQueryReadHandler
    read = handler._handle_read_rows

    def read_from(self: Any, request: bytes, context: Any) -> Iterator[bytes]:
        asked = types.ReadRowsRequest.deserialize(request)
        session = get_session("/".join(asked.read_stream.split("/")[:-2]))
        streams = {stream.name: stream for stream in session.streams} if session else {}
        whole = streams.get(asked.read_stream)
        if asked.offset and session and whole:
            name = f"{whole.name}-from-{asked.offset}"
            if name not in streams:
                first = min(whole.start_row + asked.offset, whole.end_row)
                session.streams.append(ReadStream(name, first, whole.end_row))
            request = types.ReadRowsRequest.serialize(types.ReadRowsRequest(read_stream=name))
        yield from read(self, request, context)

    handler._handle_read_rows = read_from


def message_size() -> None:
    """ReadRows puts 65,536 rows into one message and fails if that is more than 11 MiB."""
    import pyarrow as pa

    read_servicer, server = _inside("grpc_api.read_servicer"), _inside("server")
    aio: Any = import_module("grpc.aio")
    stream_data, build = read_servicer.get_stream_data, server.build_grpc_server
    open_server = aio.server

    def pieces(batch: Any) -> Iterator[Any]:
        if batch.nbytes <= MESSAGE_BYTES or batch.num_rows == 1:
            yield batch
            return
        half = batch.num_rows // 2
        yield from pieces(batch.slice(0, half))
        yield from pieces(batch.slice(half))

    def small_batches(session: str, stream: str) -> Any:
        table = stream_data(session, stream)
        if table is None:
            return None
        return pa.Table.from_batches(
            [piece for batch in table.to_batches() for piece in pieces(batch)], schema=table.schema
        )

    def any_size(*, interceptors: Any, options: list[tuple[str, int]]) -> Any:
        # One row can be larger than any limit on sent messages; the limit on received ones stays.
        kept = [option for option in options if option[0] != "grpc.max_send_message_length"]
        return open_server(
            interceptors=interceptors, options=[*kept, ("grpc.max_send_message_length", -1)]
        )

    def build_any_size(context: Any) -> Any:
        aio.server = any_size
        try:
            return build(context)
        finally:
            aio.server = open_server

    read_servicer.get_stream_data = small_batches
    server.build_grpc_server = build_any_size


class RecentTables(OrderedDict[str, Any]):
    """Recent tables are the newest entries up to a number of bytes, and always the last one."""

    def __init__(self, room: int, bytes_of: Callable[[Any], int]) -> None:
        super().__init__()
        self._room = room
        self._bytes_of = bytes_of
        self._lock = threading.RLock()

    def __setitem__(self, key: str, value: Any) -> None:
        with self._lock:
            super().__setitem__(key, value)
            self.move_to_end(key)
            while len(self) > 1 and sum(map(self._bytes_of, self.values())) > self._room:
                self.popitem(last=False)

    def get(self, key: str, default: Any = None) -> Any:
        with self._lock:
            if key in self:
                self.move_to_end(key)
            return super().get(key, default)


def session_memory() -> None:
    """Read sessions and query results would stay in memory for ever: the least recently used go.

    A session is not dropped when it has been read: a task that is tried again reads it again.
    """
    room = int(os.environ.get(SESSION_MIB_VARIABLE, SESSION_MIB)) * 1024**2
    _inside("streaming.read_session")._SESSIONS = RecentTables(
        room, lambda session: int(session.table.nbytes)
    )
    results = RecentTables(room, lambda table: int(table.nbytes))
    for module in ("jobs.executor", "api.routes.jobs"):
        _inside(module).JOB_RESULTS = results


def schema_snapshot() -> None:
    """Only DML takes the copy of a table that time travel reads.

    After ALTER or CREATE OR REPLACE a pinned query sees the old columns and rows, and the time
    before a table's first row is out of range. Here a change of schema, by statement or by REST,
    takes a copy too, and so does every statement of a script and not only its first.
    """
    import sqlglot
    from sqlglot import exp

    executor, server = _inside("jobs.executor"), _inside("server")
    capture, create_app = executor._capture_dml_snapshots, server.create_app

    def changed_tables(project: str, sql: str) -> list[tuple[str, str, str]]:
        changed: dict[tuple[str, str, str], None] = {}
        try:
            statements = sqlglot.parse(sql, read="bigquery")
        except sqlglot.errors.SqlglotError:
            return []  # it is a script with control flow
        for number, statement in enumerate(statements):
            is_table = getattr(statement, "args", {}).get("kind") == "TABLE"
            if isinstance(statement, exp.Alter | exp.Create) and is_table:
                table = statement.find(exp.Table)
                if table and table.db:
                    changed[table.catalog or project, table.db, table.name] = None
            elif number and executor._is_dml(statement):
                changed.update(dict.fromkeys(executor._dml_target_tables(statement, project)))
        return list(changed)

    async def record(ctx: Any, tables: list[tuple[str, str, str]]) -> None:
        async with ctx.engine.write_lock():
            for name in tables:
                table = ctx.catalog.get_table(*name)
                if table is not None and table.table_type == "TABLE":
                    ctx.snapshots.record_change(*name)

    async def capture_all(project: str, sql: str, ctx: Any) -> None:
        await capture(project, sql, ctx)
        await record(ctx, changed_tables(project, sql))

    def create_recording_app(ctx: Any) -> Any:
        app = create_app(ctx)

        async def record_schema(request: Any, call_next: Any) -> Any:
            parts = request.url.path.strip("/").split("/")
            if request.method not in ("POST", "PUT", "PATCH") or "tables" not in parts:
                return await call_next(request)
            place = parts.index("tables")
            if place < 4 or len(parts) > place + 2:
                return await call_next(request)  # the request is about rows, not about the table
            project, dataset = parts[place - 3], parts[place - 1]
            before = {
                table.table_id: table.schema_ for table in ctx.catalog.list_tables(project, dataset)
            }
            response = await call_next(request)
            changed = [
                (project, dataset, table.table_id)
                for table in ctx.catalog.list_tables(project, dataset)
                if before.get(table.table_id) != table.schema_
            ]
            await record(ctx, changed)
            return response

        app.middleware("http")(record_schema)
        return app

    executor._capture_dml_snapshots = capture_all
    server.create_app = create_recording_app


def snapshot_growth() -> None:
    """Each write copies the whole table for time travel and keeps the copy for seven days.

    The oldest copies of a table are dropped beyond a number of rows; a read before the oldest one
    left fails and says so.
    """
    import duckdb

    manager = _inside("versioning.snapshots").SnapshotManager
    take = manager.capture
    drops = count(1)

    def take_and_drop(self: Any, *name: str, kind: str = "AUTO") -> Any:
        taken = take(self, *name, kind=kind)
        copies = [s for s in self._catalog.list_snapshots_for_table(*name) if s.kind == "AUTO"]
        copies.sort(key=lambda copy: copy.snapshot_time, reverse=True)
        sizes = dict(self._engine.execute(COPY_SIZES).fetchall())
        rows, checkpoint_due = 0, False
        for number, copy in enumerate(copies):
            rows += sizes.get(copy.duckdb_table, 0)
            if number >= KEPT_COPIES.start and (rows > KEPT_ROWS or number >= KEPT_COPIES.stop):
                self.drop_snapshot(copy)
                checkpoint_due |= next(drops) % DROPS_PER_CHECKPOINT == 0
        if checkpoint_due:
            # DuckDB uses the room of dropped tables again after a checkpoint, which it makes by the
            # size of its log, and copies do not go through the log. Within a transaction it cannot.
            with suppress(duckdb.Error):
                self._engine.execute("CHECKPOINT")
        return taken

    manager.capture = take_and_drop


def broken_stream() -> None:
    """A ReadRows whose client goes away blocks a thread for ever; after six no call is answered.

    As an async generator it ends with its client.
    """
    handler = _inside("grpc_api.read_servicer").BigQueryReadHandler
    read = handler._handle_read_rows

    async def read_until_gone(self: Any, request: bytes, context: Any) -> Any:
        for message in read(self, request, context):
            yield message

    handler._handle_read_rows = read_until_gone


GAPS: dict[str, Callable[[], None]] = {
    "spatial": spatial,
    "snapshot_time": snapshot_time,
    "offset": offset,
    "message_size": message_size,
    "broken_stream": broken_stream,
    "session_memory": session_memory,
    "schema_snapshot": schema_snapshot,
    "snapshot_growth": snapshot_growth,
}
