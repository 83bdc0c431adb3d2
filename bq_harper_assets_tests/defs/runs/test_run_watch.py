"""A run says that it works, and works on while Dagster's storage is away."""

import os
import time
from typing import Any

import pytest
from dagster import (
    DagsterInstance,
    OpExecutionContext,
    job,
    op,
)

from bq_harper_assets.defs.runs import run_watch
from bq_harper_assets.defs.runs.early_end import execute_stoppably, stoppable
from bq_harper_assets.defs.runs.launch import QUIET
from bq_harper_assets.defs.runs.run_process import PID, RUN, SEEN
from bq_harper_assets_tests.defs.runs.test_early_end import (
    RUN_ID,
    Storage,
    fails,
    instance,
    project,
)

__all__ = ["instance", "project"]
SOON_S = 10.0


def test_a_run_works_on_while_dagsters_storage_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_watch, "_ASK_EVERY_S", 0.01)
    away: Any = Storage(fails)

    def work() -> str:
        give_up = time.monotonic() + 60
        while away.asked < 3:
            assert time.monotonic() < give_up, "the storage is not asked again"
            time.sleep(0.01)
        return "done"

    assert execute_stoppably(away, RUN_ID, work, lambda: "") == "done"


def test_a_run_says_that_it_works_also_between_its_steps(
    instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_watch, "_ASK_EVERY_S", 0.02)
    monkeypatch.setattr(run_watch, "SEEN_EVERY_S", 0.02)
    tags: list[dict[str, str]] = []

    @op
    def step(context: OpExecutionContext) -> None:
        stoppable(context, lambda stop: None)
        # It writes its results now, which takes minutes for thousands of partitions.
        give_up = time.monotonic() + SOON_S
        while SEEN not in (tags[-1] if tags else ()) and time.monotonic() < give_up:
            run = context.instance.get_run_by_id(context.run.run_id)
            assert run
            tags.append(run.tags)
        context.instance.add_run_tags(context.run.run_id, {SEEN: "0"})
        while tags[-1][SEEN] in ("0", *[each.get(SEEN) for each in tags[:-1]]):
            assert time.monotonic() < give_up
            run = context.instance.get_run_by_id(context.run.run_id)
            assert run
            tags.append(run.tags)

    @job
    def long() -> None:
        step()

    ended = long.execute_in_process(QUIET, instance)
    assert tags[-1][RUN] == ended.run_id
    assert tags[-1][PID] == str(os.getpid())
    assert abs(time.time() - int(tags[-1][SEEN])) < 60
    give_up = time.monotonic() + SOON_S
    while ended.run_id in run_watch._WATCHES:
        assert time.monotonic() < give_up, "it still watches a run that has ended"
        time.sleep(0.02)
