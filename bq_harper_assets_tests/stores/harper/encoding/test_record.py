"""A record: its columns at the top, its id and what we add beside them."""

import pyarrow as pa
import pytest

from bq_harper_assets.schema.logical import Column
from bq_harper_assets.stores.harper.encoding.record import encode_batch
from bq_harper_assets.stores.harper.encoding.row_plan import RowPlan
from bq_harper_assets.sync.identity.row_id import identify
from bq_harper_assets_tests.stores.harper.encoding.test_column_values import (
    MOMENT,
    NOON,
    K,
    encoded_batch,
    stored_rows,
)
from bq_harper_assets_tests.stores.harper_columns import native_column


@pytest.mark.promise("J1", "J2")
def test_a_record_has_its_columns_at_the_top_with_id_and_metadata_beside_them() -> None:
    encoded = encoded_batch(Column(name="speed", kind=K.FLOAT64), pa.array([1.5, None]))
    first, second = stored_rows(encoded)
    assert list(first) == ["id", "speed", "at", "_syncedAt", "_batch", "_hash"]
    assert (first["speed"], second["speed"]) == (1.5, None)
    assert first["_syncedAt"] == "2026-11-16T12:00:00.000000Z"
    assert first["_batch"] == 7
    assert first["_hash"] == first["id"][10:] != second["_hash"]


@pytest.mark.promise("J1", "A8")
def test_a_key_is_both_the_id_and_a_column_unless_it_is_named_id() -> None:
    columns = tuple(
        native_column(Column(name=name, kind=kind))
        for name, kind in (("id", K.STRING), ("at", K.TIMESTAMP))
    )
    batch = pa.record_batch({"id": pa.array(["a", "b"]), "at": pa.array([NOON, None], MOMENT)})
    expected = {
        "a": {"id", "at", "_syncedAt", "_batch", "_hash"},
        "b": {"id", "_id", "at", "_syncedAt", "_batch", "_hash"},
    }
    for primary_key, keys in (("id", expected["a"]), ("_id", expected["b"])):
        plan = RowPlan(columns=columns, timestamp="at", key=("id",), primary_key=primary_key)
        numbers = pa.array([1, 2])
        encoded = encode_batch(
            batch, plan, identify(batch, plan), synced_at=NOON, batch_number=numbers
        )
        rows = stored_rows(encoded)
        assert [set(row) for row in rows] == [keys, keys]
        assert [row[primary_key] for row in rows] == [row["id"] for row in rows] == ["a", "b"]
        assert [row["_batch"] for row in rows] == [1, 2]
