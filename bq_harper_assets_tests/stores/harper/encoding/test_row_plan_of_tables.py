"""Which column is the id, what ids of keyless rows are made of, and how source rows are named."""

from typing import Any

import pyarrow as pa
import pytest

from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.harper.encoding.row_plan import RowPlan
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets_tests.schema.samples import contract, schema
from bq_harper_assets_tests.stores.harper_columns import native_column

AT = Column(name="at", kind=Kind.TIMESTAMP)
INNER = (Column(name="a", kind=Kind.INT64), Column(name="b", kind=Kind.INT64))


def plan(*columns: Column, key: tuple[str, ...] = (), **more: Any) -> RowPlan:
    native = tuple(map(native_column, (AT, *columns)))
    return RowPlan(columns=native, timestamp="at", key=key, **{"primary_key": "_id", **more})


@pytest.mark.parametrize(
    ("kind", "repeated", "is_id"),
    [
        (Kind.INT64, False, True),
        (Kind.STRING, False, True),
        (Kind.FLOAT64, False, False),
        (Kind.STRING, True, False),
    ],
)
def test_a_key_of_one_column_is_the_id_if_its_kind_may_be(
    kind: Kind, repeated: bool, is_id: bool
) -> None:
    ours = plan(Column(name="k", kind=kind, repeated=repeated), key=("k",))
    assert (ours.id_column is not None) is is_id
    if is_id:
        assert ours.id_column == ours.columns[1]


def test_a_key_of_several_columns_or_none_is_hashed() -> None:
    column = Column(name="k", kind=Kind.STRING)
    assert plan(column, key=("k", "at")).id_column is None
    assert plan(column).id_column is None
    batch = pa.record_batch({"at": [None], "k": ["x"]})
    assert plan(column).ids_of_key(batch) is None
    found = plan(column, key=("k",)).ids_of_key(batch)
    assert found is not None
    assert found[0].to_pylist() == ["x"]


@pytest.mark.parametrize(
    ("kind", "primary_key", "stored"),
    [
        (Kind.STRING, "k", True),
        (Kind.INT64, "k", True),
        (Kind.STRING, "_id", False),
        (Kind.INT64, "_id", False),
    ],
)
def test_the_primary_key_may_be_the_key_column_itself(
    kind: Kind, primary_key: str, stored: bool
) -> None:
    ours = plan(Column(name="k", kind=kind), key=("k",), primary_key=primary_key)
    assert ours.key_is_stored_as_id is stored


def test_rows_of_the_source_get_harpers_names_and_order_and_only_known_fields() -> None:
    columns = (
        Column(name="trip", kind=Kind.STRUCT, fields=INNER[:1], source_name="Trip"),
        Column(name="trips", kind=Kind.STRUCT, fields=INNER[:1], repeated=True),
        Column(name="tags", kind=Kind.STRING, repeated=True),
    )
    both = {"a": 1, "b": 2}
    batch = pa.record_batch({"tags": [["x"]], "more": [1], "trips": [[both]], "Trip": [both], "at": pa.array([None], pa.timestamp("us", "UTC"))})  # fmt: skip # noqa: E501
    ours = plan(*columns)
    assert ours.names == ("at", "trip", "trips", "tags")
    assert ours.named(batch).to_pylist() == [
        {"at": None, "trip": {"a": 1}, "trips": [{"a": 1}], "tags": ["x"]}
    ]
    assert ours.named(batch).schema.names == list(ours.names)


def test_keyless_ids_are_made_of_their_own_columns_and_fields() -> None:
    whole = Column(name="trip", kind=Kind.STRUCT, fields=INNER)
    part = native_column(Column(name="trip", kind=Kind.STRUCT, fields=INNER[:1]))
    batch = pa.record_batch({"at": ["x"], "trip": [{"a": 1, "b": 2}]})
    assert plan(whole).what_ids_are_made_of(batch) is None
    everything = tuple(map(native_column, (whole, AT)))
    assert plan(whole, id_columns=everything).what_ids_are_made_of(batch) is None
    found = plan(whole, id_columns=(part,)).what_ids_are_made_of(batch)
    assert found is not None
    assert found.to_pylist() == [{"trip": {"a": 1}}]


def test_the_plan_of_a_table_has_its_key_columns_and_policy() -> None:
    number = Column(name="n", kind=Kind.INT64)
    planned = harper_plan(contract(key="n", deletes="flag"), schema(number))
    ours = RowPlan.of(planned)
    assert (ours.names, ours.timestamp, ours.key) == (("event_time", "n"), "event_time", ("n",))
    assert (ours.primary_key, ours.flags_deletes, ours.others) == (planned.primary_key, True, None)
    keyless = RowPlan.of(harper_plan(contract(), schema(number)))
    assert (keyless.key, keyless.flags_deletes) == ((), False)
    assert set(keyless.id_columns) == set(keyless.columns)
    assert not plan().flags_deletes


def test_a_primary_key_that_no_column_has_and_no_geography_need_nothing_else() -> None:
    assert plan(Column(name="k", kind=Kind.FLOAT64), key=("k",)).id_column is None
    with pytest.raises(ValueError, match=r"\['_batch', '_hash', '_syncedAt'\]"):
        plan(*(Column(name=name, kind=Kind.STRING) for name in ("_syncedAt", "_hash", "_batch")))
