"""A sensor per table finds what is missing or differs from its source, and asks for few runs.

Each table has its own, so that one that fails shows its error and does not stop the others.
"""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from dagster import (
    DagsterRun,
    ResourceParam,
    RunRequest,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    sensor,
)
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition
from pydantic import BaseModel, ConfigDict

from bq_harper_assets.contract.fields.quantities import duration_text
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.names import live_job
from bq_harper_assets.defs.partitions import range_tags
from bq_harper_assets.defs.resources import BigQueryToHarperResource
from bq_harper_assets.defs.runs.active_runs import (
    failed_windows,
    job_is_running,
    runs_of_table,
    windows_of,
)
from bq_harper_assets.defs.runs.dead_runs import end_dead_runs
from bq_harper_assets.defs.tables.first_window import find_start, known_start
from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.schema.version import TableVersion
from bq_harper_assets.stores.bigquery.resource import BigQueryConnectionResource
from bq_harper_assets.stores.bigquery.source import bigquery_source
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.sync.cells.window import Span, Window
from bq_harper_assets.sync.ledger_facts import refused_declaration
from bq_harper_assets.sync.phases import rows_per_request
from bq_harper_assets.sync.plan.delete_guard import command_that_allows
from bq_harper_assets.sync.revisit.changed_windows import SourceChanges, look
from bq_harper_assets.sync.revisit.due_cells import Reason, WindowFingerprint, closed_until
from bq_harper_assets.sync.revisit.horizon import (
    TableStanding,
    horizon,
    known_after,
    scrub_part,
    standing,
)
from bq_harper_assets.sync.revisit.pace import (
    ASK_AGAIN_AFTER,
    FAILED_WAIT,
    WINDOWS_PER_RUN,
    look_delay,
    poll_delay,
    tick_seconds,
)
from bq_harper_assets.sync.revisit.run_requests import Ask, End, asks

REASON, PHASE, END, BILLED = "bqh/reason", "bqh/phase", "bqh/end", "bqh/bytes_billed"
LOOK_ERROR, NOT_LOADED = "bqh/look_error", "bqh/not_loaded"
MOST_CHANGED = 500  # windows that a cursor remembers
_MOST_SHOWN = 500  # characters of an error


class RevisitCursor(BaseModel):
    """The cursor is what a tick leaves to the next, and shows to whoever opens the sensor."""

    model_config = ConfigDict(extra="ignore")

    next_poll: datetime | None = None
    next_look: datetime | None = None
    looked_at: datetime | None = None  # when BigQuery was last looked at
    looked: list[Span] = []  # at which windows; older ones have their turn within `scrub`
    next_scrub: datetime | None = None
    scrubbed_to: datetime | None = None
    changed: dict[datetime, WindowFingerprint] = {}  # found by a look, and not yet put right
    phase: str = ""
    batch_size: int = 0
    windows_per_run: int = 0
    due: dict[str, int] = {}  # cells by reason
    windows_compared: int = 0  # by the last look
    bytes_billed: int = 0  # for the last look
    filled_version: int = 0  # up to which schema version all windows were looked at for new values
    look_error: str = ""  # why the last look did not see all it should; cleared by the next
    not_loaded: str = ""  # windows that the loaded definitions do not have, and what to do


def build_revisit_sensor(
    contract: TableContract, start: datetime, job: UnresolvedAssetJobDefinition
) -> SensorDefinition:
    """Builds the sensor, which asks for windows that are missing, unfinished, closed or changed."""

    @sensor(
        name=f"revisit_{contract.id}",
        job=job,
        minimum_interval_seconds=tick_seconds(contract.sync),
        description=(
            f"Asks for windows of {contract.target.table} that are missing or differ from BigQuery."
        ),
    )
    def revisit(
        context: SensorEvaluationContext,
        bigquery_to_harper: ResourceParam[BigQueryToHarperResource],
    ) -> SensorResult:
        end_dead_runs(context.instance)
        cursor = RevisitCursor.model_validate_json(context.cursor or "{}")
        bigquery = bigquery_to_harper.bigquery
        with bigquery_to_harper.ledger.open() as opened:
            now = opened.now()
            if refused := refused_declaration(opened, contract, bigquery.connection().project):
                return _skipped(str(refused), cursor)
            if cursor.next_poll and now < cursor.next_poll:
                return _skipped(f"the next poll is at {cursor.next_poll:%F %T} UTC", cursor)
            known = _known_start(cursor, contract, opened, bigquery, now)
            # Dagster takes no key before the partitions that it has loaded.
            first = max(start, known) if known else start
            cursor = _looked(cursor, contract, first, opened, bigquery, now)
            stands = standing(opened, contract, first, now, cursor.changed)
        runs = runs_of_table(context.instance, contract)
        is_followed = job_is_running(context.instance, live_job(contract))
        # By the clock that Dagster files runs with.
        failed = failed_windows(context.instance, contract, datetime.now(UTC) - FAILED_WAIT)
        found = _asks(
            contract, stands, runs, is_followed and _has_just_closed(contract, stands, now), failed
        )
        cursor = _shown(cursor, contract, stands, now)
        # A tick that asks for runs has no other words than its cursor and the tags of its runs.
        cursor = cursor.model_copy(update={"not_loaded": unloaded_windows(contract, start, known)})
        if cursor.not_loaded:
            context.log.warning(cursor.not_loaded)
        if not found:
            return _skipped(_why_nothing(contract, stands, cursor), cursor)
        return SensorResult(
            run_requests=[_request(ask, stands, cursor, now) for ask in found],
            cursor=cursor.model_dump_json(),
        )

    return revisit


def _known_start(
    cursor: RevisitCursor,
    contract: TableContract,
    ledger: Ledger,
    bigquery: BigQueryConnectionResource,
    now: datetime,
) -> datetime | None:
    """Gives the start of the first window; it is looked for only when BigQuery is looked at."""
    if cursor.next_look is not None and now < cursor.next_look:
        return known_start(contract, ledger)
    return find_start(bigquery.connection(), contract, ledger)


def unloaded_windows(contract: TableContract, start: datetime, known: datetime | None) -> str:
    """Says that partitions are missing, if the start was found after definitions were loaded."""
    if known is None or start <= known:
        return ""
    return (
        f"windows of {contract.id} from {known:%FT%H:%M} to {start:%FT%H:%M} are not partitions"
        " yet: their start was found after the definitions were loaded. Reload the code location,"
        f" or type: bqh sync {contract.id}"
    )


def _looked(
    cursor: RevisitCursor,
    contract: TableContract,
    start: datetime,
    ledger: Ledger,
    bigquery: BigQueryConnectionResource,
    now: datetime,
) -> RevisitCursor:
    """Adds what BigQuery holds now, if it is time to ask it."""
    version = _version_to_fill(contract, ledger)
    is_to_be_filled = version > cursor.filled_version
    is_first_look = not cursor.changed and not cursor.look_error  # of this version, not one more
    is_early = cursor.next_look is not None and now < cursor.next_look
    if is_early and not (is_to_be_filled and is_first_look):
        return cursor
    until = closed_until(contract, now)
    ranges = [(start, until) if is_to_be_filled else horizon(contract, start, until)]
    part = scrub_part(contract, start, until, cursor.scrubbed_to)
    if cursor.next_scrub and now + look_delay(contract) <= cursor.next_scrub:
        part = None  # the next look is early enough
    if part:
        ranges.append((part.begin, part.end))
    looks, error = _looks(contract, ledger, bigquery, ranges)
    found = {at: seen for each in looks.values() for at, seen in each.changed.items()}
    kept = {at: found[at] for at in sorted(found, reverse=True)[:MOST_CHANGED]}
    # What was not seen, or cannot be remembered, is left to the next look.
    is_complete = not error and len(kept) == len(found)
    if is_complete:
        cursor = cursor.model_copy(update={"filled_version": version})
    if part and is_complete:
        next_scrub = max(cursor.next_scrub or now, now) + part.pause
        cursor = cursor.model_copy(update={"scrubbed_to": part.after, "next_scrub": next_scrub})
    return cursor.model_copy(
        update={
            "next_look": now + look_delay(contract),
            "changed": known_after(cursor.changed, list(looks), kept),
            "looked_at": now if looks else cursor.looked_at,
            "looked": list(looks) or cursor.looked,
            "windows_compared": sum(each.windows for each in looks.values()),
            "bytes_billed": sum(each.bytes_billed for each in looks.values()),
            "look_error": error[:_MOST_SHOWN],
        }
    )


def _version_to_fill(contract: TableContract, ledger: Ledger) -> int:
    """Gives the newest schema version with new columns to fill in all windows; 0 for none."""
    table = ledger.find_route(contract.id) if contract.backfill else None
    found, before = 0, None
    for recorded in ledger.schema_history(table) if table else ():
        paths = TableVersion.parse(recorded.body).live_paths
        if before is not None and paths - before:
            found = recorded.version
        before = paths
    return found


def _looks(
    contract: TableContract,
    ledger: Ledger,
    bigquery: BigQueryConnectionResource,
    ranges: Sequence[Span],
) -> tuple[dict[Span, SourceChanges], str]:
    """Looks at each range; gives those that could be looked at, and why the others could not.

    A look that fails is no reason to let windows wait which the ledger knows to be missing.
    """
    labels = {"bqh": "revisit", "bqh_table": contract.id}
    looks: dict[Span, SourceChanges] = {}
    try:
        with bigquery_source(bigquery.connection(), labels, harper_plan) as source:
            for each in ranges:
                looks[each] = look(ledger, source, contract, [each])
    except BqhError as error:
        return looks, str(error)
    return looks, ""


def _asks(
    contract: TableContract,
    stands: TableStanding,
    runs: Sequence[DagsterRun],
    without_newest: bool,
    failed: Collection[Window],
) -> list[Ask]:
    newest = Window(stands.until - contract.window, stands.until)
    at_work = {window for run in runs for window in windows_of(contract, run)}
    if without_newest:
        at_work.add(newest)
    ends = {End(run.tags[END]) for run in runs if END in run.tags}
    return asks(stands.due, stands.phase, newest, at_work, ends, failed)


def _has_just_closed(contract: TableContract, stands: TableStanding, now: datetime) -> bool:
    """Says whether the newest window has just closed: its live run is about to reconcile it."""
    return now - stands.until - contract.safety_lag < ASK_AGAIN_AFTER


def _shown(
    cursor: RevisitCursor, contract: TableContract, stands: TableStanding, now: datetime
) -> RevisitCursor:
    still = {each.cell.window.start for each in stands.due}
    return cursor.model_copy(
        update={
            "next_poll": now + poll_delay(stands.phase, contract.sync),
            "changed": {at: seen for at, seen in cursor.changed.items() if at in still},
            "phase": stands.phase.value,
            "batch_size": rows_per_request(stands.phase, contract.sync),
            "windows_per_run": WINDOWS_PER_RUN[stands.phase],
            "due": {reason.value: count for reason, count in stands.by_reason.items()},
        }
    )


def _request(ask: Ask, stands: TableStanding, cursor: RevisitCursor, now: datetime) -> RunRequest:
    tags = {
        **range_tags(ask.cells),
        REASON: ask.reasons,
        PHASE: stands.phase.value,
        END: ask.end.value,
        BILLED: str(cursor.bytes_billed),
    }
    if cursor.look_error:
        tags[LOOK_ERROR] = cursor.look_error
    if cursor.not_loaded:
        tags[NOT_LOADED] = cursor.not_loaded
    return RunRequest(run_key=ask.key(now), tags=tags)


def _why_nothing(contract: TableContract, stands: TableStanding, cursor: RevisitCursor) -> str:
    refused = [each.cell for each in stands.due if each.reason is Reason.REFUSED]
    said = []
    if count := len(stands.due) - len(refused):
        said.append(f"{count} cells are due, and their runs have not ended yet")
    if refused:
        said.append(
            f"{len(refused)} cells were refused by the delete guard, the first is "
            f"{refused[0].key}, and are asked for again when they change in BigQuery, or when what "
            "other runs deleted no longer counts, if that alone is the cause; if BigQuery is right,"
            f" type: {command_that_allows(contract.id, refused)}"
        )
    if not said:
        said.append(f"nothing is due ({stands.phase}): {_seen(contract, cursor)}")
    if cursor.look_error:
        said.append(
            "BigQuery could not be looked at for late, changed and deleted rows; the next look is "
            f"at {cursor.next_look:%F %T} UTC: {cursor.look_error}"
        )
    if cursor.not_loaded:
        said.append(cursor.not_loaded)
    return "; ".join(said)


def _seen(contract: TableContract, cursor: RevisitCursor) -> str:
    """Says what is known of BigQuery, and as of when: not every look sees every window."""
    ledger = "by the ledger no closed window is missing or unfinished"
    ranges = [each for each in cursor.looked if each[0] < each[1]]
    if cursor.looked_at is None or not ranges:
        return f"{ledger}; BigQuery was not looked at yet"
    told = " and ".join(f"{start:%FT%H:%M} to {end:%FT%H:%M}" for start, end in ranges)
    return (
        f"{ledger}, and those from {told} are as BigQuery had them at {cursor.looked_at:%F %T} UTC "
        f"or since; others have their turn within {duration_text(contract.scrub)}, or at once "
        f"with: bqh sync {contract.id} --changed"
    )


def _skipped(why: str, cursor: RevisitCursor) -> SensorResult:
    return SensorResult(skip_reason=SkipReason(why), cursor=cursor.model_dump_json())
