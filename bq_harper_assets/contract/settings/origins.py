"""Each setting comes from the first of these origins that says something.

1. variable     one of seven, in the environment, else in .env
2. profile      config/profiles/<name>.yaml, chosen by --profile, else by BQH_PROFILE, else local
3. files        bigquery: in config/*.yaml
4. local stack  what `bqh up` has started; for the local profile only
5. default      what the profile's model says

Platforms preset the variables of the project and of the credentials, so there a file means it
more: 2 and 3 come before 1. What belongs to one server goes to no other: the stack's project,
user and password only to the stack's own servers, and an emulator's storage endpoint is never
weaker than its address.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr

from bq_harper_assets.contract.fields.quantities import duration_text, window_text
from bq_harper_assets.contract.loading.block_check import checked
from bq_harper_assets.contract.loading.config_entry import ConfigEntry
from bq_harper_assets.contract.loading.problems import Problem
from bq_harper_assets.contract.loading.spelling import canonical_key, keys_of
from bq_harper_assets.contract.loading.variables import DOTENV_FILE, ENVIRONMENT, Variables
from bq_harper_assets.contract.loading.yaml_file import read_yaml
from bq_harper_assets.contract.secrets import HIDDEN, is_secret_name, value_without_secrets
from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets.contract.settings.profile import LOCAL, Profile, literal_secrets
from bq_harper_assets.contract.settings.urls import EMULATOR_URL, host_of
from bq_harper_assets.contract.table import TableContract

PROFILES = Path("config") / "profiles"
STACK = "local stack"
STORAGE_PORT = 9060
SETTING_VARIABLES = {
    "bigquery.project": "GOOGLE_CLOUD_PROJECT",
    "bigquery.credentials": "GOOGLE_APPLICATION_CREDENTIALS",
    "bigquery.endpoint": "BIGQUERY_EMULATOR_HOST",
    "bigquery.storageEndpoint": "BIGQUERY_EMULATOR_STORAGE_HOST",
    "harper.url": "OPERATIONSAPI_URL",
    "harper.user": "OPERATIONSAPI_USER",
    "harper.password": "OPERATIONSAPI_PASS",
}
SETTING_NAMES = tuple(
    f"{section}.{key}"
    for section, block in Profile.model_fields.items()
    for key in keys_of(block.annotation)  # type: ignore[arg-type]
)
_DEFAULT, _NOT_SET = "default", "not set"
_FILES_FIRST = ("bigquery.project", "bigquery.credentials")
_ENDPOINT, _STORAGE = "bigquery.endpoint", "bigquery.storageEndpoint"

Entries = Mapping[str, ConfigEntry]  # by names such as harper.url
Origins = dict[str, list[ConfigEntry]]  # every setting's entries; the first one counts


def choose_profile(argument: str | None, variables: Variables) -> ConfigEntry:
    """Names the profile, and says who chose it."""
    if argument is not None:
        return ConfigEntry.without_lines("argument", "profile", argument)
    default = ConfigEntry.without_lines(_DEFAULT, "", LOCAL)
    return variables.entry("BQH_PROFILE") or default


def read_profile(
    root: Path, chosen: ConfigEntry, variables: Variables, problems: list[Problem]
) -> ConfigEntry:
    """Reads and checks the file of the chosen profile; only the local profile needs none."""
    name = str(chosen.value)
    file = PROFILES / f"{name}.yaml"
    nothing = replace(chosen, value={})
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        problems.append(chosen.problem("is not a profile name: letters, digits, - and _"))
        return nothing
    if not (root / file).is_file():
        if name != LOCAL:
            known = sorted({LOCAL} | {other.stem for other in (root / PROFILES).glob("*.yaml")})
            message = f"there is no {file.as_posix()}: make one, or choose from {', '.join(known)}"
            problems.append(chosen.problem(message))
        return nothing
    block = read_yaml(root / file, file.as_posix(), variables, problems)
    if block is None:
        return nothing
    checked(block, Profile, problems)
    if name != LOCAL:
        problems.extend(literal_secrets(block))
    return block


def gather_origins(
    variables: Variables, profile: ConfigEntry, files: Entries, stack: StackAddresses | None
) -> Origins:
    """Lists the entries of every setting, without what belongs to a server that is not used."""
    origins: Origins = {name: [] for name in SETTING_NAMES}
    for section, block in profile.items():
        for written, entry in block.items():
            name = canonical_key(f"{section}.{written}", SETTING_NAMES)
            if name is not None and entry.value is not None and not origins[name]:
                origins[name].append(entry)
    for name, entry in files.items():
        origins[name].append(entry)
    for name, variable in SETTING_VARIABLES.items():
        if (given := variables.entry(variable)) is not None:
            origins[name].insert(len(origins[name]) if name in _FILES_FIRST else 0, given)
    if stack is not None:
        for name, value in _stack_values(stack, origins).items():
            origins[name].append(ConfigEntry.without_lines(STACK, name, value))
    if (storage := _storage_of_endpoint(origins)) is not None:
        origins[_STORAGE].insert(0, storage)
    return origins


def _stack_values(stack: StackAddresses, origins: Origins) -> dict[str, str]:
    values = {_ENDPOINT: stack.bigquery_url, "harper.url": stack.harper_url}

    def is_of_stack(name: str) -> bool:
        return not origins[name] or str(origins[name][0].value).rstrip("/") == values[name]

    if is_of_stack(_ENDPOINT):
        values |= {"bigquery.project": stack.bigquery_project, _STORAGE: stack.bigquery_storage}
    if is_of_stack("harper.url"):
        values["harper.user"] = stack.harper_user
        if is_of_stack("harper.user") and (password := stack.read_password()):
            values["harper.password"] = password
    return values


def _storage_of_endpoint(origins: Origins) -> ConfigEntry | None:
    """Names the storage endpoint beside an emulator whose address has the stronger origin."""
    endpoint, storage = origins[_ENDPOINT], origins[_STORAGE]
    if not endpoint or (storage and _weakness(storage[0]) <= _weakness(endpoint[0])):
        return None
    try:
        text = f"{host_of(EMULATOR_URL.parse(endpoint[0].value))}:{STORAGE_PORT}"
    except ValueError:
        return None  # told where it is checked
    origin = f"{origin_text(endpoint[0])} (same host, port {STORAGE_PORT})"
    return ConfigEntry.without_lines(origin, "", text)


def _weakness(entry: ConfigEntry) -> int:
    if entry.file in (ENVIRONMENT, DOTENV_FILE):
        return 0
    return 2 if entry.file == STACK else 1


def origin_text(entry: ConfigEntry) -> str:
    """Names where an entry comes from as a user would."""
    if entry.file == ENVIRONMENT:
        return str(entry.path[0])
    if entry.file == DOTENV_FILE:
        return f"{DOTENV_FILE} ({entry.path[0]})"
    return entry.where


@dataclass(frozen=True)
class Setting:
    """A setting has a name such as harper.url, a value without secrets, and an origin."""

    name: str
    value: str
    source: str


def connection_settings(profile: Profile, origins: Origins, *, emulated: bool) -> Iterator[Setting]:
    """Lists how BigQuery, Harper, Spark and the ledger are reached, as `bqh doctor` prints it."""

    def source(name: str) -> str:
        if not origins[name]:
            return _DEFAULT
        counts, *overruled = origins[name]
        text = origin_text(counts)
        if overruled and overruled[0].file != STACK:
            variable = SETTING_VARIABLES.get(name)
            if overruled[0].path == (variable,):
                text += f" ({variable} is overruled)"
            else:
                text += f" (overrules {origin_text(overruled[0])})"
        if name == "bigquery.credentials" and emulated:
            text += " (an emulator needs none)"
        return text

    yield from _settings(profile, "", source)


def table_settings(contract: TableContract, table: ConfigEntry) -> Iterator[Setting]:
    """Lists what one table declares, and what it leaves to the defaults."""
    prefix = f"tables.{contract.id}."

    def source(name: str) -> str:
        *blocks, key = name.removeprefix(prefix).split(".")
        entry = table.below(*blocks).get(key)
        return entry.where if entry else _DEFAULT

    yield from _settings(contract, prefix, source)


def _settings(model: BaseModel, prefix: str, source: Callable[[str], str]) -> Iterator[Setting]:
    for field, info in type(model).model_fields.items():
        key = info.alias or field
        name, value = f"{prefix}{key}", getattr(model, field)
        if isinstance(value, BaseModel):
            yield from _settings(value, f"{name}.", source)
        elif name == "spark.settings":
            for inner, text in value.items():
                yield Setting(f"{name}.{inner}", _shown(inner, text), source(name))
        else:
            yield Setting(name, _shown(key, value), source(name))


def _shown(key: str, value: Any) -> str:
    if value is None or value == {}:
        return _NOT_SET
    if is_secret_name(key):
        return HIDDEN
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return window_text(value) if key == "window" else duration_text(value)
    if isinstance(value, tuple | dict):
        return ", ".join(value)
    return value_without_secrets(str(value))
