"""The five words of progress, each after real runs of a source that goes on growing."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bq_harper_assets.sync.errors import TurnFailed
from bq_harper_assets.validation.progress.progress_check import check_progress
from bq_harper_assets.validation.subject import Subject
from bq_harper_assets.validation.verdict import ProgressStatus
from bq_harper_assets_tests.fault_proxy import Answer, FaultProxy
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.conftest import Sync
from bq_harper_assets_tests.validation.conftest import MINUTE, just_now

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
HOUR = timedelta(hours=1)


@pytest.mark.promise("M1", "M12")
def test_a_table_goes_through_all_five_words_as_its_runs_succeed_and_fail(
    sync: Sync, tables: SmallTables
) -> None:
    base = just_now()
    start = base - 3 * HOUR
    source = tables.make_from(
        f"SELECT n, TIMESTAMP_ADD(TIMESTAMP '{start:%F %T}+00', INTERVAL n * 3 MINUTE) AS ts"
        " FROM UNNEST(GENERATE_ARRAY(0, 59)) AS n"
    )
    declared = {"startTimestamp": f"{start:%FT%TZ}"}
    contract = sync.contract(source, window="5m", slices=1, sync=declared)
    subject = Subject(contract, tables.queries, sync.harper, sync.stores.ledger)
    assert check_progress(subject).status is ProgressStatus.NO_CHECKPOINT

    sync.run(contract, sync.cells(contract, start, base - 2 * HOUR))
    assert check_progress(subject).status is ProgressStatus.SEVERELY_LAGGING

    rest = sync.cells(contract, base - 2 * HOUR, base - 25 * MINUTE)
    sync.run(contract, rest)
    assert check_progress(subject).status is ProgressStatus.LAGGING

    newest = sync.cells(contract, base - 25 * MINUTE, base)
    with FaultProxy(sync.stores.harper.url) as proxy:
        proxy.on(Answer(403), operation="upsert", table=contract.target.table, times=999)
        spoilt = sync.stores.harper.model_copy(update={"url": proxy.url})
        broken = replace(sync, stores=replace(sync.stores, harper=spoilt))
        with pytest.raises(TurnFailed):
            broken.run(contract, newest)
    # Ten minutes without a commit, while BigQuery has had newer rows for longer.
    later = sync.stores.ledger.now() + 11 * MINUTE
    stalled = check_progress(subject, later)
    assert stalled.status is ProgressStatus.STALLED
    assert f"bqh sync {contract.id}" in stalled.message

    sync.run(contract, newest)
    assert check_progress(subject).status is ProgressStatus.HEALTHY
