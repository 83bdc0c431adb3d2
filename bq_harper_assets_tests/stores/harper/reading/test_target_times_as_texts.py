"""Times become the texts that a sync stores."""

import pytest

from bq_harper_assets.schema.logical import Kind
from bq_harper_assets.stores.harper.reading.target_times import stored_micros, texts_of_micros


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Kind.TIMESTAMP, "1970-01-02T00:00:00.000000Z"),
        (Kind.DATETIME, "1970-01-02T00:00:00.000000"),
        (Kind.DATE, "1970-01-02"),
    ],
)
def test_a_text_is_read_back_as_the_same_time(kind: Kind, text: str) -> None:
    assert texts_of_micros([86_400_000_000, None], kind) == [text, None]
    assert stored_micros([text, None], kind) == [86_400_000_000, None]
    assert stored_micros(["not a time", 7, text], kind) == [None, None, 86_400_000_000]
