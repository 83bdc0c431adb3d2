"""Which columns a cell of an older version shares with the source, and what its hashes cover."""

from dataclasses import replace
from pathlib import Path

import pytest

from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.ledger.questions.status import CellCommit
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.schema.version import TableVersion
from bq_harper_assets.sync.plan.shared_columns import SharedColumns, outermost
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.ledger.sample import FACTS
from bq_harper_assets_tests.schema.versions import of, seen
from bq_harper_assets_tests.stores.small_tables import utc

SPEED, NAME = of("speed", Kind.STRING), of("name", Kind.STRING)
ADDRESS = of("address", Kind.STRUCT, of("zip", Kind.STRING), of("city", Kind.STRING))
ALWAYS = frozenset({"event_time", "number"})
NOON = utc(2026, 1, 5, 12)
COMMIT = CellCommit(
    batch=1,
    t=NOON,
    schema_version=1,
    rows=5,
    digest="digest",
    fingerprint="fp",
    committed_at=NOON,
    upto=NOON,
    is_closed=True,
)


def shared(*schemas: tuple[Column, ...]) -> SharedColumns:
    """Of a source that had these columns one after the other, each a version from 1 on."""
    versions: dict[int, TableVersion] = {}
    for number, columns in enumerate(schemas, 1):
        versions[number] = seen(versions.get(number - 1), *columns)
    return SharedColumns(versions[len(schemas)], versions)


def test_a_cell_is_compared_by_the_columns_that_it_and_the_source_have() -> None:
    columns = shared((SPEED,), (SPEED, NAME), (NAME,))
    assert columns.all == ALWAYS | {"name"}
    assert [columns.basis(n) for n in (1, 2, 3)] == [ALWAYS, columns.all, columns.all]
    assert [columns.has_stored_hashes(n) for n in (1, 2, 3)] == [False, False, True]
    assert shared((SPEED,), (SPEED, NAME)).has_stored_hashes(1)
    assert columns.left_out(ALWAYS) == ("name",)
    assert columns.left_out(columns.all) == ()


@pytest.mark.parametrize(
    ("version", "rebased_to", "is_told"),
    [
        (1, None, False),  # it covers speed, which is gone
        (1, 3, True),
        (1, 2, False),
        (2, None, False),
        (2, 3, True),
        (3, None, True),
    ],
)
def test_a_fingerprint_is_told_if_it_covers_exactly_the_shared_columns(
    version: int, rebased_to: int | None, is_told: bool
) -> None:
    commit = replace(COMMIT, schema_version=version, rebased_to=rebased_to)
    assert shared((SPEED,), (SPEED, NAME), (NAME,)).is_told(commit) is is_told


def test_rows_written_while_a_column_was_gone_may_hold_its_old_values() -> None:
    columns = shared((SPEED,), (), (SPEED,), (SPEED, NAME))
    assert [columns.may_be_stale(n) for n in (1, 2, 3, 4)] == [False, True, False, False]
    assert columns.may_be_stale(None)
    # A column that came only later has left no old values.
    later = shared((SPEED,), (SPEED, NAME))
    assert [later.may_be_stale(version) for version in (1, 2, None)] == [False] * 3


def test_a_column_stands_for_the_fields_inside_it() -> None:
    columns = shared((), (ADDRESS, NAME))
    assert columns.left_out(ALWAYS) == ("address", "name")
    assert columns.left_out(ALWAYS | {"address", "address.zip", "name"}) == ("address.city",)
    paths = [f"c{n}" for n in (7, 3, 5, 1, 6, 2, 4)]
    assert outermost([*paths, "c3.x.y", "c3.x", "c30.x"]) == (
        *("c1", "c2", "c3", "c30.x", "c4", "c5", "c6", "c7"),
    )


def test_versions_are_those_that_the_ledger_has_of_the_table(tmp_path: Path) -> None:
    expected = shared((SPEED,), (NAME,))
    with open_ledger(empty_ledger(tmp_path / "ledger.db")) as ledger:
        table = ledger.register_route(FACTS)
        for number, version in expected.versions.items():
            ledger.record_schema(table, version.body(), number - 1)
        assert SharedColumns.of(ledger, table, expected.now) == expected
