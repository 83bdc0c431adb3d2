"""A step's own retries."""

import logging
import threading
import time
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from dagster import Failure

from bq_harper_assets.activity import now_doing
from bq_harper_assets.defs.runs import step_retries
from bq_harper_assets.defs.runs.step_retries import retried
from bq_harper_assets.retries.retry import Call, RetryPolicy
from bq_harper_assets.sync.errors import RunStopped
from bq_harper_assets.sync.stop_request import Stop
from bq_harper_assets.sync.turn.turn import told_uncommitted

CONTEXT: Any = SimpleNamespace(log=logging.getLogger(__name__))
TEN_MINUTES = timedelta(minutes=10)


def test_what_may_heal_is_tried_again_and_what_cannot_is_not(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(step_retries, "WAITS_S", (0.0, 0.0, 0.0))
    left = [True, True, False]
    tries = 0

    def once() -> int:
        nonlocal tries
        tries += 1
        if left:
            raise Failure("Harper is away", allow_retries=left.pop(0))
        return tries

    with pytest.raises(Failure, match="Harper is away"):
        retried(CONTEXT, Stop(), once, TEN_MINUTES)
    assert tries == 3
    assert caplog.messages == [
        "tries again in 0 s, 1 of 3: Harper is away",
        "tries again in 0 s, 2 of 3: Harper is away",
    ]
    assert retried(CONTEXT, Stop(), once, TEN_MINUTES) == 4


def test_a_step_that_goes_on_by_itself_does_not_speak_of_what_a_person_would_have_to_wait_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(step_retries, "WAITS_S", (0.0,))

    def once() -> None:
        raise Failure(f"Java is gone. {told_uncommitted('ships')}", allow_retries=True)

    with pytest.raises(Failure) as gave_up:
        retried(CONTEXT, Stop(), once, TEN_MINUTES)
    said = "Java is gone. None of them is committed; what was written stays and is written again."
    assert caplog.messages == [f"tries again in 0 s, 1 of 1: {said}"]
    assert gave_up.value.description == (
        f"{said} Next: bqh sync ships, which waits until the lease has run out, 3 minutes at most"
    )


def test_tries_that_find_nothing_but_503_end_with_the_steps_deadline(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(step_retries, "WAITS_S", (0.1, 0.1, 0.1))
    tries: list[float] = []

    def once() -> str:
        """Each try makes a client of its own."""
        tries.append(time.monotonic())
        policy = RetryPolicy(max_retries=5, initial_delay_s=0.05).within(timedelta(hours=1))
        try:
            return policy.call(
                busy, is_transient=bool, is_storm=bool, describe=Call("Harper", "upsert")
            )
        except OSError as error:
            raise Failure("Harper answered 503", allow_retries=True) from error

    def busy() -> str:
        raise OSError

    with pytest.raises(Failure, match="Harper answered 503"):
        retried(CONTEXT, Stop(), once, timedelta(seconds=1))
    assert len(tries) == 1
    assert time.monotonic() - tries[0] < 2
    assert caplog.messages[-1].endswith(
        "nothing has succeeded for longer than the 1 s of sync.giveUpAfter"
    )


def test_a_step_is_not_tried_again_after_a_wait_that_its_deadline_does_not_allow() -> None:
    tries: list[float] = []

    def once() -> None:
        tries.append(time.monotonic())
        raise Failure("Harper is away", allow_retries=True)

    with pytest.raises(Failure, match="Harper is away"):
        retried(CONTEXT, Stop(), once, timedelta(seconds=20))
    assert len(tries) == 1


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
        retried(CONTEXT, stop, once, TEN_MINUTES)
    assert tries == 1
    assert time.monotonic() - began < min(step_retries.WAITS_S) / 2


def test_a_wait_before_the_next_try_is_what_a_terminal_shows() -> None:
    shown = []

    class Watched(Stop):
        def sleep(self, seconds: float) -> None:
            shown.append(str(now_doing()))

    left = [1]

    def once() -> None:
        if left:
            left.pop()
            raise Failure("Harper is away", allow_retries=True)

    retried(CONTEXT, Watched(), once, TEN_MINUTES)
    assert shown == ["waiting to try again"]
