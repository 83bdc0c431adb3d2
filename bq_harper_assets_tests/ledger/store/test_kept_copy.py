"""A copy of a SQLite ledger is kept beside it before its layout changes."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bq_harper_assets.ledger.errors import LedgerNotWritable
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.ledger.store.kept_copy import keep_copy
from bq_harper_assets_tests.ledger.sample import FACTS
from bq_harper_assets_tests.older_release.left_data import left_text, write_ledger
from bq_harper_assets_tests.small_disks import fill, full_disk


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """A ledger that an older release has written."""
    file = tmp_path / "ledger.db"
    write_ledger(file, left_text("ledger.sql"))
    return file


def _dump(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as opened:
        return list(opened.iterdump())


def _beside(file: Path) -> list[str]:
    found = (each.name for each in file.parent.iterdir() if each.is_file())
    return sorted(name for name in found if not name.endswith(("-wal", "-shm", ".db")))


@pytest.fixture
def unwritten(left: Path) -> Iterator[Path]:
    """The ledger, while its newest change is in the write-ahead log only."""
    with closing(sqlite3.connect(left)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("PRAGMA wal_autocheckpoint=0")
        writer.execute("UPDATE batches SET run_id = 'only in the log'")
        writer.commit()
        yield left


def test_the_copy_has_what_the_older_release_had_and_can_be_put_back(unwritten: Path) -> None:
    before = _dump(unwritten)
    with open_ledger(f"sqlite:///{unwritten}") as ledger:
        ledger.register_route(FACTS)
    assert _beside(unwritten) == ["ledger.db.v0008.bak"]
    kept = unwritten.with_name("ledger.db.v0008.bak")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert _dump(kept) == before
    assert any("only in the log" in line for line in before)
    back = unwritten.with_name("back.db")
    shutil.copy(kept, back)
    with open_ledger(f"sqlite:///{back}") as again:
        assert again.find_route(FACTS.name) is None
        assert again.routes() != ()


def test_a_new_ledger_and_one_of_this_layout_leave_no_copy(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    for _ in range(2):
        open_ledger(url).close()
    assert _beside(tmp_path / "ledger.db") == []


def test_an_earlier_copy_is_never_overwritten_and_the_same_is_kept_once(left: Path) -> None:
    first = keep_copy(left, "v0008", "here")
    text = _dump(first)
    assert keep_copy(left, "v0008", "here") == first
    with closing(sqlite3.connect(left)) as later:
        later.execute("UPDATE batches SET run_id = 'later'")
        later.commit()
    second = keep_copy(left, "v0008", "here")
    assert second.name == "ledger.db.v0008.2.bak"
    assert keep_copy(left, "v0008", "here") == second
    assert (_dump(first), _dump(second)) == (text, _dump(left))
    first.write_bytes(b"damaged")
    assert keep_copy(left, "v0008", "here") == second
    assert _beside(left) == ["ledger.db.v0008.2.bak", "ledger.db.v0008.bak"]


def test_a_copy_that_was_cut_off_is_begun_anew(left: Path) -> None:
    left.with_name("ledger.db.v0008.bak.partial").write_bytes(b"half")
    assert _dump(keep_copy(left, "v0008", "here")) == _dump(left)
    assert _beside(left) == ["ledger.db.v0008.bak"]


def test_without_room_for_the_copy_nothing_is_migrated(left: Path, tmp_path: Path) -> None:
    with full_disk(tmp_path / "disk", "1m") as disk:
        ledger = disk / "ledger.db"
        shutil.copy(left, ledger)
        with closing(sqlite3.connect(ledger)) as opened:
            opened.execute("PRAGMA journal_mode=WAL")
        fill(disk)
        with (disk / "filler").open("r+b") as filler:  # room for the files beside it, not for more
            filler.truncate(filler.seek(0, 2) - 100_000)
        before = _dump(ledger)
        with pytest.raises(LedgerNotWritable, match=r"is on a disk that is full.*no copy") as told:
            open_ledger(f"sqlite:///{ledger}")
        assert "Free some space, then type the same command again" in str(told.value)
        assert _dump(ledger) == before
        assert _beside(ledger) == ["filler"]
        (disk / "filler").unlink()
        open_ledger(f"sqlite:///{ledger}").close()
        assert _beside(ledger) == ["ledger.db.v0008.bak"]


def test_a_copy_that_cannot_be_written_is_told_as_such(left: Path) -> None:
    left.with_name("ledger.db.v0008.bak.partial").mkdir()  # which no file can replace
    with pytest.raises(LedgerNotWritable, match=r"cannot be written.*no copy could be kept"):
        keep_copy(left, "v0008", "here")


def test_a_copy_is_one_file_alone(unwritten: Path) -> None:
    kept = keep_copy(unwritten, "v0008", "here")
    with closing(sqlite3.connect(f"file:{kept}?mode=ro", uri=True)) as opened:
        [[mode]] = opened.execute("PRAGMA journal_mode")
    assert mode == "delete"
    assert [each.name for each in kept.parent.glob(f"{kept.name}-*")] == []
