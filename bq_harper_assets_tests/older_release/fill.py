"""Fills a ledger and a Harper with an older release, and keeps what they hold as test data.

It knows the release by its commands only, so it can be run with any. The test data are those of
the commit before 5a6cd7d, and were made so:

    git worktree add --detach ../before 5a6cd7d~1
    cd ../before && make setup
    .venv/bin/python ../main/bq_harper_assets_tests/older_release/fill.py

It starts a local stack of its own on free ports, and ends it. What is written to `data/`:

    tables.json   the configuration
    source.sql    the statements that make the source's rows, in their order
    ledger.sql    the ledger, as SQLite's text
    harper.json   Harper's tables with all their rows, those of the sync too

All names end in TOKEN, which whoever loads the data replaces. All rows are of one morning; the day
of the syncs is set back to a few days later, so that to every test they were made long ago.
"""

import base64
import json
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
TOKEN = "filled000000"
DATASET = "older_release"
SHIPS, REPORTS, PORTS = (f"{name}_{TOKEN}" for name in ("ships", "reports", "ports"))
SYSTEM_TABLES = ("SyncCheckpoint", "SyncAudit", "SchemaMetadata", "SchemaLock", "SyncLease")
ONE, TWO, THREE = ("2026-01-05T01:00", "2026-01-05T02:00", "2026-01-05T03:00")
SYNCED_ON = datetime(2026, 1, 12, tzinfo=UTC)

START = {"sync": {"startTimestamp": "2026-01-05T00:00:00Z"}}
TABLES: list[dict[str, Any]] = [
    {
        "id": name,
        "dataset": DATASET,
        "table": name,
        "timestampColumn": "ts",
        "targetTable": name.capitalize(),
        "slices": 2,
        **more,
    }
    for name, more in (
        (SHIPS, {"key": ["number"], **START}),
        (REPORTS, {}),  # its first window is found in BigQuery
        (
            PORTS,
            {
                "key": ["code"],
                "schemaOverrides": {"address": {"policy": "approve"}},
                **START,
            },
        ),
    )
]

AT = "TIMESTAMP_ADD(TIMESTAMP '2026-01-05 00:00:00+00', INTERVAL n * {} MINUTE)"
MAKE_SHIPS = f"""
CREATE TABLE {DATASET}.{SHIPS} AS
SELECT
  n AS number,
  {AT.format(6)} AS ts,
  CONCAT('Büsum ', CAST(n AS STRING)) AS name,
  IF(n = 7, CAST('NaN' AS FLOAT64), n / 4) AS speed,
  CAST(n AS NUMERIC) + NUMERIC '0.000000001' AS draught,
  BIGNUMERIC '1234567890.5' + n AS cargo,
  MOD(n, 3) = 0 AS moored,
  DATE_ADD(DATE '1999-12-30', INTERVAL n DAY) AS built,
  DATETIME '2026-01-05 06:07:08.000009' AS docked,
  TIME '23:59:59.000001' AS watch,
  CAST(CONCAT('a', CAST(n AS STRING)) AS BYTES) AS flag,
  JSON '{{"b": [1, 2.5, null], "a": "x"}}' AS notes,
  IF(MOD(n, 5) = 0, NULL, STRUCT(n / 7 AS lat, -n / 7 AS lon, ['north', 'east'] AS names)) AS home,
  [n, n + 1] AS crew
FROM UNNEST(GENERATE_ARRAY(0, 29)) AS n
"""
MAKE_REPORTS = f"""
CREATE TABLE {DATASET}.{REPORTS} AS
SELECT
  {AT.format(10)} AS ts,
  CONCAT('sender ', CAST(MOD(n, 3) AS STRING)) AS sender,
  IF(MOD(n, 2) = 0, NULL, 'all well') AS text,
  n / 3 AS value,
  [STRUCT('Hull' AS port, n AS days), STRUCT('Bergen' AS port, NULL AS days)] AS stops
FROM UNNEST(GENERATE_ARRAY(0, 17)) AS n, UNNEST(GENERATE_ARRAY(0, MOD(n, 3))) AS equal_rows
"""
MAKE_PORTS = f"""
CREATE TABLE {DATASET}.{PORTS} AS
SELECT
  CONCAT('P', CAST(n AS STRING)) AS code,
  {AT.format(15)} AS ts,
  CAST(n * 2 AS STRING) AS depth,
  n AS berths,
  CONCAT('harbour ', CAST(n AS STRING)) AS harbour,
  STRUCT(CAST(1000 + n AS STRING) AS zip, 'Quay' AS street) AS address
FROM UNNEST(GENERATE_ARRAY(0, 11)) AS n
"""
CHANGE_PORTS = f"""
CREATE OR REPLACE TABLE {DATASET}.{PORTS} AS
SELECT
  code, ts, CAST(depth AS INT64) AS depth, berths,
  STRUCT(address.zip AS zip, address.street AS street, 'Wick' AS city) AS address,
  IF(ts < TIMESTAMP '2026-01-05 02:00:00+00', NULL, CONCAT('pilot ', code)) AS pilots
FROM {DATASET}.{PORTS}
"""
# From the first window to the third.
MOVE_A_SHIP = f"""
UPDATE {DATASET}.{SHIPS} SET ts = TIMESTAMP '2026-01-05 02:59:00+00' WHERE number = 5
"""


class Filling:
    """A project of its own, and what is done with it."""

    def __init__(self, release: Path, root: Path) -> None:
        self.release, self.root, self.local = release, root, root / ".local"
        self.statements: list[str] = []
        shutil.copytree(release / "config" / "profiles", root / "config" / "profiles")
        shutil.copy(release / "dagster.yaml", root)
        shutil.copy(release / "workspace.yaml", root)
        text = json.dumps({"bigquery": {"tables": TABLES}})
        (root / "config" / "tables.yaml").write_text(text, encoding="utf-8")

    def bqh(self, *arguments: str, home: Path | None = None, codes: tuple[int, ...] = (0,)) -> None:
        """Types a command; it must end with one of these codes."""
        self._run("bqh", *arguments, home=home, codes=codes)

    def up(self) -> None:
        """Starts a stack whose files are the project's, with the release's own software."""
        ports = ("harper", "harper-rest", "bigquery", "bigquery-storage")
        with closing_all(socket.socket() for _ in ports) as taken:
            for each in taken:
                each.bind(("127.0.0.1", 0))
            free = [each.getsockname()[1] for each in taken]
        asked = [f"--{name}-port={number}" for name, number in zip(ports, free, strict=True)]
        self.bqh("up", f"--folder={self.local}", *asked, home=self.release)
        software = self.local / "software"
        if not software.exists():
            software.symlink_to(self.release / ".local" / "software")
        (self.local / "dagster").mkdir(exist_ok=True)
        shutil.copy(self.root / "dagster.yaml", self.local / "dagster")
        self.addresses = json.loads((self.local / "addresses.json").read_text(encoding="utf-8"))

    def down(self) -> None:
        """Ends it."""
        self.bqh("down", f"--folder={self.local}", home=self.release)

    def look_for_drift(self) -> None:
        """Lets the sensor look once; what it saw is left with its claim in the ledger."""
        is_due = json.dumps({"next_look": f"{SYNCED_ON:%F}T00:00:00Z"})
        preview = ("sensor", "preview", "schema_drift", "--cursor", is_due)
        self._run("dagster", *preview, "-m", "bq_harper_assets.definitions")

    def change(self, statement: str) -> None:
        """A statement to BigQuery."""
        from google.auth.credentials import AnonymousCredentials
        from google.cloud import bigquery

        client = bigquery.Client(
            self.addresses["bigquery_project"],
            AnonymousCredentials(),
            client_options={"api_endpoint": self.addresses["bigquery_url"]},
        )
        with closing(client):
            client.create_dataset(DATASET, exists_ok=True)
            client.query_and_wait(statement)
        self.statements.append(statement.strip())

    def harper(self, operation: str, **fields: Any) -> Any:
        """An operation of Harper."""
        password = Path(self.addresses["harper_password_file"]).read_text(encoding="ascii").strip()
        login = base64.b64encode(f"{self.addresses['harper_user']}:{password}".encode()).decode()
        request = urllib.request.Request(
            self.addresses["harper_url"],
            json.dumps({"operation": operation, **fields}).encode(),
            {"Content-Type": "application/json", "Authorization": f"Basic {login}"},
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def _run(
        self,
        program: str,
        *arguments: str,
        home: Path | None = None,
        codes: tuple[int, ...] = (0,),
    ) -> None:
        print("$", program, *arguments, flush=True)
        environ = os.environ | {
            "BQH_HOME": str(home or self.root),
            "DAGSTER_HOME": str(self.local / "dagster"),
        }
        command = [str(Path(sys.executable).with_name(program)), *arguments]
        ended = subprocess.run(command, env=environ, check=False).returncode
        if ended not in codes:
            raise SystemExit(f"{program} {' '.join(arguments)} ended with {ended}")


class closing_all:
    """Closes all of these at the end of the block."""

    def __init__(self, sockets: Iterator[socket.socket]) -> None:
        self._sockets = list(sockets)

    def __enter__(self) -> list[socket.socket]:
        return self._sockets

    def __exit__(self, *exc: object) -> None:
        for each in self._sockets:
            each.close()


def fill(filling: Filling) -> None:
    """The story that the tests go on with."""
    filling.change(MAKE_SHIPS)
    filling.change(MAKE_REPORTS)
    filling.change(MAKE_PORTS)
    # One ship has no speed that JSON can say, and is in quarantine.
    filling.bqh("sync", SHIPS, "--to", THREE)
    filling.bqh("sync", REPORTS, "--to", THREE)
    filling.bqh("sync", PORTS, "--to", TWO)
    filling.change(CHANGE_PORTS)
    filling.bqh("sync", PORTS, "--to", THREE, "--changed")
    filling.bqh("sync", PORTS, "--to", THREE, "--changed")  # old fingerprints are computed anew
    # The third window takes the ship from the first, which is marked dirty and left so.
    filling.change(MOVE_A_SHIP)
    filling.bqh("sync", SHIPS, "--from", TWO, "--to", THREE)
    filling.bqh("verify", REPORTS, "--deep", "--to", THREE)
    filling.look_for_drift()


def dump(filling: Filling) -> Iterator[tuple[str, str]]:
    """The name and the text of each file."""
    yield "tables.json", json.dumps(TABLES, indent=1) + "\n"
    yield "source.sql", "".join(f"{each};\n\n" for each in filling.statements)
    with closing(sqlite3.connect(filling.local / "ledger.db")) as ledger:
        yield "ledger.sql", "\n".join(ledger.iterdump()) + "\n"
    tables = [*(each["targetTable"] for each in TABLES), *SYSTEM_TABLES]
    held = {name: _table(filling, name) for name in tables}
    yield "harper.json", json.dumps(held, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _table(filling: Filling, name: str) -> dict[str, Any]:
    said = filling.harper("describe_table", database="data", table=name)
    key = said["hash_attribute"]
    rows = filling.harper(
        "search_by_value",
        database="data",
        table=name,
        attribute=key,
        value="*",
        get_attributes=["*"],
    )
    own = ("__createdtime__", "__updatedtime__")
    attributes = [
        {what: each[what] for what in ("attribute", "type", "indexed") if what in each}
        for each in said["attributes"]
        if each["attribute"] not in own
    ]
    rows = [{k: v for k, v in row.items() if k not in own} for row in rows]
    rows.sort(key=lambda row: str(row[key]))
    return {"primary_key": key, "attributes": attributes, "rows": rows}


def told_of_long_ago(text: str, today: datetime) -> str:
    """The same text with today's instants on the day SYNCED_ON, and without this host's name."""
    shift = today - SYNCED_ON
    micros = int(today.timestamp() * 1_000_000)

    def earlier(match: re.Match[str]) -> str:
        number = int(match[1])
        for unit in (1, 1_000, 1_000_000):  # microseconds, milliseconds, seconds
            if micros <= number * unit < micros + 86_400_000_000:
                return f"{number - shift // timedelta(microseconds=unit)}{match[2] or ''}"
        return match[0]

    text = text.replace(f"{today:%F}", f"{SYNCED_ON:%F}")
    host = rf"(?<![\w-]){re.escape(socket.gethostname())}(?![\w.])"
    text = re.sub(host, "older-host", text)
    return re.sub(r"(?<![\w.])(\d{10}|\d{13}|\d{16})(\.\d+)?(?![\w.])", earlier, text)


def main() -> None:
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    with tempfile.TemporaryDirectory() as folder:
        filling = Filling(Path.cwd(), Path(folder))
        filling.up()
        try:
            fill(filling)
            files = dict(dump(filling))
        finally:
            filling.down()
    if datetime.now(UTC) - today >= timedelta(days=1):
        raise SystemExit("midnight came in between: fill again")
    DATA.mkdir(exist_ok=True)
    for name, text in files.items():
        (DATA / name).write_text(told_of_long_ago(text, today), encoding="utf-8")
        print(f"{name}: {len(text.encode()):,} bytes")


if __name__ == "__main__":
    main()
