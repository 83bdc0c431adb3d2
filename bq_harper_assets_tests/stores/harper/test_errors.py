"""Errors of Harper, also on their way from another process."""

import pickle

import pytest

from bq_harper_assets.retries.retry import Call
from bq_harper_assets.stores.harper.errors import (
    HarperError,
    HarperRefused,
    HarperUnauthorized,
    HarperUnavailable,
)


@pytest.mark.parametrize(
    "error",
    [
        HarperUnavailable(Call("h", "upsert", "T"), "is away", 503, 1.5),
        HarperUnauthorized(Call("h", "upsert", "T"), "says no", 403, ("insert on T",)),
        HarperRefused(Call("h", "upsert", "T"), "says no", 400),
    ],
)
def test_an_error_survives_the_way_from_another_process(error: HarperError) -> None:
    back = pickle.loads(pickle.dumps(error))
    assert (type(back), str(back), vars(back)) == (type(error), str(error), vars(error))
