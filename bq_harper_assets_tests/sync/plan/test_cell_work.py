"""What is known of rows that a cell of the target has and its source has not."""

from typing import cast

from bq_harper_assets.stores.bigquery.source import Pinned
from bq_harper_assets.sync.plan.cell_work import LaterRow, Vanished

ANY = cast(Pinned, None)  # whose result it is in makes no difference here


def test_a_row_that_is_somewhere_is_alive_by_the_time_that_was_seen_last() -> None:
    later = {"b": LaterRow(20, ANY), "c": LaterRow(30, ANY)}
    found = Vanished(["a"], {"b": 2, "d": 4}, later)
    assert found.alive == {"b": 20, "c": 30, "d": 4}
    assert Vanished(["a"]).alive == {}
