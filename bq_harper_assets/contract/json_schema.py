"""Makes config/tables.schema.json, by which editors check what a user types, from the models.

It knows keys, types, limits and shapes. What holds between tables is checked when they are loaded.
"""

import json
import os
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from bq_harper_assets.contract.loading.shapes import CONNECTION_KEYS
from bq_harper_assets.contract.loading.spelling import to_snake
from bq_harper_assets.contract.settings.profile import BigQueryProfile
from bq_harper_assets.contract.settings.root import find_project_root
from bq_harper_assets.contract.table import TableContract

SCHEMA_FILE = Path("config") / "tables.schema.json"
_VARIABLE = {"type": "string", "pattern": r"\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}"}

Schema = dict[str, Any]


def tables_schema() -> Schema:
    """Makes the JSON Schema (draft 7, which editors know best) of a file in config/."""
    blocks = _blocks(TableContract) | {"Connection": _connection_keys()}
    listed = {
        "tables": {
            "description": "One contract per BigQuery table",
            "type": "array",
            "items": {"$ref": "#/definitions/TableContract"},
        },
        "sync": {"$ref": "#/definitions/Sync"},
    }
    connection = _references("Connection", blocks["Connection"])
    single = _references("TableContract", blocks["TableContract"])
    bigquery = {
        "description": "Where the tables are, and the tables themselves",
        "if": {"anyOf": _one_of_keys("dataset", "table", "customQuery")},
        "then": _block(connection | single, [_needed("timestampColumn"), _SOURCE]),
        "else": _block(connection | listed),
    }
    needed = [_needed("id"), _needed("timestampColumn"), _needed("targetTable"), _SOURCE]
    definitions = {
        name: _block(_both_spellings(name, keys), needed if name == "TableContract" else [])
        for name, keys in blocks.items()
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Tables that bq_harper_assets keeps in step",
        **_block({"bigquery": bigquery, **listed}),
        "definitions": {"Variable": _VARIABLE, **definitions},
    }


def schema_text() -> str:
    """Writes the schema as the file holds it."""
    return json.dumps(tables_schema(), indent=2) + "\n"


def _blocks(model: type[BaseModel]) -> dict[str, Schema]:
    made = model.model_json_schema(ref_template="#/definitions/{model}")
    nested = made.pop("$defs", {})
    return {
        name: {key: _value(field) for key, field in block["properties"].items()}
        for name, block in {model.__name__: made, **nested}.items()
    }


def _connection_keys() -> Schema:
    keys = _blocks(BigQueryProfile)["BigQueryProfile"]
    return {written: keys[key] for written, key in CONNECTION_KEYS.items()}


def _value(field: Schema) -> Schema:
    annotations = {
        key: field[key] for key in ("description", "default") if field.get(key) is not None
    }
    if isinstance(annotations.get("default"), dict):
        del annotations["default"]  # of a nested block: each of its keys tells its own
    rest = {k: v for k, v in field.items() if k not in ("title", "description", "default")}
    choices = [choice for choice in rest.pop("anyOf", [rest]) if choice != {"type": "null"}]
    is_block = "$ref" in choices[0] or choices[0].get("type") == "object"
    if is_block or choices == [{"type": "string", "minLength": 1}]:
        return {**annotations, "allOf": choices}
    return {**annotations, "anyOf": [*choices, {"$ref": "#/definitions/Variable"}]}


def _block(properties: Schema, conditions: list[Schema] | None = None) -> Schema:
    block = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**block, "allOf": conditions} if conditions else block


def _both_spellings(name: str, keys: Schema) -> Schema:
    return _references(name, keys) | keys


def _references(name: str, keys: Schema) -> Schema:
    """Lists each key in both spellings, with a reference to the definition that describes it."""
    return {
        spelled: {"$ref": f"#/definitions/{name}/properties/{key}"}
        for key in keys
        for spelled in (key, to_snake(key))
    }


def _one_of_keys(*keys: str) -> list[Schema]:
    spelled = dict.fromkeys(name for key in keys for name in (key, to_snake(key)))
    return [{"required": [name]} for name in spelled]


def _needed(key: str) -> Schema:
    return {"anyOf": _one_of_keys(key)}


_SOURCE: Schema = {"anyOf": [{"required": ["dataset", "table"]}, *_one_of_keys("customQuery")]}


def main() -> None:
    """Writes the schema's file into the project."""
    file = find_project_root(os.environ, Path.cwd()) / SCHEMA_FILE
    file.write_text(schema_text(), encoding="utf-8")
    print(f"wrote {file}")


if __name__ == "__main__":
    main()
