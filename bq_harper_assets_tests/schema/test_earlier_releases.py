"""Columns of the first release mean what they meant: their values are in Harper as they were."""

import pytest

from bq_harper_assets.schema.earlier_releases import as_first_stored
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.harper.schema import HarperTypes
from bq_harper_assets_tests.schema.samples import contract


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("repeated", [False, True])
def test_what_the_first_release_left_out_is_what_harper_stores_by_itself(
    kind: Kind, repeated: bool
) -> None:
    stored = HarperTypes(contract()).spelling(Column(name="c", kind=kind, repeated=repeated), "c")
    assert as_first_stored(kind.value, repeated) == {"type": stored.type, "form": stored.form}
