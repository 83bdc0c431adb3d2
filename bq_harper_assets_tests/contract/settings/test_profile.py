"""A profile's own file: its defaults, and what is said of a wrong one."""

import pytest

from bq_harper_assets_tests.contract.conftest import Disk


def test_spark_and_ledger_have_defaults_for_one_machine(disk: Disk) -> None:
    project = disk.load()
    assert (project.spark.master, project.spark.remote) == ("local[*]", None)
    assert project.ledger.url.get_secret_value() == f"sqlite:///{disk.root}/.local/ledger.db"


def test_a_spark_is_named_once_and_its_settings_are_taken_as_written(disk: Disk) -> None:
    disk.write(
        "config/profiles/local.yaml",
        "spark:\n  remote: sc://host\n  settings: {spark.ui.enabled: false, spark.task.cpus: 2}\n",
    )
    project = disk.load()
    assert (project.spark.master, project.spark.remote) == (None, "sc://host")
    settings = {name: value.get_secret_value() for name, value in project.spark.settings.items()}
    assert settings == {"spark.ui.enabled": "false", "spark.task.cpus": "2"}
    disk.write("config/profiles/local.yaml", "spark: {master: 'local[2]', remote: 'sc://host'}")
    assert "spark.remote = sc://host\n    stands beside master" in disk.refusal()


@pytest.mark.parametrize(
    "text",
    [
        "ledger: {url: mysql://db}",
        "spark: {settings: {a: 1}}",
        "spark: {settings: {spark.a: [1]}}",
        "harper: 5",
        "bigquery: {project: 'a b'}",
        "bigquery: {location: 'U S'}",
        "bigquery: {storageEndpoint: 'localhost:9060'}",
        "bigquery: {endpoint: 'http://a', storageEndpoint: a}",
    ],
)
def test_what_is_wrong_in_a_profile_is_told_at_its_line(text: str, disk: Disk) -> None:
    disk.write("config/profiles/local.yaml", text)
    told = disk.refusal()
    assert told.startswith("1 problem ")
    assert "config/profiles/local.yaml:1: " in told


@pytest.mark.parametrize("name", ["../local", "a/b", ".", "a b"])
def test_a_profile_name_is_no_path(name: str, disk: Disk) -> None:
    assert "is not a profile name" in disk.refusal({"BQH_PROFILE": name})
