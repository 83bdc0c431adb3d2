"""Programs that stop at a chosen point and wait to be killed: `python -m ...crash URL POINT`."""

import sys
import time

from sqlalchemy import Engine, event

from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets_tests.ledger.sample import FACTS, TTL, T, cell, commit_cell, copy, result


def _wait_for_death(*statement: object) -> None:
    print("ready", flush=True)
    time.sleep(600)


def main(url: str, point: str) -> None:
    """Plans a cell and commits it, but for what `point` keeps it from."""
    ledger = open_ledger(url)
    table = ledger.find_route(FACTS.name)
    assert table is not None
    leases = ledger.acquire(table, [0], "doomed", TTL)
    if point == "inside plan":
        event.listen(Engine, "commit", _wait_for_death)
    (batch,) = ledger.plan(leases, T, 1, [copy(cell())], "run-doomed")
    if point == "after plan":
        _wait_for_death()
    if point == "inside commit":
        event.listen(Engine, "commit", _wait_for_death)
    commit_cell(ledger, leases, batch, result())


if __name__ == "__main__":
    main(*sys.argv[1:])
