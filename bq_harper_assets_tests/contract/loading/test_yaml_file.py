"""YAML as it is read here: lines, variables, and files that are no YAML at all."""

from pathlib import Path

import pytest

from bq_harper_assets.contract.loading.config_entry import ConfigEntry
from bq_harper_assets.contract.loading.problems import Problem
from bq_harper_assets.contract.loading.variables import Variables
from bq_harper_assets.contract.loading.yaml_file import read_yaml
from bq_harper_assets_tests.contract.conftest import Disk


def read(
    folder: Path, content: str | bytes, **variables: str
) -> tuple[ConfigEntry | None, list[Problem]]:
    file = folder / "a.yaml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    problems: list[Problem] = []
    return read_yaml(file, "a.yaml", Variables(variables, {}), problems), problems


def value(folder: Path, text: str, **variables: str) -> object:
    entry, problems = read(folder, text, **variables)
    assert problems == []
    assert entry is not None
    return entry.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no", "no"),
        ("on", "on"),
        ("1:30", "1:30"),
        ("0x1f", "0x1f"),
        ("'5'", "5"),
        ("!!str 5", "5"),
        ("0123", "0123"),
        ("-5", "-5"),
        ("1.50", "1.50"),
        ("true", "true"),
        ("=", "="),
        ("2026-01-01", "2026-01-01"),
        ("", None),
        ("~", None),
        ("null", None),
        ("99999999999999999999999", "99999999999999999999999"),
    ],
)
def test_every_scalar_is_the_text_that_is_written(
    text: str, expected: object, tmp_path: Path
) -> None:
    assert value(tmp_path, f"a: {text}") == {"a": expected}


def test_anchors_and_merges_work(tmp_path: Path) -> None:
    text = "x: &x {a: 1, b: 2}\ny: {<<: *x, b: 3}\nz: {<<: [*x, {c: 4}]}\n"
    assert value(tmp_path, text) == {
        "x": {"a": "1", "b": "2"},
        "y": {"a": "1", "b": "3"},
        "z": {"a": "1", "b": "2", "c": "4"},
    }


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("a: 1\na: 2", "is written twice, first in line 1"),
        ("- a", "must hold keys at its top, such as bigquery:"),
        ("text", "must hold keys"),
        ("a: [", "is not YAML"),
        ("a: 1\n---\nb: 2", "holds a second document"),
        ("a: \x01", "control character U+0001"),
        (b"a: \xff", "is not UTF-8 text"),
        ("a: &a [*a]", "refers to itself"),
        ("? [a]\n: b", "a key must be plain text"),
        ("a: {<<: 5}", "must name a mapping"),
        ("a: " + "[" * 1500, "nested too deeply"),
        ("a: " + "[" * 400 + "]" * 400, "nested too deeply"),
        ("a: " + "{a: " * 200 + "1" + "}" * 200, "nested too deeply"),
        ("a: !!python/object/apply:os.system ['true']\nb: 1", "which YAML reads as a tag"),
        ("a: &a 1\nb: &a 2", "is defined twice; give each its own name"),
        ("a: !secret b", "which YAML reads as a tag"),
        ("a: !ENV {b: c}", "which YAML reads as a tag"),
        ("a: !!int x", "which YAML reads as a tag"),
        ("~: a", "a key must be plain text"),
        ('a: "\\ud800"', "is no character: take it out"),
        (
            "b: &b [1,1,1,1,1,1,1,1,1,1]\n"
            + "".join(
                f"{c}: &{c} [{','.join(['*' + p] * 10)}]\n"
                for p, c in zip("bcdefg", "cdefgh", strict=True)
            ),
            "its aliases multiply",
        ),
    ],
)
def test_what_is_no_plain_yaml_is_told_and_never_runs(
    content: str | bytes, told: str, tmp_path: Path
) -> None:
    _, problems = read(tmp_path, content)
    assert [told in problem.message for problem in problems] == [True]


def test_empty_files_and_a_byte_order_mark_are_fine(tmp_path: Path) -> None:
    assert value(tmp_path, "") == {}
    assert value(tmp_path, "# nothing\n") == {}
    assert value(tmp_path, "\ufeffa: 1") == {"a": "1"}


def test_both_endings_are_read_and_other_files_are_not(disk: Disk) -> None:
    table = "tables: [{{id: {0}, dataset: d, table: {0}, timestampColumn: t, targetTable: {0}}}]"
    disk.write("config/a.yaml", table.format("one"))
    disk.write("config/b.yml", table.format("two"))
    disk.write("config/examples/c.yaml", table.format("three"))
    disk.write("config/d.txt", table.format("four"))
    assert [contract.id for contract in disk.load().tables] == ["one", "two"]


def test_what_an_editor_leaves_beside_a_file_is_not_read(disk: Disk) -> None:
    disk.tables("")
    (disk.root / "config/.#tables.yaml").symlink_to("somebody@host.1")
    (disk.root / "config/._tables.yaml").write_bytes(b"\x00\x05\x16\x07\xff")
    assert disk.load().tables == ()


def test_a_value_that_is_told_already_is_told_once(disk: Disk) -> None:
    assert disk.tables("tables:\n  - ${NOPE}\n").refusal().startswith("1 problem ")


@pytest.mark.parametrize(
    "text",
    [
        "bigquery: ${NOPE}\n",
        "tables: ${NOPE}\n",
        "sync: ${NOPE}\n",
        "bigquery:\n  projectId: p\n  tables: ${NOPE}\n",
        "bigquery:\n  projectId: p\n  sync: ${NOPE}\n",
        "bigquery:\n  dataset: ${NOPE}\n  table: orders\n  timestampColumn: at\n",
    ],
)
def test_a_block_whose_variable_is_not_set_is_told_once(disk: Disk, text: str) -> None:
    said = disk.tables(text).refusal()
    assert said.startswith("1 problem ")
    assert "the variable NOPE is not set" in said


def test_a_second_merge_key_in_a_block_is_told_as_every_key_that_is_written_twice(
    disk: Disk,
) -> None:
    said = disk.tables(
        "bigquery:\n"
        "  projectId: p\n"
        "  tables:\n"
        "    - &one {id: orders, dataset: shop, table: orders, timestampColumn: at,"
        " targetTable: Orders}\n"
        "    - <<: *one\n"
        "      <<: *one\n"
        "      id: others\n"
        "      table: others\n"
        "      targetTable: Others\n"
    ).refusal()
    assert "is written twice, first in line 5: keep one" in said
    assert said.startswith("1 problem ")
