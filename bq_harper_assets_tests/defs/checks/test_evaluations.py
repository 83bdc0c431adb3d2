"""Check results name what they looked at, and it is said how far their writing is."""

from dagster import AssetKey, AssetMaterialization, DagsterInstance

from bq_harper_assets.defs.checks.evaluations import SAY_EVERY_S, Telling, newest_materialisations

KEY = AssetKey(["harper", "Ships"])


def test_a_long_filing_is_told_every_few_seconds_and_a_short_one_not_at_all() -> None:
    at = 0.0
    said: list[str] = []
    telling = Telling(said.append, lambda: at)
    for number in range(1, 31):
        telling.tell(f"writing check results, {number} of 30")
        at += SAY_EVERY_S / 10
    assert said == ["writing check results, 11 of 30", "writing check results, 21 of 30"]


def test_each_of_more_than_a_hundred_partitions_has_its_newest_materialisation() -> None:
    partitions = [f"2026-11-16T{number:03}" for number in range(101)]
    with DagsterInstance.ephemeral() as instance:
        for partition in (partitions[0], *partitions, "another"):
            instance.report_runless_asset_event(AssetMaterialization(KEY, partition=partition))
        found = newest_materialisations(instance, KEY, [*partitions, "never materialised"])
        assert newest_materialisations(instance, KEY, ["never materialised"]) == {}
    assert sorted(found) == partitions
    numbers = [found[partition].storage_id for partition in partitions]
    assert numbers == list(range(numbers[0], numbers[0] + 101))  # not that of the first event
