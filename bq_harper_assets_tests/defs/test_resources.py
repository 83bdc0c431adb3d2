"""What runs need, made when it is first asked for."""

import shutil
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.errors import DagsterInvalidConfigError
from dagster._core.remote_representation.external_data import RepositorySnap

from bq_harper_assets.activity import now_doing
from bq_harper_assets.contract.project import load_project
from bq_harper_assets.defs import resources
from bq_harper_assets.defs.resources import (
    BigQueryToHarperResource,
    SparkResource,
    build_resources,
)


def test_the_start_of_spark_is_what_a_terminal_shows(
    tmp_path: Path, project_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = []

    def session(settings: Any, log: Path) -> str:
        shown.append(str(now_doing()))
        return "a session"

    monkeypatch.setattr(resources, "session", session)
    spark = SparkResource(spark_config={}, root=str(project_root), log=str(tmp_path / "spark.log"))
    assert spark.spark_session == "a session"
    assert shown == ["starting Spark"]


CANARY = "canary-password-47"
ENVIRON = {
    "GOOGLE_CLOUD_PROJECT": "demo",
    "BIGQUERY_EMULATOR_HOST": "localhost:9050",
    "OPERATIONSAPI_URL": "http://localhost:9925",
    "OPERATIONSAPI_USER": "me",
    "OPERATIONSAPI_PASS": CANARY,
}


@dg.asset
def who(bigquery_to_harper: dg.ResourceParam[BigQueryToHarperResource]) -> tuple[str, str, str]:
    """What a step gets of its one resource, in all tries of Dagster to make it anew."""
    connection = bigquery_to_harper.harper.connection()
    assert connection.password
    with bigquery_to_harper.ledger.open() as ledger:
        return bigquery_to_harper.bigquery.project, connection.user, str(ledger.identity())


def declared(root: Path, like: Path, environ: dict[str, str]) -> dict[str, Any]:
    """The resources of a project with a ledger of its own."""
    shutil.copytree(like / "config", root / "config")
    return build_resources(load_project(root, environ=environ, profile="local"))


def test_a_step_names_one_resource_which_has_the_secrets_that_dagster_does_not_show(
    tmp_path: Path, project_root: Path
) -> None:
    of_project = declared(tmp_path, project_root, ENVIRON)
    with dg.DagsterInstance.ephemeral() as instance:
        done = dg.materialize([who], resources=of_project, instance=instance)
    assert done.output_for_node("who")[:2] == ("maritime-demo", "me")
    repository = dg.Definitions(assets=[who], resources=of_project).get_repository_def()
    shown = RepositorySnap.from_def(repository).resources
    assert shown is not None
    pages = {page.name: page for page in shown}
    for name in ("bigquery", "harper", "ledger", "spark"):
        assert pages[name].parent_resources == {"bigquery_to_harper": name}
        assert pages[name].resource_snapshot.description
    one = pages["bigquery_to_harper"]
    assert {name: each.name for name, each in one.nested_resources.items()} == {
        name: name for name in ("bigquery", "harper", "ledger", "spark")
    }
    assert [key.to_user_string() for key in one.asset_keys_using] == ["who"]
    assert CANARY not in repr(shown)


def test_resources_are_made_before_the_stack_is_up_and_name_what_they_miss(
    tmp_path: Path, project_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPERATIONSAPI_URL", raising=False)
    of_project = declared(tmp_path, project_root, {})
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "maritime-demo")
    missing = pytest.raises(DagsterInvalidConfigError, match="OPERATIONSAPI_URL")
    with dg.DagsterInstance.ephemeral() as instance, missing:
        dg.materialize([who], resources=of_project, instance=instance)


def test_a_sensor_names_it_too(tmp_path: Path, project_root: Path) -> None:
    @dg.sensor(job_name="none")
    def asks(
        context: dg.SensorEvaluationContext,
        bigquery_to_harper: dg.ResourceParam[BigQueryToHarperResource],
    ) -> dg.SkipReason:
        return dg.SkipReason(bigquery_to_harper.harper.connection().user)

    of_project = declared(tmp_path, project_root, ENVIRON)
    with dg.build_sensor_context(resources=of_project) as context:
        assert asks(context) == dg.SkipReason("me")
