"""A step's own retries."""

import logging
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from dagster import Failure

from bq_harper_assets.defs import retrying
from bq_harper_assets.defs.retrying import retried
from bq_harper_assets.sync.stopping import RunStopped, Stop

CONTEXT: Any = SimpleNamespace(log=logging.getLogger(__name__))


def test_what_may_heal_is_tried_again_and_what_cannot_is_not(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(retrying, "WAITS_S", (0.0, 0.0, 0.0))
    left = [True, True, False]
    tries = 0

    def once() -> int:
        nonlocal tries
        tries += 1
        if left:
            raise Failure("Harper is away", allow_retries=left.pop(0))
        return tries

    with pytest.raises(Failure, match="Harper is away"):
        retried(CONTEXT, Stop(), once)
    assert tries == 3
    assert caplog.messages == [
        "tries again in 0 s, 1 of 3: Harper is away",
        "tries again in 0 s, 2 of 3: Harper is away",
    ]
    assert retried(CONTEXT, Stop(), once) == 4


def test_a_wait_before_the_next_try_ends_when_the_run_is_to_stop() -> None:
    stop = Stop()
    tries = 0

    def once() -> None:
        nonlocal tries
        tries += 1
        threading.Timer(0.1, stop.ask).start()
        raise Failure("Harper is away", allow_retries=True)

    began = time.monotonic()
    with pytest.raises(RunStopped):
        retried(CONTEXT, stop, once)
    assert tries == 1
    assert time.monotonic() - began < min(retrying.WAITS_S) / 2
