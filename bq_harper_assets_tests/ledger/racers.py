"""What several processes do to one ledger at the same moment."""

import time
from datetime import timedelta

from bq_harper_assets.ledger.errors import LeaseHeld, LedgerError
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.ledger.verbs.claims import Claim
from bq_harper_assets_tests.ledger.sample import FACTS, TTL, T, cell, commit_cell, copy, result


def open_at(url: str, start: float) -> str:
    """Opens the ledger and registers a table; the ledger's identity."""
    wait(start)
    with open_ledger(url) as ledger:
        ledger.register_route(FACTS)
        return str(ledger.identity())


def acquire_at(url: str, start: float, owner: str, slices: list[int]) -> str:
    """Who holds the slices after the race, as this racer learns it."""
    with open_ledger(url) as ledger:
        table = ledger.register_route(FACTS)
        wait(start)
        try:
            ledger.acquire(table, slices, owner, TTL)
        except LeaseHeld as held:
            return str(held.holders[0].owner)
        return owner


def claim_at(url: str, start: float, owner: str) -> tuple[str, bool]:
    """Who has the claim after the race, as this racer learns it, and whether it is its own."""
    with open_ledger(url) as ledger:
        wait(start)
        found = ledger.claim("schema_check", owner, TTL)
        return str(found.owner), isinstance(found, Claim)


def take_turns(url: str, start: float, owner: str, rounds: int) -> list[tuple[int, int, str]]:
    """Moves the same cell again and again; (epoch, batch, mode) of each commit of this owner."""
    commits: list[tuple[int, int, str]] = []
    with open_ledger(url) as ledger:
        table = ledger.register_route(FACTS)
        wait(start)
        give_up = time.monotonic() + 60
        while len(commits) < rounds:
            assert time.monotonic() < give_up, "never got a turn"
            try:
                leases = ledger.acquire(table, [0, 1], owner, timedelta(seconds=30))
            except LeaseHeld:
                time.sleep(0.002)
                continue
            (batch,) = ledger.plan(leases, T, 1, [copy(cell())], owner)
            commit_cell(ledger, leases, batch, result(digest=owner))
            ledger.release(leases)
            commits.append((batch.epoch, batch.seq, batch.mode.value))
    return commits


def work_on_slice(url: str, start: float, slice: int, cells: int) -> str:
    """Moves cells of a slice of its own, one by one; what went wrong, if anything."""
    with open_ledger(url) as ledger:
        table = ledger.register_route(FACTS)
        wait(start)
        try:
            leases = ledger.acquire(table, [slice], f"owner {slice}", TTL)
            for hour in range(cells):
                (batch,) = ledger.plan(leases, T, 1, [copy(cell(hour, slice))], "run")
                commit_cell(ledger, leases, batch, result())
                leases = ledger.renew(leases, TTL)
            ledger.release(leases)
        except LedgerError as error:
            return str(error)
        return ""


def wait(start: float) -> None:
    """Until that time."""
    time.sleep(max(0.0, start - time.time()))
