"""The ledger on a disk that is full or cannot be written: a sentence, and nothing half done."""

import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from bq_harper_assets.ledger.errors import LedgerNotWritable
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets_tests.ledger.sample import FACTS
from bq_harper_assets_tests.small_disks import fill, full_disk, read_only


def test_a_ledger_that_fills_its_disk_says_so_and_keeps_what_it_has(tmp_path: Path) -> None:
    with full_disk(tmp_path / "disk", "1m") as disk:
        url = f"sqlite:///{disk / 'ledger.db'}"
        with open_ledger(url) as ledger:
            table = ledger.register_route(FACTS)
            fill(disk)

            def write_on() -> None:
                for number in range(200):
                    ledger.acquire(table, [0], f"run {number}", timedelta(0))

            with pytest.raises(LedgerNotWritable) as told:
                write_on()
            assert "is on a disk that is full" in str(told.value)
            assert "What it holds is safe" in str(told.value)
            assert str(told.value).endswith("Free some space, then type the same command again")
            (disk / "filler").unlink()
            ledger.acquire(table, [1], "after", timedelta(seconds=60))
        with open_ledger(url) as again:
            assert again.find_route(table.name) == table


def test_a_first_ledger_on_a_full_disk_is_refused_in_words(tmp_path: Path) -> None:
    with full_disk(tmp_path / "disk", "64k") as disk:
        fill(disk)
        with (
            pytest.raises(LedgerNotWritable, match="is on a disk that is full"),
            open_ledger(f"sqlite:///{disk / 'ledger.db'}") as ledger,
        ):
            ledger.now()


def test_a_ledger_that_cannot_even_be_read_because_its_disk_is_full_says_so(tmp_path: Path) -> None:
    with full_disk(tmp_path / "disk", "1m") as disk:
        url = f"sqlite:///{disk / 'ledger.db'}"
        with open_ledger(url) as ledger:
            table = ledger.register_route(FACTS)
        fill(disk)
        with (
            pytest.raises(LedgerNotWritable, match="is on a disk that is full: disk I/O error"),
            open_ledger(url) as ledger,
        ):
            ledger.find_route(table.name)
        (disk / "filler").unlink()
        with open_ledger(url) as again:
            assert again.find_route(table.name) == table


@pytest.mark.parametrize("is_there", [True, False])
def test_a_folder_that_cannot_be_written_is_told_in_words(tmp_path: Path, is_there: bool) -> None:
    folder = tmp_path / "folder"
    url = f"sqlite:///{folder / 'more' / 'ledger.db'}"
    if is_there:
        with open_ledger(url) as ledger:
            ledger.register_route(FACTS)
    with (
        read_only(folder),
        pytest.raises(LedgerNotWritable, match=r"cannot be written: .*Make it writable"),
        open_ledger(url) as ledger,
    ):
        ledger.register_route(FACTS)
    assert subprocess.run(["findmnt", str(folder)], capture_output=True).returncode
