"""What `bqh schema rollback` says before anybody decides."""

import pytest

from bq_harper_assets.cli.schema.decisions import rollback_notes
from bq_harper_assets.schema.evolution import rolled_back
from bq_harper_assets.schema.logical import Kind
from bq_harper_assets_tests.schema.versions import of, seen


@pytest.mark.promise("F2")
def test_a_rollback_names_the_fields_that_stay_in_a_column_and_the_columns_that_are_gone() -> None:
    leg, via, notes = of("leg", Kind.INT64), of("via", Kind.STRING), of("notes", Kind.STRING)
    first = seen(None, of("trip", Kind.STRUCT, leg), notes)
    newest = seen(first, of("trip", Kind.STRUCT, leg, via))
    assert rollback_notes(first, rolled_back(newest, first)) == [
        "notes stays as it is: BigQuery has no STRING of that name any more",
        "trip.via goes on being synced: a rollback goes by whole columns",
    ]
