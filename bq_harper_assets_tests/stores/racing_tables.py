"""What several processes do to one Harper table at the same moment."""

import sys
from datetime import timedelta
from pathlib import Path

from pydantic import SecretStr

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.ledger.records import TableFacts
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.schema.table_plan import TablePlan, plan_table
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.ensure_table import ensure_table
from bq_harper_assets_tests.schema.samples import contract, schema


def plan_with(table: str, *names: str) -> TablePlan:
    """A plan with an indexed column of each name beside the timestamp."""
    columns = [Column(name, Kind.INT64) for name in names]
    return plan_table(contract(target_table=table), schema(*columns))


def main(url: str, password_file: str, table: str, ledger_url: str) -> None:
    """Says that it is ready; for each line of column names it prints what ensure_table did."""
    password = SecretStr(Path(password_file).read_text(encoding="ascii"))
    connection = HarperConnection(url=url, user="admin", password=password)
    facts = TableFacts(table.lower(), "s", table, "event_time", (), timedelta(hours=1), 1)
    with HarperClient(connection) as client, open_ledger(ledger_url) as ledger:
        known = ledger.register_table(facts)
        client.user_info()  # the connection is open before the start
        print("ready", flush=True)
        for line in sys.stdin:
            plan = plan_with(table, *line.split())
            ensured = ensure_table(client, plan, alone=lambda: ledger.alone(known))
            print(ensured.action, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
