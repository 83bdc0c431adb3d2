"""`bqh doctor` prints every setting as it counts, with where it came from."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pydantic import BaseModel, SecretStr

from bq_harper_assets.contract.fields.quantities import duration_text, window_text
from bq_harper_assets.contract.loading.config_entry import ConfigEntry
from bq_harper_assets.contract.secrets import HIDDEN, is_secret_name, value_without_secrets
from bq_harper_assets.contract.settings.origins import (
    DEFAULT,
    SETTING_NAMES,
    SETTING_VARIABLES,
    SettingOrigins,
    origin_text,
)
from bq_harper_assets.contract.settings.profile import Profile
from bq_harper_assets.contract.table import TableContract

NOT_SET = "not set"


@dataclass(frozen=True)
class Setting:
    """A setting has a name such as harper.url, a value without secrets, and an origin."""

    name: str
    value: str
    source: str


def connection_settings(
    profile: Profile, origins: SettingOrigins, *, emulated: bool
) -> Iterator[Setting]:
    """Lists how BigQuery, Harper, Spark and the ledger are reached."""
    sections = profile.model_dump(by_alias=True)
    for name in SETTING_NAMES:
        section, _, key = name.partition(".")
        value = sections[section][key]
        source = _source(name, origins)
        if name == "bigquery.credentials" and value and emulated:
            source += " (an emulator needs none)"
        if isinstance(value, dict):
            for inner, text in value.items():
                yield Setting(f"{name}.{inner}", _shown(inner, text), source)
        else:
            yield Setting(name, _shown(name, value), source)


def table_settings(contract: TableContract, table: ConfigEntry) -> Iterator[Setting]:
    """Lists what one table declares, and what it leaves to the defaults."""
    yield from _fields(f"tables.{contract.id}", contract, table)


def _fields(prefix: str, model: BaseModel, block: ConfigEntry | None) -> Iterator[Setting]:
    for name, field in type(model).model_fields.items():
        key = field.alias or name
        value = getattr(model, name)
        entry = block.get(key) if block else None
        if isinstance(value, BaseModel):
            yield from _fields(f"{prefix}.{key}", value, entry)
        else:
            yield Setting(f"{prefix}.{key}", _shown(key, value), entry.where if entry else DEFAULT)


def _source(name: str, origins: SettingOrigins) -> str:
    found = origins.entries(name)
    if not found:
        return DEFAULT
    source = origin_text(found[0])
    beaten = [entry for entry in found[1:] if entry is not origins.stack.get(name)]
    if not beaten:
        return source
    variable = SETTING_VARIABLES.get(name)
    if beaten[0].path == (variable,):
        return f"{source} ({variable} is overruled)"
    return f"{source} (overrules {origin_text(beaten[0])})"


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
    if isinstance(value, tuple | dict):
        return ", ".join(value)
    return value_without_secrets(str(value))
