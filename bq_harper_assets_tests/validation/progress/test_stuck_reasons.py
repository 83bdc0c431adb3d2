"""Why a table is stuck: keys that collide, or a copy that somebody spoiled."""

import pytest

from bq_harper_assets.stores.harper.mirror.checkpoints import mirror_checkpoints
from bq_harper_assets.stores.harper.mirror.tables import CHECKPOINTS
from bq_harper_assets.validation.progress.progress_check import (
    check_progress,
)
from bq_harper_assets.validation.verdict import ProgressStatus
from bq_harper_assets_tests.validation.conftest import MINUTE, Bench, just_now
from bq_harper_assets_tests.validation.progress.test_progress_check import HOUR

pytestmark = [pytest.mark.harper, pytest.mark.bigquery]


@pytest.mark.promise("M12")
def test_keys_that_collide_are_named_as_what_holds_the_rows_up(bench: Bench) -> None:
    base = just_now() - 2 * HOUR
    source = bench.source(base + MINUTE, base + 6 * MINUTE)
    contract = bench.contract(source, base, key="number")
    bench.commit(contract, base, base + 5 * MINUTE)
    subject = bench.subject(contract)
    later = base + 3 * HOUR
    assert check_progress(subject, later).metadata["diagnosis"] == []
    bench.tables.run(f"UPDATE {source.sql} SET number = 7 WHERE TRUE")
    verdict = check_progress(subject, later)
    assert verdict.status is ProgressStatus.STALLED
    (note,) = verdict.metadata["diagnosis"]
    assert note.startswith(
        f"the key number of {contract.id} is not unique in BigQuery: number = 7 (2 rows)"
    )
    assert note in verdict.message


@pytest.mark.promise("M12")
@pytest.mark.parametrize(
    ("spoiled", "named"),
    [
        ({"lastTimestamp": "2099-01-01T00:00:00.000000Z"}, "says 2099"),
        ({"lastTimestamp": "yesterday"}, "which is no time"),
        ({"derivedFrom": "somewhere"}, "was not written by this project"),
    ],
)
def test_a_checkpoint_row_that_somebody_spoiled_is_named(
    bench: Bench, spoiled: dict[str, str], named: str
) -> None:
    base = just_now() - HOUR
    contract = bench.contract(bench.source(base), base)
    bench.commit(contract, base, base + 5 * MINUTE)
    subject = bench.subject(contract)
    assert mirror_checkpoints(bench.ledger, bench.harper, contract) is None
    assert check_progress(subject).metadata["diagnosis"] == []
    row = {"id": f"{contract.id}|s01", **spoiled}
    bench.harper.upsert(CHECKPOINTS.name, [row])
    (note,) = check_progress(subject).metadata["diagnosis"]
    assert f"{contract.id}|s01" in note
    assert named in note
