"""Every setting as it counts, with where it came from: what `bqh doctor` prints."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pydantic import BaseModel, SecretStr

from bq_harper_assets.contract.fields.quantities import duration_text, window_text
from bq_harper_assets.contract.loading.located import Located
from bq_harper_assets.contract.settings.layers import DEFAULT, NAMES, VARIABLES, Layers, source_text
from bq_harper_assets.contract.settings.profile import Profile
from bq_harper_assets.contract.settings.secrets import HIDDEN, is_secret_name, value_without_secrets
from bq_harper_assets.contract.table import TableContract

NOT_SET = "not set"


@dataclass(frozen=True)
class Setting:
    """A name such as harper.url, its value without secrets, and where it came from."""

    name: str
    value: str
    source: str


def connection_settings(profile: Profile, layers: Layers, *, emulated: bool) -> Iterator[Setting]:
    """How BigQuery, Harper, Spark and the ledger are reached."""
    for name in NAMES:
        section, _, key = name.partition(".")
        value = _by_key(getattr(profile, section), key)
        source = _source(name, layers)
        if name == "bigquery.credentials" and value and emulated:
            source += " (an emulator needs none)"
        if isinstance(value, dict):
            for inner, text in value.items():
                yield Setting(f"{name}.{inner}", _shown(inner, text), source)
        else:
            yield Setting(name, _shown(name, value), source)


def table_settings(contract: TableContract, table: Located) -> Iterator[Setting]:
    """What one table declares, and what it leaves to the defaults."""
    yield from _fields(f"tables.{contract.id}", contract, table)


def _fields(prefix: str, model: BaseModel, block: Located | None) -> Iterator[Setting]:
    for name, field in type(model).model_fields.items():
        key = field.alias or name
        value = getattr(model, name)
        entry = block.mapping.get(key) if block else None
        if isinstance(value, BaseModel):
            yield from _fields(f"{prefix}.{key}", value, entry)
        else:
            yield Setting(
                f"{prefix}.{key}", _shown(key, value), str(entry.place) if entry else DEFAULT
            )


def _source(name: str, layers: Layers) -> str:
    found = layers.found(name)
    if not found:
        return DEFAULT
    source = source_text(found[0])
    beaten = [entry for entry in found[1:] if entry not in layers.stack.values()]
    if not beaten:
        return source
    variable = VARIABLES.get(name)
    if beaten[0].place.path == (variable,):
        return f"{source} ({variable} is overruled)"
    return f"{source} (overrules {source_text(beaten[0])})"


def _by_key(section: BaseModel, key: str) -> Any:
    for name, field in type(section).model_fields.items():
        if field.alias == key:
            return getattr(section, name)
    raise KeyError(key)


def _shown(name: str, value: Any) -> str:
    if value is None or value == {}:
        return NOT_SET
    if is_secret_name(name):
        return HIDDEN
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return window_text(value) if name == "window" else duration_text(value)
    if isinstance(value, tuple):
        return ", ".join(value)
    if isinstance(value, dict):
        return ", ".join(value)
    return value_without_secrets(str(value))
