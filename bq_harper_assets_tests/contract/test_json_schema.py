"""config/tables.schema.json says to editors what the loader says."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from bq_harper_assets.contract.json_schema import SCHEMA_FILE, schema_text, tables_schema
from bq_harper_assets.contract.loading.spelling import keys_of, to_snake
from bq_harper_assets.contract.table import Sync, TableContract
from bq_harper_assets_tests.contract.loading.test_problems import MISTAKES, sections
from bq_harper_assets_tests.contract.test_table import BAD, GOOD, GOOD_SYNC

ROOT = Path(__file__).parents[2]
DATA = Path(__file__).parent / "data"
SCHEMA = tables_schema()
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)
TABLE = (
    "tables:\n  - id: a\n    dataset: b\n    table: c\n    timestampColumn: d\n    targetTable: E\n"
)
# What holds between keys, or inside a text, is only known to the loader.
BEYOND_A_SCHEMA = (
    "latest: true",
    "columns: [' ']",
    "columns: ['*', a]",
    "columns: [created_at, Created_At]",
    "columns: [total]",
    "columns: [Created_at]",
    "columns: [created_at, a.b]",
    "key: ' '",
    "key: a\ncolumns",
    "sync: {catchupThreshold: 600}",
    "sync: {steadyThreshold: 3600}",
    "sync: {giveUpAfter: 0s}",
    "sync: {giveUpAfter: 2d}",
    "sync: {startTimestamp: 2026-13-01}",
    "schemaOverrides: {a: {}}",
    "schemaOverrides: {_hash",
    "schemaOverrides: {a: {indexed: true}",
    "rowFilter: 'a",
    "customQuery: DELETE",
    "customQuery: ' '",
    "customQuery: 'SELECT",
    "safetyLag: 2d",
    "revisit: 366d",
    "scrub: 0s",
    "scrub: 23h",
    "scrub: 366d",
)


class Yaml12(yaml.SafeLoader):
    """Types as editors see them: yes, on and 1:30 are text, and so are dates."""


Yaml12.yaml_implicit_resolvers = {
    first: [(tag, rule) for tag, rule in rules if tag.endswith((":null", ":float", ":merge"))]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Yaml12.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(true|false)$"), list("tf"))
Yaml12.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"^[-+]?\d+$"), list("-+0123456789")
)


def errors(text: str) -> list[str]:
    return [error.message for error in VALIDATOR.iter_errors(yaml.load(text, Yaml12))]


def indented(lines: str) -> str:
    return "".join(f"    {line}\n" for line in lines.splitlines())


def test_the_file_is_in_step_with_the_models() -> None:
    hint = "run: python -m bq_harper_assets.contract.json_schema"
    assert (ROOT / SCHEMA_FILE).read_text(encoding="utf-8") == schema_text(), hint


def test_it_is_a_schema_and_the_sample_names_it() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    first = (ROOT / "config/tables.yaml").read_text(encoding="utf-8").splitlines()[0]
    assert first == f"# yaml-language-server: $schema={SCHEMA_FILE.name}"


@pytest.mark.promise("G12")
@pytest.mark.parametrize(
    "file",
    [
        ROOT / "config/tables.yaml",
        *sorted((ROOT / "config/examples").glob("*.yaml")),
        *sorted(DATA.glob("*.yaml")),
    ],
    ids=lambda file: file.name,
)
def test_good_files_pass(file: Path) -> None:
    assert errors(file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("lines", [case[0] for case in GOOD if case[0] != "columns:"])
def test_good_values_pass(lines: str) -> None:
    assert errors(TABLE + indented(lines)) == []


@pytest.mark.parametrize("line", [case[0] for case in GOOD_SYNC])
def test_good_sync_values_pass(line: str) -> None:
    assert errors(f"{TABLE}    sync:\n      {line}\n") == []


@pytest.mark.parametrize("lines", [lines for lines in BAD if not lines.startswith(BEYOND_A_SCHEMA)])
def test_bad_values_do_not_pass(lines: str) -> None:
    assert errors(TABLE + indented(lines)) != []


@pytest.mark.parametrize(
    "name",
    [
        "a-misspelled-key",
        "a-missing-key",
        "a-missing-source",
        "an-id-with-a-dash",
        "both-forms-in-one-block",
        "a-key-of-the-older-plugin",
        "a-key-of-a-profile",
        "a-key-one-level-too-high",
        "tables-that-are-no-list",
    ],
)
def test_mistakes_do_not_pass(name: str) -> None:
    (mistake,) = [file for file in MISTAKES if file.stem == name]
    assert errors(sections(mistake)["config/tables.yaml"]) != []


def test_both_spellings_and_variables_pass() -> None:
    snake = TABLE.replace("timestampColumn", "timestamp_column").replace(
        "targetTable", "target_table"
    )
    assert errors(f"{snake}    max_request_bytes: ${{BYTES}}\n    window: ${{WINDOW:-1d}}\n") == []


def test_every_key_is_described_with_its_default() -> None:
    def block(name: str) -> dict[str, Any]:
        found: dict[str, Any] = SCHEMA["definitions"][name]["properties"]
        return found

    for model, name in ((TableContract, "TableContract"), (Sync, "Sync")):
        for key in keys_of(model):
            assert block(name)[key]["description"]
            assert to_snake(key) in block(name)
    table = block("TableContract")
    assert [table[key]["default"] for key in ("window", "slices", "safetyLag", "revisit")] == [
        "60m",
        4,
        "60s",
        "24h",
    ]
    assert json.loads(schema_text()) == SCHEMA
