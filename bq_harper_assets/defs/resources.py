"""Runs get what they need from the project; no secret is in Dagster's config, which is shown."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from dagster import ConfigurableResource, EnvVar, InitResourceContext, ResourceDefinition
from dagster_pyspark import LazyPySparkResource
from pydantic import PrivateAttr, SecretStr

from bq_harper_assets.activity import doing
from bq_harper_assets.contract.loading.problems import ConfigError
from bq_harper_assets.contract.project import Project
from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.local.java import java_home
from bq_harper_assets.routes.bigquery_to_harper import BigQueryToHarper, Stores
from bq_harper_assets.stores.bigquery.resource import BigQueryConnectionResource
from bq_harper_assets.stores.harper.resource import HarperResource
from bq_harper_assets.sync.spark.session import session
from bq_harper_assets.sync.spark.task_waits import FOLDER_SETTING

# A worker that dies is replaced; Spark's local mode tries a task only once unless told.
LOCAL_TRIES = 4
SPARK_DEFAULTS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",  # receipts are small
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",  # a port per run that nobody asked for
    "spark.sql.execution.arrow.maxRecordsPerBatch": "0",
}


class LedgerResource(ConfigurableResource[Ledger]):
    """This resource opens the ledger of the profile."""

    place: str  # without its password

    _url: SecretStr = PrivateAttr(default=SecretStr(""))

    @contextmanager
    def open(self) -> Iterator[Ledger]:
        """Opens the ledger, and closes it at the end of the block."""
        with open_ledger(LEDGER_URLS[self.place]) as ledger:
            yield ledger


# Dagster makes resources anew from their config alone, so the URL with its password waits here.
LEDGER_URLS: dict[str, SecretStr] = {}


class SparkResource(LazyPySparkResource):
    """This makes a session when it is first asked for, and anew once its Java process is gone."""

    root: str  # of the project
    log: str  # what Java and Spark say for themselves

    def _init_session(self) -> None:
        with doing("starting Spark"):
            prepare_spark(Path(self.root))
            self._spark_session = session(self.spark_config, Path(self.log))


@dataclass(frozen=True)
class BigQueryToHarperResource:
    """This is all that a run needs to move, compare or prove rows from BigQuery to Harper.

    A route between other stores brings a resource of its own. Dagster makes it of the resources
    that are configured and shown by their own names, so that it has no configuration.
    """

    bigquery: BigQueryConnectionResource
    harper: HarperResource
    ledger: LedgerResource
    spark: SparkResource

    def route(self, ledger: Ledger, contract: TableContract) -> BigQueryToHarper:
        """Gives a contract's route for a turn or a proof, with the ledger that is open for it."""
        stores = Stores(self.bigquery.connection(), self.harper.connection(), ledger)
        return BigQueryToHarper(stores, contract)

    @classmethod
    def of(cls, context: InitResourceContext) -> "BigQueryToHarperResource":
        """Takes the resources of these names as they are, and not the clients that some open."""
        made: Mapping[str, Any] = context.resources.original_resource_dict
        return cls(**{each.name: made[each.name] for each in fields(cls)})


def build_resources(project: Project) -> dict[str, Any]:
    """Builds all resources, by the names that assets ask for."""
    return {
        "bigquery": _bigquery(project),
        "harper": _harper(project),
        "ledger": _ledger(project),
        "spark": _spark(project),
        "bigquery_to_harper": ResourceDefinition(
            BigQueryToHarperResource.of,
            description="All that a run needs to move, compare or prove rows.",
            required_resource_keys={each.name for each in fields(BigQueryToHarperResource)},
        ),
    }


def _harper(project: Project) -> HarperResource:
    try:
        return HarperResource.from_connection(project.harper)
    except ConfigError:
        # The stack is not up yet: a run then says which variable is missing.
        return HarperResource(
            url=EnvVar("OPERATIONSAPI_URL"),
            user=EnvVar("OPERATIONSAPI_USER"),
            password=EnvVar("OPERATIONSAPI_PASS"),
        )


def _bigquery(project: Project) -> BigQueryConnectionResource:
    try:
        return BigQueryConnectionResource.from_connection(project.bigquery)
    except ConfigError:
        return BigQueryConnectionResource(project=EnvVar("GOOGLE_CLOUD_PROJECT"))


def _ledger(project: Project) -> LedgerResource:
    url = project.ledger.url
    place = url.get_secret_value().rpartition("@")[2]
    LEDGER_URLS[place] = url
    return LedgerResource(place=place)


def _spark(project: Project) -> SparkResource:
    log = local_folder(project.root) / "spark.log"
    return SparkResource(spark_config=spark_config(project), root=str(project.root), log=str(log))


def start_spark(project: Project) -> None:
    """Starts, or finds, the session that all runs of this process share."""
    _ = _spark(project).spark_session


def spark_config(project: Project) -> dict[str, str]:
    """Gives Spark's settings: the defaults first, so that a profile can change each of them."""
    settings = {name: value.get_secret_value() for name, value in project.spark.settings.items()}
    secrets = {FOLDER_SETTING: str(local_folder(project.root) / "task-secrets")}
    if project.spark.remote:
        return {"spark.remote": project.spark.remote, **secrets, **settings}
    master = project.spark.master or "local[*]"
    if master.startswith("local[") and "," not in master:
        master = master.replace("]", f",{LOCAL_TRIES}]")
    return {"spark.master": master, **SPARK_DEFAULTS, **secrets, **settings}


def prepare_spark(root: Path) -> None:
    """Puts into the environment what Spark finds there: Java, and the Python of its workers."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")
    os.environ["JAVA_HOME"] = str(java_home(root, os.environ))
