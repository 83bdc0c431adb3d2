"""How long each part of a run takes, by the clock of its driver."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.stores.bigquery.source import Pinned
from bq_harper_assets.sync.turn import turn, writing

MOVE, WHOLE = "Spark job", "whole run"
Parts = dict[str, tuple[Any, str]]  # by name: whose, and which function

# Where a run spends its time.
PARTS: Parts = {
    "fingerprint query": (Pinned, "fingerprints"),
    "ledger: plan": (Ledger, "plan"),
    MOVE: (writing, "write_all"),
    "judge": (turn, "judge_cells"),
    "ledger: commit": (Ledger, "commit_cells"),
    WHOLE: (turn.Turn, "sync"),
}


@contextmanager
def timed(spent: dict[str, float], parts: Parts = PARTS) -> Iterator[None]:
    """Adds up the seconds of each part."""
    whole = {name: getattr(owner, attribute) for name, (owner, attribute) in parts.items()}

    def timing(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                spent[name] = spent.get(name, 0.0) + time.perf_counter() - began

        return call

    for name, (owner, attribute) in parts.items():
        setattr(owner, attribute, timing(name, whole[name]))
    yield
    for name, (owner, attribute) in parts.items():
        setattr(owner, attribute, whole[name])
