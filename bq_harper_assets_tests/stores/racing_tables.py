"""What several processes do to one Harper table at the same moment."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from pydantic import SecretStr

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.ledger.records import RouteFacts
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.schema.table_plan import TablePlan
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.stores.harper.table.ensure_table import ensure_table
from bq_harper_assets_tests.schema.samples import contract, schema


def plan_with(table: str, *names: str) -> TablePlan:
    """A plan with an indexed column of each name beside the timestamp."""
    columns = [Column(name=name, kind=Kind.INT64) for name in names]
    return harper_plan(contract(target_table=table), schema(*columns))


Racer = subprocess.Popen[str]
ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def racing(
    harper: StackAddresses, table: str, ledger_url: str, count: int
) -> Iterator[list[Racer]]:
    """Processes that all have a connection to the same Harper, and wait for their columns."""
    command = [
        sys.executable, "-m", "bq_harper_assets_tests.stores.racing_tables",
        harper.harper_url, str(harper.harper_password_file), table, ledger_url,
    ]  # fmt: skip
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    started = [
        subprocess.Popen(command, cwd=ROOT, text=True, encoding="utf-8", **pipes)
        for _ in range(count)
    ]
    try:
        assert [_line(racer) for racer in started] == ["ready"] * count, said_wrong(started)
        yield started
    finally:
        said_wrong(started)


def race(racers: list[Racer], columns: Callable[[int], Iterable[str]]) -> Counter[str]:
    """All at once, each with its columns; what they did, and "" for one that has failed."""
    for number, racer in enumerate(racers):
        assert racer.stdin is not None
        racer.stdin.write(f"{' '.join(columns(number))}\n")
        racer.stdin.flush()
    return Counter(_line(racer) for racer in racers)


def said_wrong(racers: list[Racer]) -> list[str]:
    """Ends them; the errors of each."""
    return [racer.communicate(timeout=90)[1] for racer in racers]


def _line(racer: Racer) -> str:
    assert racer.stdout is not None
    return racer.stdout.readline().strip()


def main(url: str, password_file: str, table: str, ledger_url: str) -> None:
    """Says that it is ready; for each line of column names it prints what ensure_table did."""
    password = SecretStr(Path(password_file).read_text(encoding="ascii"))
    connection = HarperConnection(url=url, user="admin", password=password)
    facts = RouteFacts(
        name=table.lower(),
        table=table.lower(),
        source="s",
        target=table,
        timestamp_column="event_time",
        key=(),
        window=timedelta(hours=1),
        slices=1,
    )
    with HarperClient(connection) as client, open_ledger(ledger_url) as ledger:
        known = ledger.register_route(facts)
        client.describe_all()  # the connection is open before the start
        print("ready", flush=True)
        for line in sys.stdin:
            plan = plan_with(table, *line.split())
            ensured = ensure_table(client, plan, alone=lambda: ledger.alone(known))
            print(ensured.action, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
