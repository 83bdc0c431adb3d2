"""Every kind has its row, and every name that BigQuery has for a type leads to one."""

import pytest
from google.cloud.bigquery import SchemaField
from google.cloud.bigquery.schema import FieldElementType

from bq_harper_assets.schema.logical import Kind
from bq_harper_assets.stores.bigquery.types import BIGQUERY_KINDS, kind_and_spelling


def test_every_kind_has_a_row() -> None:
    assert [*BIGQUERY_KINDS] == [*Kind]


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.UNKNOWN])
def test_a_kind_is_known_by_its_own_name_and_by_its_older_ones(kind: Kind) -> None:
    for name in (kind.value, kind.value.lower(), *BIGQUERY_KINDS[kind].aliases):
        assert kind_and_spelling(SchemaField("c", name)) == (kind, "")


def test_only_a_type_that_its_kind_does_not_name_in_full_keeps_bigquery_s_word() -> None:
    days = SchemaField("c", "RANGE", range_element_type=FieldElementType("DATE"))
    assert kind_and_spelling(days) == (Kind.RANGE, "RANGE<DATE>")
    assert kind_and_spelling(SchemaField("c", "VECTOR")) == (Kind.UNKNOWN, "VECTOR")
    assert kind_and_spelling(SchemaField("c", "UNKNOWN")) == (Kind.UNKNOWN, "UNKNOWN")
