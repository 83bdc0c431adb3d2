"""Whether a table that is there can hold the rows, attribute by attribute."""

from dataclasses import replace

from bq_harper_assets.stores.harper.answers import Attribute
from bq_harper_assets.stores.harper.fitting import Holding, attribute_fits
from bq_harper_assets_tests.stores.harper.test_ensure_table import PLAN, WHOLE


def test_each_attribute_fits_or_comes_with_the_first_row_or_cannot_be_held() -> None:
    found = replace(
        WHOLE,
        attributes=(
            Attribute(name="id", type="ID"),
            Attribute(name="event_time", type="String", indexed=True),
            Attribute(name="a_id", type="Float"),
            Attribute(name="_batch", type="Int"),
        ),
    )
    fits = {each.name: each for each in attribute_fits(found, PLAN)}
    held = {name: each.holding for name, each in fits.items()}
    assert held == {
        "id": Holding.FITS,
        "event_time": Holding.FITS,
        "a_id": Holding.FITS,
        "b_id": Holding.ADDED,
        "_syncedAt": Holding.ADDED,
        "_batch": Holding.CANNOT,
        "_hash": Holding.ADDED,
    }
    assert (fits["event_time"].indexed, fits["a_id"].indexed) == (True, False)
    assert fits["_batch"].why == "_batch is Int there, and the rows hold Long"
