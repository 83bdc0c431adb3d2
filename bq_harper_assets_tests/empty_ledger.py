"""A ledger without tables is copied: making one for each test takes longer than many tests."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from bq_harper_assets.ledger.ledger import open_ledger


def empty_ledger(file: Path) -> str:
    """Writes the file of a ledger that was opened once, and returns its URL."""
    file.write_bytes(_opened_once())
    return f"sqlite:///{file}"


@cache
def _opened_once() -> bytes:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "ledger.db"
        open_ledger(f"sqlite:///{file}").close()
        return file.read_bytes()
