"""The deadline of a lease, as the ledger tells it to the owner."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine, event

from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets_tests.ledger.sample import TTL


class _WorkingClock:
    """Stands still but for one second per statement sent to a database."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    @contextmanager
    def running(self) -> Iterator[None]:
        def tick(*statement: object) -> None:
            self.now += 1

        event.listen(Engine, "before_cursor_execute", tick)
        yield
        event.remove(Engine, "before_cursor_execute", tick)


def test_a_deadline_counts_from_when_the_call_was_sent(ledger_url: str, table: LedgerRoute) -> None:
    clock = _WorkingClock()
    with open_ledger(ledger_url, monotonic=clock) as ledger, clock.running():
        sent = clock.now
        leases = ledger.acquire(table, [0, 1], "ann", TTL)
        assert clock.now > sent
        assert leases.deadline == sent + 600
        sent = clock.now
        assert ledger.renew(leases, TTL).deadline == sent + 600
