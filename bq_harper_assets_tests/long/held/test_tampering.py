"""Whatever is done to Harper's rows is named by the deep proof and mended, and nothing else is."""

import random
from datetime import timedelta
from typing import Any

import pytest

from bq_harper_assets_tests.cli.typed import told
from bq_harper_assets_tests.long.held.conftest import Sizes
from bq_harper_assets_tests.long.held.plain_http import Emulator, PlainHarper, differences
from bq_harper_assets_tests.long.held.ships import HOUR, Ships, values
from bq_harper_assets_tests.long.held.tampering import KINDS, Named, Tampered
from bq_harper_assets_tests.stores.small_tables import TableRef
from bq_harper_assets_tests.temporary_project import TemporaryProject, hours_ago, table

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
ROWS_PER_HOUR = 40


def named(proved: Any) -> Named:
    """What a proof says of single rows."""
    return {
        (each["kind"], each["id"], frozenset(each["columns"]))
        for cell in proved["cells"].values()
        for each in cell["differences"]
    }


@pytest.mark.promise("M12", "M13")
def test_each_kind_of_tampering_is_named_and_mended_without_a_false_alarm(
    project: TemporaryProject,
    spark: object,
    emulator: Emulator,
    plain_harper: PlainHarper,
    sizes: Sizes,
) -> None:
    hours, slices = sizes.of("TAMPER_HOURS", short=10, full=20), 8
    start = hours_ago(hours + 1)
    chance = random.Random(sizes.of("TAMPER_SEED", short=1, full=1))
    ships = Ships.made(emulator)
    ships.insert(
        [
            values(number, start + number * HOUR / ROWS_PER_HOUR + timedelta(seconds=1), chance)
            for number in range(hours * ROWS_PER_HOUR)
        ]
    )
    source = TableRef(emulator.project, "held", ships.name)
    declared = table(source, start, key=["number"], slices=slices)
    [contract] = project.declare(declared).tables
    span = ("--to", f"{start + hours * HOUR:%FT%H:%M}")
    told("sync", contract.id, *span)

    look = ("verify", contract.id, "--deep", "--show", *span)
    clean = told(*look)
    assert (len(clean["cells"]), named(clean)) == (hours * slices, set())
    stored = plain_harper.rows(contract.target.table)
    assert differences(emulator.rows(ships.sql), stored, "number") == []

    # Rows of all the values that are to be changed. None of the first window, which is emptied,
    # and none of the last, out of which one of them would be moved.
    inner = range(ROWS_PER_HOUR, (hours - 1) * ROWS_PER_HOUR)
    whole = [row for row in stored if row["number"] in inner and None not in row.values()]
    tampered = Tampered(plain_harper, contract.target.table)
    expected = tampered.empty([row for row in stored if row["number"] < ROWS_PER_HOUR])
    for kind, row in zip(KINDS, chance.sample(whole, len(KINDS)), strict=True):
        found = KINDS[kind](tampered, row)
        print(f"{kind}: {sorted(map(str, found))}")
        expected |= found
    found = told(*look, code=3)
    assert named(found) == expected
    wrong = [key for key, cell in found["cells"].items() if cell["status"] != "proved"]
    assert len(wrong) <= len(expected)
    assert all(found["cells"][key]["differences"] for key in wrong)

    told("repair", contract.id, "--deep", *span)
    assert named(told(*look)) == set()
    mended = plain_harper.rows(contract.target.table)
    assert differences(emulator.rows(ships.sql), mended, "number") == []
