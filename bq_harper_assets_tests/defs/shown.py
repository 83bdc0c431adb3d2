"""What the UI shows of a table's checks: asked with the UI's own GraphQL, answered in-process."""

import asyncio
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from dagster import DagsterInstance
from dagster._core.test_utils import in_process_test_workspace
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster_graphql.schema import create_schema

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.checks.evaluations import PER_PARTITION

CHECKS = """
query ($key: AssetKeyInput!) {
  assetNodeOrError(assetKey: $key) { ... on AssetNode { assetChecksOrError { ... on AssetChecks {
    checks {
      name
      blocking
      canExecuteIndividually
      partitionDefinition { type }
      executionForLatestMaterialization {
        status runId
        evaluation {
          success severity description partition
          metadataEntries {
            label
            ... on TextMetadataEntry { text }
            ... on IntMetadataEntry { intValue }
            ... on TableMetadataEntry { table { records } }
          }
        }
      }
      partitionStatuses { ... on AssetCheckMultiPartitionStatuses { ranges {
        primaryDimStartKey
        primaryDimEndKey
        secondaryDim { ... on AssetCheckDefaultPartitionStatuses {
          succeededPartitions failedPartitions inProgressPartitions
          skippedPartitions executionFailedPartitions
        } }
      } } }
    }
  } } } }
}
"""
WORDS = ("succeeded", "failed", "inProgress", "skipped", "executionFailed")


@dataclass(frozen=True)
class Shown:
    """A table's checks as the UI has them now."""

    checks: dict[str, dict[str, Any]]

    def listed(self, check: str) -> str:
        """The word in the list of checks and in the lineage, as the UI comes to it."""
        if self.checks[check]["partitionDefinition"] is not None:
            words = set(self.partitions(check).values())
            for word in ("failed", "executionFailed", "inProgress", "skipped", "succeeded"):
                if word in words:
                    return word
            return "not evaluated"
        current = self.current(check)
        return current["status"].lower() if current else "not evaluated"

    def partitions(self, check: str = PER_PARTITION) -> dict[str, str]:
        """The word at each partition; one that shows as missing is left out."""
        found = {}
        for each in self.checks[check]["partitionStatuses"]["ranges"]:
            # A range of windows whose slices are alike: tests ask for few, so hours are counted.
            for window in _hours(each["primaryDimStartKey"], each["primaryDimEndKey"]):
                for word in WORDS:
                    for part in each["secondaryDim"][f"{word}Partitions"]:
                        assert f"{window}|{part}" not in found
                        found[f"{window}|{part}"] = word
        return found

    def current(self, check: str) -> dict[str, Any] | None:
        """The result that counts for the newest materialisation."""
        execution: dict[str, Any] | None = self.checks[check]["executionForLatestMaterialization"]
        return execution

    def metadata(self, check: str) -> dict[str, Any]:
        """Of the current result: its texts, whole numbers and tables."""
        current = self.current(check)
        assert current
        found = {}
        for entry in current["evaluation"]["metadataEntries"]:
            values = [value for name, value in entry.items() if name != "label"]
            found[entry["label"]] = values[0] if values else None
        return found


def loadable(root: Path, first: str = "") -> Path:
    """A file from which Dagster's servers load the project, after these lines."""
    file = root / "loaded.py"
    file.write_text(
        f"{first}\n"
        "from pathlib import Path\n"
        "from bq_harper_assets.defs.build import build_definitions\n"
        f"defs = build_definitions(Path({str(root)!r}))\n",
        encoding="utf-8",
    )
    return file


def shown(root: Path, instance: DagsterInstance, contract: TableContract) -> Shown:
    """Of the project as it is declared now."""
    origin = LoadableTargetOrigin(python_file=str(loadable(root)), working_directory=str(root))
    variables = {"key": {"path": ["harper", contract.target.table]}}
    with warnings.catch_warnings():
        # Dagster reads properties of its own that it calls deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        with in_process_test_workspace(instance, origin) as workspace:
            asked = create_schema().execute_async(
                CHECKS, variable_values=variables, context_value=workspace
            )
            answer = asyncio.run(asked)
    assert answer.errors is None, answer.errors
    checks = answer.data["assetNodeOrError"]["assetChecksOrError"]["checks"]
    return Shown({each["name"]: each for each in checks})


def _hours(first: str, last: str) -> Iterator[str]:
    at = datetime.fromisoformat(first)
    while at <= datetime.fromisoformat(last):
        yield f"{at:%FT%H:%M}"
        at += timedelta(hours=1)
