"""What a plan calls the primary key in Harper."""

from typing import Any

import pytest

from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.schema.table_plan import plan_table
from bq_harper_assets_tests.schema.samples import contract, schema
from bq_harper_assets_tests.schema.test_selection import MMSI, NAME


@pytest.mark.promise("A8")
@pytest.mark.parametrize(
    ("columns", "changes", "primary_key", "id_type"),
    [
        ((NAME,), {}, "id", "String"),
        ((MMSI,), {"key": "mmsi"}, "id", "Long"),
        ((MMSI,), {"key": "mmsi", "values": {"int64": "string"}}, "id", "String"),
        ((MMSI, NAME), {"key": ["mmsi", "name"]}, "id", "String"),
        ((Column(name="v", kind=Kind.FLOAT64),), {"key": "v"}, "id", "String"),
        ((Column(name="id", kind=Kind.STRING),), {"key": "id"}, "id", "String"),
        ((Column(name="id", kind=Kind.INT64),), {"key": "id"}, "id", "Long"),
        ((Column(name="id", kind=Kind.STRING),), {}, "_id", "String"),
        ((Column(name="id", kind=Kind.INT64), MMSI), {"key": "mmsi"}, "_id", "Long"),
        ((Column(name="id", kind=Kind.INT64), MMSI), {"key": ["id", "mmsi"]}, "_id", "String"),
        ((Column(name="id", kind=Kind.NUMERIC),), {"key": "id"}, "_id", "String"),
        ((Column(name="id", kind=Kind.FLOAT64),), {"key": "id"}, "_id", "String"),
        ((Column(name="_id", kind=Kind.INT64),), {}, "id", "String"),
        ((Column(name="ID", kind=Kind.INT64),), {}, "id", "String"),
    ],
)
def test_the_primary_key_is_id_unless_the_source_uses_that_name_for_something_else(
    columns: tuple[Column, ...], changes: dict[str, Any], primary_key: str, id_type: str
) -> None:
    plan = plan_table(contract(**changes), schema(*columns))
    assert (plan.attributes[0].name, plan.attributes[0].type) == (primary_key, id_type)
    names = [attribute.name for attribute in plan.attributes]
    assert len(names) == len(set(names))
    assert {column.name for column in columns} <= set(names)
