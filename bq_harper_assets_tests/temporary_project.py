"""A project in a folder of its own: config, ledger and Dagster; only the servers are shared."""

import json
import shutil
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bq_harper_assets.contract.project import Project, load_project
from bq_harper_assets.contract.settings.addresses import StackAddresses, write_addresses
from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets.stores.bigquery.table_ref import TableRef

HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class TemporaryProject:
    """Nothing of it is shared with another test but the servers."""

    root: Path

    @classmethod
    def at(cls, root: Path, like: Path, addresses: StackAddresses | None) -> "TemporaryProject":
        """With the profiles and Dagster settings of the project it is like."""
        shutil.copytree(like / "config" / "profiles", root / "config" / "profiles")
        shutil.copy(like / "dagster.yaml", root / "dagster.yaml")
        local_folder(root).mkdir()
        if addresses:
            write_addresses(local_folder(root), addresses)
        return cls(root)

    def declare(self, *tables: dict[str, Any], **bigquery: Any) -> Project:
        """These contracts and no others."""
        text = json.dumps({"bigquery": {**bigquery, "tables": tables}})  # JSON is YAML too
        (self.root / "config" / "tables.yaml").write_text(text, encoding="utf-8")
        return load_project(self.root)


def table(source: TableRef, start: datetime, **declared: Any) -> dict[str, Any]:
    """A contract of one hour windows and two slices, into a table of its own; None leaves out."""
    name = f"T{uuid.uuid4().hex[:12]}"
    known = {
        "id": name.lower(),
        "dataset": source.dataset,
        "table": source.table,
        "timestampColumn": "ts",
        "targetTable": name,
        "slices": 2,
        "sync": {"startTimestamp": f"{start:%FT%TZ}"},
    }
    return {name: value for name, value in (known | declared).items() if value is not None}


def hours_ago(count: int) -> datetime:
    """The start of an hour."""
    return datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - count * HOUR


def numbered_rows(start: datetime, rows: int = 40, minutes: int = 3) -> str:
    """A query: `number` counts the rows, which follow each other by so many minutes."""
    return (
        f"SELECT TIMESTAMP_ADD(TIMESTAMP '{start:%F %T}+00', INTERVAL n * {minutes} MINUTE) AS ts,"
        f" n AS number FROM UNNEST(GENERATE_ARRAY(0, {rows - 1})) AS n"
    )
