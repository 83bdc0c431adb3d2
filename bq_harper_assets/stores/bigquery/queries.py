"""Runs query jobs: labelled, limited in cost, and sent again only if no query can run twice."""

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from bq_harper_assets.stores.bigquery.calls import NO_RETRY, BigQueryCalls
from bq_harper_assets.stores.bigquery.client import connect
from bq_harper_assets.stores.bigquery.errors import BigQueryUnavailable, Feature
from bq_harper_assets.stores.bigquery.job_settings import JOB_TIMEOUT_S, Value, query_settings

if TYPE_CHECKING:
    from google.cloud import bigquery

_LABELS = {"bqh": "sync"}  # a bill then shows what we cost
_FIRST_LOOK_S = 0.05
_LONGEST_LOOK_S = 2.0


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An answer is the rows of a query job, and what it cost."""

    rows: tuple[Mapping[str, Any], ...]
    job_id: str
    started: datetime  # by BigQuery's clock, to the millisecond
    bytes_billed: int


class Queries:
    """Runs queries in the connection's location, every one under the same labels and limit."""

    def __init__(self, calls: BigQueryCalls, *, labels: Mapping[str, str] | None = None) -> None:
        self.calls = calls
        self.connection = calls.connection
        self.client = connect(calls.connection)
        self._labels = {**_LABELS, **(labels or {})}
        self.bytes_billed = 0  # the sum over all queries so far

    def run(
        self,
        sql: str,
        parameters: Mapping[str, Value | Sequence[Value]] | None = None,
        *,
        doing: str,
        feature: Feature = Feature.QUERY,
        table: str | None = None,
    ) -> Answer:
        """Runs a query and waits for it; parameters are sent as values, never as text in it."""
        job = _Job(self, sql, self._settings(parameters or {}))
        answer = self.calls.call(
            job.answer, doing=doing, feature=feature, table=table, limit_s=JOB_TIMEOUT_S
        )
        self.bytes_billed += answer.bytes_billed
        return answer

    def fields(
        self, sql: str, *, doing: str, table: str | None = None
    ) -> "Sequence[bigquery.SchemaField]":
        """Returns the columns that the query's rows would have; it is checked and not run."""
        settings = self._settings({})
        settings.dry_run = True
        job = self.calls.call(
            lambda: self.client.query(
                sql,
                job_config=settings,
                location=self.connection.location,
                retry=NO_RETRY,
                job_retry=None,
                timeout=self.calls.request_s,
            ),
            doing=doing,
            feature=Feature.QUERY,
            table=table,
        )
        return job.schema or ()

    def _settings(self, parameters: Mapping[str, Any]) -> "bigquery.QueryJobConfig":
        settings = query_settings(parameters, self._labels, self.connection.max_bytes_billed)
        settings.job_timeout_ms = int(JOB_TIMEOUT_S * 1000)
        return settings


class _Job:
    """A job is one query over all its tries: a start without answer is looked up, not repeated."""

    def __init__(
        self,
        queries: Queries,
        sql: str,
        settings: "bigquery.QueryJobConfig",
    ) -> None:
        self._client = queries.client
        self._calls = queries.calls
        self._location = queries.connection.location
        self._sql = sql
        self._settings = settings
        self._job: bigquery.QueryJob | None = None
        self._id = _new_id()

    def answer(self) -> Answer:
        """Tries once: it starts the job if there is none, waits for its end and reads its rows."""
        job = self._job = self._job or self._start()
        self._wait(job)
        failure = job.exception()  # type: ignore[no-untyped-call]
        if failure is not None:
            # The job has ended and changed nothing, so only another job can do better.
            self._job, self._id = None, _new_id()
            raise failure
        rows = job.result(retry=NO_RETRY, job_retry=None, timeout=self._calls.request_s)
        return Answer(
            rows=tuple(dict(row.items()) for row in rows),
            job_id=str(job.job_id),
            started=job.started,
            bytes_billed=job.total_bytes_billed or 0,
        )

    def _start(self) -> "bigquery.QueryJob":
        from google.api_core.exceptions import Conflict

        try:
            return self._client.query(
                self._sql,
                job_config=self._settings,
                job_id=self._id,
                location=self._location,
                retry=NO_RETRY,
                job_retry=None,
                timeout=self._calls.request_s,
            )
        except Conflict:
            job: bigquery.QueryJob = self._client.get_job(  # type: ignore[assignment]
                self._id, location=self._location, retry=NO_RETRY, timeout=self._calls.request_s
            )
            return job

    def _wait(self, job: "bigquery.QueryJob") -> None:
        deadline = time.monotonic() + JOB_TIMEOUT_S
        look = _FIRST_LOOK_S
        while not job.done(retry=NO_RETRY, timeout=self._calls.request_s):
            if time.monotonic() > deadline:
                raise BigQueryUnavailable(
                    f"BigQuery job {job.job_id} has not ended after {JOB_TIMEOUT_S:g} s. What"
                    " was synced before is safe; sync fewer windows with `bqh sync --from --to`."
                )
            self._calls.note_answer()
            self._calls.sleep(look)
            look = min(2 * look, _LONGEST_LOOK_S)


def _new_id() -> str:
    return f"bqh_{uuid.uuid4().hex}"
