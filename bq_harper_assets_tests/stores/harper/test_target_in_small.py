"""What the engine asks of Harper as a target: keys, times, rows and parts of rows, by id."""

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from bq_harper_assets.instants import micros_at
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.schema.table_plan import TablePlan
from bq_harper_assets.stores.harper.client import IDS_PER_REQUEST
from bq_harper_assets.stores.harper.reading.deep_hash import RecordHashes
from bq_harper_assets.stores.harper.reading.target_rows import StoredHashes
from bq_harper_assets.stores.harper.target import HarperTarget, harper_target
from bq_harper_assets.sync.errors import OutOfStep
from bq_harper_assets.sync.ledger_facts import table_facts
from bq_harper_assets.sync.protocols import TargetRange
from bq_harper_assets_tests.history.local_frames import LocalSpark
from bq_harper_assets_tests.stores.memory_harper import ONCE, MemoryHarper
from bq_harper_assets_tests.sync.memory_source import DAY, HOUR, MemorySource, small_contract

SPARK: Any = LocalSpark()


def of(memory: MemoryHarper, **declared: Any) -> tuple[HarperTarget, TablePlan]:
    contract = small_contract(**declared)
    plan = MemorySource(contract).planned(contract)
    return HarperTarget(contract, memory.client()), plan


def row(n: int, minute: int = 0, **more: Any) -> dict[str, Any]:
    return {"id": n, "n": n, "ts": f"2026-01-05T00:{minute:02}:00.000000Z", **more}


def test_the_key_of_a_row_is_its_id_where_that_is_the_key(memory: MemoryHarper) -> None:
    target, plan = of(memory)
    assert target.keys_of(plan, [3, 1]) == [[3], [1]]
    assert memory.asked == []


def test_keys_of_several_columns_are_read_for_more_rows_than_one_request_names(
    memory: MemoryHarper,
) -> None:
    target, plan = of(memory, key=["n", "name"])
    count = IDS_PER_REQUEST + 2
    held = [{"id": f"r{n}", "n": n, "name": "x"} for n in range(count)]
    held[5]["name"] = None
    memory.make("Ships", *held, key=plan.primary_key)
    ids = ["no such row", *(f"r{n}" for n in reversed(range(count)))]
    keys = target.keys_of(plan, ids)
    assert keys == [None, *([n, "x"] if n != 5 else None for n in reversed(range(count)))]
    assert [len(asked["ids"]) for asked in memory.asked] == [IDS_PER_REQUEST, 3]


def test_rows_before_an_instant_are_told_from_those_at_it(memory: MemoryHarper) -> None:
    target, plan = of(memory)
    memory.make("Ships", row(1, 4), row(2, 5), row(3, 6), row(4, 4))
    boundary = DAY + timedelta(minutes=5)
    assert set(target.older_than(plan, [1, 2, 3, 9], boundary)) == {1}


def test_rows_are_read_whole_by_id(memory: MemoryHarper) -> None:
    target, plan = of(memory)
    memory.make("Ships", row(1, more="x"), row(2))
    assert target.stored(target.layout(plan), [2, 1, 9]) == {1: row(1, more="x"), 2: row(2)}


def test_the_times_of_rows_are_looked_up_in_a_task(memory: MemoryHarper) -> None:
    target, plan = of(memory)
    count = IDS_PER_REQUEST + 1
    memory.make("Ships", *(row(n, n % 60) for n in range(count)), row(5_000) | {"ts": "soon"})
    tasks = target.of_tasks(SPARK)
    ids = pa.array([*range(count), 5_000, 6_000])
    with tasks.row_times(target.layout(plan)) as row_times:
        found = dict(row_times(ids))
    start = micros_at(DAY)
    wanted = {n: start + n % 60 * 60_000_000 for n in range(count)}
    assert found == wanted | {5_000: None}
    assert [len(asked["ids"]) for asked in memory.asked] == [IDS_PER_REQUEST, 3]


def test_a_range_is_cut_as_its_rows_need(memory: MemoryHarper) -> None:
    target, plan = of(memory)
    found = target.ranges(plan, 3, micros_at(DAY), micros_at(DAY + HOUR), 50_000)
    low, middle, high = (f"2026-01-05T0{time}:00.000000Z" for time in ("0:00", "0:30", "1:00"))
    assert found == [TargetRange(3, low, middle), TargetRange(3, middle, high)]


@pytest.mark.parametrize(("declared", "threads", "tasks"), [(5, 3, 5), (None, 3, 3), (None, 0, 1)])
def test_as_many_tasks_write_at_once_as_harper_has_threads_unless_declared(
    memory: MemoryHarper, declared: int | None, threads: int, tasks: int
) -> None:
    memory.threads = threads
    connection = memory.connection.model_copy(update={"requests_in_flight": declared})
    with harper_target(small_contract(), connection, ONCE) as target:
        assert target.tasks == tasks


def test_a_table_holds_a_row_or_none_or_is_not_there(memory: MemoryHarper) -> None:
    target, _ = of(memory)
    assert not target.holds_a_row()
    memory.make("Ships")
    assert not target.holds_a_row()
    memory.make("Ships", row(1))
    assert target.holds_a_row()


def test_what_the_version_and_the_table_declare_is_known(memory: MemoryHarper) -> None:
    target, plan = of(memory)
    assert target.known_paths(plan) == plan.version.known_paths
    memory.make("Ships").attributes.append({"attribute": "owners_own"})
    assert target.known_paths(plan) == plan.version.known_paths | {"id", "owners_own"}
    assert target.layout(plan).others is None
    assert target.layout(plan, frozenset("a")).others == {"a"}


def test_rows_that_others_put_there_are_in_step_only_where_they_are_adopted(
    memory: MemoryHarper, ledger: Ledger
) -> None:
    memory.make("Ships", row(1))
    table = ledger.register_route(table_facts(small_contract(), "p"))
    with pytest.raises(OutOfStep):
        of(memory)[0].require_in_step(ledger, table)
    of(memory, manage="adopt")[0].require_in_step(ledger, table)


def test_a_reader_compares_stored_hashes_or_values(memory: MemoryHarper) -> None:
    target, plan = of(memory)
    memory.make("Ships", row(1, more="x"))
    layout = target.layout(plan, plan.version.known_paths)
    tasks = target.of_tasks(SPARK)
    everything = [TargetRange(0, "2026", "2027")]
    with tasks.reader(layout, 2, deep=False, as_written=False) as reader:
        assert isinstance(reader.hashed, StoredHashes)
        list(reader.rows(everything))
        assert reader.extras == set()
    with tasks.reader(layout, 2, deep=True, as_written=True) as reader:
        assert reader.hashed == RecordHashes(True)
        list(reader.rows(everything))
        assert reader.extras == {"more"}
    with tasks.reader(layout, 2, deep=True, as_written=False) as reader:
        assert reader.hashed == RecordHashes(False)


def test_tasks_are_sent_no_secret_and_still_log_in(memory: MemoryHarper) -> None:
    target, _ = of(memory)
    tasks = target.of_tasks(SPARK)
    assert "a word" not in repr(tasks)
    assert tasks.login.without_secrets.password.get_secret_value() == ""
    assert tasks.login.connection() == memory.connection
    assert tasks.table == "Ships"


def test_a_mirror_names_its_own_ledger_and_sends_renewals_without_retries(
    memory: MemoryHarper, ledger: Ledger
) -> None:
    contract = small_contract()
    table = ledger.register_route(table_facts(contract, "p"))
    with harper_target(contract, memory.connection, ONCE) as target:
        mirror = target.mirror(ledger, table, "me")
        mirror.create()
        leases = ledger.acquire(table, [1], "me", HOUR)
        mirror.show(leases, 5.0, at_once=True)
        assert target.transaction() is None
    [copy] = memory.rows("SyncLease")
    assert (copy["id"], copy["ledger"], copy["owner"]) == (
        "Ships|s01", str(ledger.identity()), "me",
    )  # fmt: skip
