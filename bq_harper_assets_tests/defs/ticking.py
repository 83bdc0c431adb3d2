"""A sensor as its user has it: it ticks, and the runs that it asks for are done."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dagster import Definitions, RunRequest, build_sensor_context

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.partitions import RANGE_END, RANGE_START
from bq_harper_assets.defs.runs.launch import QUIET
from bq_harper_assets_tests.defs.conftest import Dagster

LONG_AGO = "2000-01-01T00:00:00Z"


@dataclass(kw_only=True)
class Ticking:
    """One sensor of a project, with its cursor."""

    dagster: Dagster
    contract: TableContract
    kind: str = "revisit"
    cursor: dict[str, Any] = field(default_factory=dict)
    skipped: str | None = None
    definitions: Definitions = field(init=False)

    def __post_init__(self) -> None:
        self.definitions = self.dagster.definitions()

    def tick(self) -> Sequence[RunRequest]:
        """What it asks for."""
        sensor = self.definitions.resolve_sensor_def(f"{self.kind}_{self.contract.id}")
        with build_sensor_context(
            self.dagster.instance,
            cursor=json.dumps(self.cursor),
            definitions=self.definitions,
            resources=self.definitions.resources,
        ) as context:
            ticked = sensor.evaluate_tick(context)
        if ticked.cursor is not None:
            self.cursor = json.loads(ticked.cursor)
        self.skipped = ticked.skip_message
        return ticked.run_requests or ()

    def later(self, *, is_time_to_look: bool = True) -> Sequence[RunRequest]:
        """A tick when the next poll, and perhaps the next look at the source, has become due."""
        self.cursor["next_poll"] = LONG_AGO
        if is_time_to_look:
            self.cursor |= {"next_look": LONG_AGO, "next_scrub": LONG_AGO}
        return self.tick()

    def run(self, request: RunRequest, *, may_fail: bool = False, **config: Any) -> bool:
        """Does what was asked for; whether it succeeded."""
        name = {"revisit": "sync", "live": "live"}[self.kind]
        job = self.definitions.resolve_job_def(f"{name}_{self.contract.id}")
        ended = job.execute_in_process(
            run_config={**QUIET, **config},
            instance=self.dagster.instance,
            tags=request.tags,
            raise_on_error=not may_fail,
        )
        return ended.success

    def settle(self) -> list[dict[str, str]]:
        """Looks at the source, then ticks and runs until nothing is asked for; the runs' tags."""
        done: list[dict[str, str]] = []
        requests = self.later()
        while requests:
            for request in requests:
                self.run(request)
                done.append(dict(request.tags))
            assert len(done) < 10
            requests = self.later(is_time_to_look=False)
        return done


def windows(tags: dict[str, str]) -> tuple[str, str]:
    """First and last of a run, by what it was asked with."""
    return tags[RANGE_START].partition("|")[0], tags[RANGE_END].partition("|")[0]
