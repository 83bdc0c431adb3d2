"""Asks the ledger something for someone who cannot wait, and who can do without the answer."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from pydantic import SecretStr

from bq_harper_assets.ledger.errors import LedgerUnavailable
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.store.read_only import ReadOnlyDatabase

_Answer = TypeVar("_Answer")


def ask_briefly(
    url: SecretStr, question: Callable[[Ledger], _Answer], within_s: float
) -> _Answer | None:
    """Gives the answer, or None if no ledger was made there yet; nothing is made or migrated.

    A ledger that does not answer in time, or whose layout lacks what is asked, raises LedgerError.
    """
    database = ReadOnlyDatabase(url, within_s)
    if not database.is_there:
        return None
    answers: list[_Answer] = []
    errors: list[Exception] = []

    def ask() -> None:
        try:
            answers.append(question(Ledger(database, time.monotonic)))
        except Exception as error:  # told to whoever asks, if that one still waits
            errors.append(error)
        finally:
            database.close()

    # No driver limits all of it: the look-up of a name, each address, a server that is frozen.
    asking = threading.Thread(target=ask, name="brief question to the ledger", daemon=True)
    asking.start()
    asking.join(within_s)
    if errors:
        raise errors[0]
    if not answers:
        raise LedgerUnavailable(database.address, f"it has not answered within {within_s:g} s")
    return answers[0]
