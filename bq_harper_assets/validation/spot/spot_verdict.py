"""Makes the verdict of a spot check from the rows that it compared."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from bq_harper_assets.validation.spot.compared_rows import ComparedRow, Outcome, Side
from bq_harper_assets.validation.spot.source_sample import MOST_SAMPLED_ROWS
from bq_harper_assets.validation.verdict import Difference, Severity, SpotStatus, Verdict

SPOT_CHECK = "spot"
NOTHING_SYNCED = "nothing is synced there, or it is being moved: there is nothing to compare"


def verdict_of_rows(
    looks: Sequence[ComparedRow], asked: dict[str, Any], held: int, crowded: int, *, is_past: bool
) -> Verdict:
    """Judges the compared rows of cells in which the ledger counts `held` rows."""
    unseen = (Outcome.UNSTORABLE, Outcome.MOVED)
    sides = Counter(look.side for look in looks if look.outcome not in unseen)
    outcomes = Counter(look.outcome for look in looks)
    metadata = asked | {
        "rows_from_bigquery": sides[Side.BIGQUERY],
        "rows_from_harper": sides[Side.HARPER],
        "rows_quarantined": outcomes[Outcome.UNSTORABLE],
        "rows_kept": outcomes[Outcome.KEPT],
        "rows_moved_meanwhile": outcomes[Outcome.MOVED],
        "crowded_times_left_out": crowded,
        "read_at_commit": is_past,
    }
    looked = sides.total()
    rows = tuple({(d.kind, d.id): d for look in looks if (d := look.difference)}.values())
    if rows:
        text = f"{len(rows)} of {looked} rows are not the same: {'; '.join(map(str, rows))}"
        if not is_past:
            text += ". BigQuery has no past of them, so they may have changed since the sync"
        severity = Severity.ERROR if is_past else Severity.WARN
        return spot_verdict(SpotStatus.ISSUES_FOUND, text, metadata, severity, rows=rows)
    if not looked:
        return _without_rows(outcomes, metadata, held)
    text = (
        f"{sides[Side.BIGQUERY]} rows of BigQuery are in Harper and {sides[Side.HARPER]} rows of "
        "Harper in BigQuery, each the same in every column"
    )
    if kept := outcomes[Outcome.KEPT]:
        text += f"; {kept} of these are gone from BigQuery, and stay as the contract wants it"
    return spot_verdict(SpotStatus.HEALTHY, text, metadata, passed=True)


def _without_rows(outcomes: Counter[Outcome], metadata: dict[str, Any], held: int) -> Verdict:
    """Passes only if there is no row that could have been compared."""
    if outcomes[Outcome.MOVED]:
        text = "a run was at work there while it was looked at"
    elif held:
        text = f"none of the {held:,} rows that were synced was met"
        if metadata["crowded_times_left_out"]:
            text += f"; times that more than {MOST_SAMPLED_ROWS:,} rows share are left out"
    elif outcomes[Outcome.UNSTORABLE]:
        text = "the rows that were looked at are in quarantine"
    else:
        text = "neither BigQuery nor Harper has a row there"
    is_fine = not held and not outcomes[Outcome.MOVED]
    return spot_verdict(SpotStatus.NO_DATA, text, metadata, Severity.WARN, passed=is_fine)


def spot_verdict(
    status: SpotStatus,
    message: str,
    metadata: dict[str, Any],
    severity: Severity = Severity.ERROR,
    *,
    passed: bool = False,
    rows: tuple[Difference, ...] = (),
) -> Verdict:
    return Verdict(
        check=SPOT_CHECK,
        status=status,
        passed=passed,
        severity=severity,
        message=message,
        metadata=metadata,
        rows=rows,
    )
