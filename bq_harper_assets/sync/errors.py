"""These errors are raised while a table's rows are kept in step.

SyncError
├── OutOfStep            ledger and target contradict each other: `bqh reconcile` compares all
├── NeverSynced          the table has no schema version: its first sync records one
├── NoSuchVersion        nobody recorded a schema version of that number
├── KeyNotUnique         several rows share a key: a person corrects the contract or the source
├── NotATime             the timestamp column holds no times: name another one in the contract
├── UnhashableType       rows that differ only there would look equal: leave the column out
├── SourceSchemaMoved *  the source's columns changed while a turn was planned: begin again
├── SplitsLost *         the source no longer knows its splits: new ones give the same rows
├── WindowStillOpen      rows of the window may still arrive: its next poll or run covers it
├── TargetMoved *        somebody else wrote into a transactional target: begin again
├── TargetAhead          a target holds a position that its source has not, or not yet
├── NotAllStaged *       a target lost rows that were to be taken at once: begin again
├── LeaseRanOut *        a task stopped before its lease ended: the next run does its cells
├── NotCompared          a task could not read its side to the end, and would fail again
│   └── NotComparedYet * a task could not read its side to the end, and may do better later
├── TooManyRefused       more rows than `quarantineLimit` cannot be stored: correct the table
├── SparkGaveUp *        a task died as often as Spark tries it: the next run may succeed
├── SparkIsGone *        Spark's Java process has ended: the next run starts a new one
├── TaskCannotSucceed    a task would raise the same again: a missing module, a wrong column
├── RunStopped           somebody asked the run to end: nothing else is begun or tried again
└── TurnFailed           some cells are not done, and its report names them; the others are

* is also a TransientError: the same work may succeed later, without anybody's help.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bq_harper_assets.errors import BqhError, TransientError

if TYPE_CHECKING:
    import pyarrow as pa

    from bq_harper_assets.ledger.records import LedgerRoute
    from bq_harper_assets.sync.turn.report import TurnReport


class SyncError(BqhError):
    """The engine itself failed; the stores and the ledger have errors of their own."""


class OutOfStep(SyncError):
    """The ledger contradicts the target: what it calls synced cannot be relied on."""

    def __init__(self, table: "LedgerRoute", why: str, instead: str = "") -> None:
        super().__init__(
            f"{why}. Nothing was written: what the target holds is as it was. {instead}To compare "
            "every window with the source and write only what differs, type: "
            f"bqh reconcile {table.name}"
        )


class NeverSynced(SyncError):
    """The table has no schema version yet: its first sync records one."""

    def __init__(self, table: str) -> None:
        super().__init__(
            f"{table} was never synced, so that it has no recorded schema. Nothing was changed. Its"
            f" first run makes the target's table: bqh sync {table}"
        )


class NoSuchVersion(SyncError):
    """A schema version of that number was never recorded."""

    exit_code = 2


class KeyNotUnique(SyncError):
    """Several rows share a key that the contract calls unique."""


class NotATime(SyncError):
    """The timestamp column has values that are not times."""

    def __init__(self, type_: "pa.DataType") -> None:
        super().__init__(
            f"the timestamp column arrives as {type_}; windows need TIMESTAMP, DATETIME or DATE. "
            "Nothing was written. Name another timestampColumn in config/tables.yaml, "
            "then run `bqh doctor`"
        )


class UnhashableType(SyncError):
    """A column's Arrow type has no hash."""

    def __init__(self, type_: "pa.DataType") -> None:
        super().__init__(
            f"values of the Arrow type {type_} cannot be hashed, so rows that"
            " differ only there would look equal. "
            "Nothing was written. Leave the column out: list the others under `columns` "
            "in config/tables.yaml"
        )


class SourceSchemaMoved(SyncError, TransientError):
    """The source's columns changed after they were read and before the rows were: run it again."""

    def __init__(self, table: str, changes: Sequence[str]) -> None:
        self.table = table
        super().__init__(
            f"the columns of {table} changed in the source while the run was planned:"
            f" {'; '.join(changes)}. Nothing of it was written. Run it again; it will use the"
            f" new columns: bqh sync {table}"
        )


class SplitsLost(SyncError, TransientError):
    """The source no longer knows the splits of a turn: the same rows come from new ones."""


class WindowStillOpen(SyncError):
    """Rows of the window may still arrive."""


class TargetMoved(SyncError, TransientError):
    """A transactional target has taken another turn since this one began: nothing was written."""


class TargetAhead(SyncError):
    """A transactional target holds its source's rows of a position that the source is not past."""

    def __init__(self, table: "LedgerRoute", there: str, here: str, *, is_known: bool) -> None:
        how = (
            f"is only at {here}"
            if is_known
            else f"is at {here}, and nobody can say which of the two is the newer"
        )
        super().__init__(
            f"the target's table {table.facts.target} holds the rows of {table.name} up to the"
            f" position {there}, and the source {how}: the source may have been restored or"
            " replaced. Nothing was written. Go back to a source that goes on from there, or"
            f" compare every row with the source as it is now: bqh reconcile {table.name}"
        )


class NotAllStaged(SyncError, TransientError):
    """A transactional target has other staged rows than the tasks have counted: none was taken."""


class LeaseRanOut(SyncError, TransientError):
    """A task stopped by itself, so that nobody else's rows are overwritten."""


class NotCompared(SyncError):
    """A task could not read its side to the end."""


class NotComparedYet(NotCompared, TransientError):
    """A task could not read its side to the end, and may succeed later."""


class TooManyRefused(SyncError):
    """More rows are rejected than `quarantineLimit` allows: the table is wrong as a whole."""

    def __init__(self, table: str, most: int, reason: str) -> None:
        super().__init__(
            f"more than {most:,} rows of {table} cannot be stored, the last because: {reason}. The "
            "cells of such rows are not committed; correct the contract (values, schemaOverrides, "
            "key) or the source, or allow more with quarantineLimit, then run it again"
        )


class SparkGaveUp(SyncError, TransientError):
    """A task died as often as Spark tries it: the next run may succeed."""


class SparkIsGone(SyncError, TransientError):
    """Spark's Java process has ended: the next run can start a new one."""


class TaskCannotSucceed(SyncError):
    """A task would raise the same error again: a module is missing, or a column is wrong."""


class RunStopped(SyncError):
    """Somebody asked the run to end: nothing else is begun, and nothing is tried again."""

    def __init__(self) -> None:
        super().__init__("the run was asked to stop, so nothing else is begun")


class TurnFailed(SyncError):
    """Some cells are not done, and `report` names them; the others stay committed."""

    def __init__(self, report: "TurnReport") -> None:
        self.report = report
        refused = [cell for cell in report.cells if cell.problem and cell.is_refused]
        failed = [cell for cell in report.cells if cell.problem and not cell.is_refused]
        told = [f"{len(failed)} failed"] if failed else []
        told += [f"the delete guard refused {len(refused)}"] if refused else []
        count = len(refused) + len(failed)
        done = len(report.cells) - count
        committed = f"The other {done} are committed" if done else "None is committed"
        lines = [
            f"{report.table}: {count} of {len(report.cells)} cells are not done: "
            f"{' and '.join(told)}",
            committed,
        ]
        if failed:
            lines.append(f"The first that failed is {failed[0].cell.key}: {failed[0].problem}")
            # A refused cell would be refused again: its own text says what to type.
            lines.append(f"Next: bqh sync {report.table}")
        if refused:
            which = "The first that was refused" if failed else "The first"
            lines.append(f"{which} is {refused[0].cell.key}: {refused[0].problem}")
        super().__init__(". ".join(lines))
