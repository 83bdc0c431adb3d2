"""All verdicts in one word, and each of them as JSON."""

import json

import pytest

from bq_harper_assets.validation.verdict import (
    Difference,
    DifferenceKind,
    Overall,
    ProgressStatus,
    Severity,
    SmokeStatus,
    SpotStatus,
    Status,
    Verdict,
    overall,
)

PASSED = {ProgressStatus.HEALTHY, SmokeStatus.HEALTHY, SpotStatus.HEALTHY}


def verdict(status: Status) -> Verdict:
    """Of a check with this status."""
    return Verdict(
        check="check",
        status=status,
        passed=status in PASSED,
        severity=Severity.ERROR,
        message="message",
    )


@pytest.mark.promise("M4")
@pytest.mark.parametrize(
    ("progress", "smoke", "spot", "word"),
    [
        ("healthy", "healthy", "healthy", "healthy"),
        ("lagging", "healthy", "healthy", "issues_detected"),
        ("severely_lagging", "healthy", "healthy", "issues_detected"),
        ("stalled", "no_recent_data", "healthy", "issues_detected"),
        ("no_checkpoint", "table_not_found", "no_data", "issues_detected"),
        ("healthy", "healthy", "issues_found", "issues_detected"),
        ("healthy", "query_failed", "healthy", "error"),
        ("healthy", "healthy", "check_failed", "error"),
        ("stalled", "query_failed", "issues_found", "error"),
    ],
)
def test_the_overall_word_is_that_of_the_worst(
    progress: str, smoke: str, spot: str, word: str
) -> None:
    verdicts = [
        verdict(ProgressStatus(progress)),
        verdict(SmokeStatus(smoke)),
        verdict(SpotStatus(spot)),
    ]
    assert overall(verdicts) is Overall(word)
    assert overall(reversed(verdicts)) is Overall(word)


def test_a_check_that_passes_without_data_is_no_issue() -> None:
    passed = Verdict(
        check="spot",
        status=SpotStatus.NO_DATA,
        passed=True,
        severity=Severity.WARN,
        message="neither has a row",
    )
    assert overall([passed]) is Overall.HEALTHY
    assert overall([]) is Overall.HEALTHY


def test_a_verdict_can_be_written_as_json_and_names_rows_with_both_values() -> None:
    row = Difference(DifferenceKind.CHANGED, "0A1", {"speed": (1.5, None)})
    found = Verdict(
        check="spot",
        status=SpotStatus.ISSUES_FOUND,
        passed=False,
        severity=Severity.ERROR,
        message="text",
        metadata={"n": 1},
        rows=(row,),
    )
    assert json.loads(json.dumps(found.as_json())) == {
        "status": "issues_found",
        "passed": False,
        "severity": "error",
        "message": "text",
        "metadata": {"n": 1},
        "rows": [{"kind": "changed", "id": "0A1", "columns": {"speed": [1.5, None]}}],
    }
    assert str(row) == "changed 0A1 (speed: 1.5 -> None)"
