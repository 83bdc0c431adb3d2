"""Checks whether the source's schema has changed, and whether all changes have taken effect.

It asks the ledger alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets.ledger.verbs.audit import Note
from bq_harper_assets.schema.change import Change, ChangeKind
from bq_harper_assets.schema.changes import changes_between, waiting_changes
from bq_harper_assets.schema.version import TableVersion
from bq_harper_assets.stores.harper.table.schema_evolution import is_applied
from bq_harper_assets.sync.schema_sync.version_history import version_steps
from bq_harper_assets.validation.verdict import Severity

SCHEMA_DRIFT_CHECK = "schema_drift"
_ACCEPTED = "schema_accepted"  # kind of an audit entry: who accepted changes, up to which version


@dataclass(frozen=True, kw_only=True)
class DriftVerdict:
    """A drift verdict says what is known of changes to one table's schema."""

    message: str
    version: int = 0  # 0: never synced
    passed: bool = True
    severity: Severity = Severity.WARN
    changes: tuple[Change, ...] = ()
    is_due: bool = False  # something has to be done in Harper, and nobody has to be asked

    @property
    def signature(self) -> str:
        """Gives a text that is equal for two equal findings, so that each is reported once."""
        word = "passed" if self.passed else self.severity.value
        problem = "" if self.changes else self.message
        return f"{self.version} {word} {'' if self.passed else problem}".strip()


def check_drift(
    ledger: Ledger, contract: TableContract, told: int = 0, problem: str | None = None
) -> DriftVerdict:
    """Lists what has changed since the version `told`, or is not settled yet.

    `problem` is the error of the last comparison with the source, which the verdict then reports.
    If no version was reported yet (`told` is 0), nothing counts as new. Then only two things count:
    what is not settled, and what a person should check, which stays until somebody accepts it or it
    is gone.
    """
    table = ledger.find_route(contract.id)
    newest = ledger.newest_schema(table) if table else None
    if table is None or newest is None:
        if problem:
            return DriftVerdict(passed=False, severity=Severity.ERROR, message=problem)
        message = f"never synced; the first run records its schema: bqh sync {contract.id}"
        return DriftVerdict(message=message)
    version = TableVersion.parse(newest.body)
    is_new = not is_applied(ledger, table, newest.version)
    before = newest.version - 1 if is_new else newest.version
    if 0 < told < before:
        before = told
    changes = _since(ledger, table, contract, before, version)
    serious = tuple(each for each in changes if each.severity != "info")
    waiting = waiting_changes(version, contract)
    accepted = accepted_version(ledger, table)
    lasting = tuple(
        each
        for each in _since(ledger, table, contract, accepted, version)
        if each.severity != "info" and not _is_named(each, (*serious, *waiting))
    )
    # A harmless change of a column must not hide that another change of it waits.
    found = (*changes, *lasting, *(each for each in waiting if not _is_named(each, serious)))
    only_waits = serious == changes and all(_is_named(each, waiting) for each in changes)
    is_due = is_new and not (changes and only_waits)
    if problem:
        return DriftVerdict(
            version=newest.version, passed=False, severity=Severity.ERROR, message=problem
        )
    if not found:
        message = f"as in BigQuery: schema version {newest.version}"
        return DriftVerdict(version=newest.version, message=message, is_due=is_due)
    severity = Severity.ERROR if any(c.severity == "error" for c in found) else Severity.WARN
    message = f"schema version {newest.version}: {'; '.join(map(str, found))}"
    first = min(before, accepted) if lasting else before
    if first < newest.version:
        # Without numbers the command compares the newest version with BigQuery: both are equal.
        message += f". See it with: bqh schema diff {contract.id} --from {first}"
        message += f" --to {newest.version}"
        if any(each.severity != "info" for each in (*changes, *lasting)):
            message += f"; when you have seen it, type: bqh schema accept {contract.id}"
    else:
        message += f". See it with: bqh schema diff {contract.id}"
    return DriftVerdict(
        version=newest.version,
        passed=False,
        severity=severity,
        message=message,
        changes=found,
        is_due=is_due,
    )


def accepted_version(ledger: Ledger, table: LedgerRoute) -> int:
    """Gives the version up to which changes were accepted; the first version changed nothing."""
    notes = ledger.audit(table, 1, kind=_ACCEPTED)
    return int(notes[0].detail["version"]) if notes else 1


def accept_changes(ledger: Ledger, table: LedgerRoute, version: int, by: str) -> None:
    """Records that a person accepted all changes up to this version, which ends their report."""
    detail = {"version": version, "by": by}
    ledger.record_audit(table, Note(_ACCEPTED, f"version {version}", "accepted", detail))


def as_markdown(changes: Sequence[Change]) -> str:
    """Shows changes and what is done about them as a Markdown table."""
    head = [("column", "change", "before", "now", "what is done"), ("---",) * 5]
    rows = [
        (c.column or "(table)", c.kind.replace("_", " "), _code(c.before), _code(c.after), c.action)
        for c in changes
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in (*head, *rows))


def _code(text: str) -> str:
    """Formats the text as code, because ARRAY<INT64> would otherwise be taken for HTML."""
    return f"`{text}`" if text else ""


def _since(
    ledger: Ledger, table: LedgerRoute, contract: TableContract, before: int, now: TableVersion
) -> tuple[Change, ...]:
    known = ledger.schema_version(table, before)
    changes = changes_between(TableVersion.parse(known.body), now, contract) if known else ()
    if not any(change.kind is ChangeKind.REMOVED for change in changes):
        return changes
    # A reader who missed some versions still learns in which one each column was removed.
    steps = version_steps(ledger, contract)[before:]
    gone = {c.column: c for each in steps for c in each.changes if c.kind is ChangeKind.REMOVED}
    return tuple(gone.get(c.column, c) if c.kind is ChangeKind.REMOVED else c for c in changes)


def _is_named(change: Change, others: Sequence[Change]) -> bool:
    return any(change.column == other.column for other in others)
