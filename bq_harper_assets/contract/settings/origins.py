"""Each setting comes from the first of these origins that says something.

1. variable     one of seven, in the environment, else in .env
2. profile      config/profiles/<name>.yaml, chosen by --profile or BQH_PROFILE
3. files        bigquery: in config/*.yaml
4. local stack  what `bqh up` has started; for the local profile only
5. default      what the profile's model says

Platforms preset the variables of the project and of the credentials, so there a file means it
more: 2 and 3 come before 1. What belongs to one server goes to no other: the stack's project,
user and password only to the stack's own servers, and an emulator's storage endpoint is never
weaker than its address.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from bq_harper_assets.contract.loading.config_entry import ConfigEntry
from bq_harper_assets.contract.loading.spelling import canonical_key, keys_of
from bq_harper_assets.contract.loading.variables import DOTENV_FILE, ENVIRONMENT, Variables
from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets.contract.settings.profile import Profile
from bq_harper_assets.contract.settings.urls import EMULATOR_URL, host_of

DEFAULT = "default"
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
_FILES_FIRST = ("bigquery.project", "bigquery.credentials")
_ENDPOINT, _STORAGE = "bigquery.endpoint", "bigquery.storageEndpoint"

Entries = Mapping[str, ConfigEntry]  # by names such as harper.url


@dataclass(frozen=True, kw_only=True)
class SettingOrigins:
    """This holds the entries of every setting, by where they come from."""

    variables: Entries
    profile: Entries
    files: Entries
    stack: Entries = field(default_factory=dict)
    derived: Entries = field(default_factory=dict)  # follows from another setting's entry

    def entries(self, name: str) -> list[ConfigEntry]:
        """Lists every entry of the setting, the one that counts first."""
        order = [self.variables, self.profile, self.files]
        if name in _FILES_FIRST:
            order = [self.profile, self.files, self.variables]
        order = [self.derived, *order, self.stack]
        return [entries[name] for entries in order if name in entries]

    def winner(self, name: str) -> ConfigEntry | None:
        """Returns the entry that counts; None where the default does."""
        return next(iter(self.entries(name)), None)

    def winners(self) -> dict[str, ConfigEntry]:
        """Returns the entries that count, of every setting that is set."""
        return {name: entry for name in SETTING_NAMES if (entry := self.winner(name)) is not None}

    def rank(self, name: str) -> int:
        """Says how weak the origin of the setting is: 0 is the strongest."""
        order = (self.variables, {**self.profile, **self.files}, self.stack)
        return next((at for at, entries in enumerate(order) if name in entries), len(order))


def gather_settings(
    variables: Variables, profile: ConfigEntry, files: Entries, stack: StackAddresses | None
) -> SettingOrigins:
    """Gathers all settings, without what belongs to a server that is not used."""
    named = {name: variables.entry(variable) for name, variable in SETTING_VARIABLES.items()}
    origins = SettingOrigins(
        variables={name: entry for name, entry in named.items() if entry},
        profile=_from_profile(profile),
        files=files,
    )
    return _with_storage(replace(origins, stack=_from_stack(stack, origins)))


def _from_profile(profile: ConfigEntry) -> dict[str, ConfigEntry]:
    found: dict[str, ConfigEntry] = {}
    for section, block in profile.items():
        for written, entry in block.items():
            name = canonical_key(f"{section}.{written}", SETTING_NAMES)
            if name is not None and entry.value is not None:
                found.setdefault(name, entry)
    return found


def _from_stack(stack: StackAddresses | None, others: SettingOrigins) -> dict[str, ConfigEntry]:
    if stack is None:
        return {}
    values = {_ENDPOINT: stack.bigquery_url, "harper.url": stack.harper_url}

    def is_of_stack(name: str) -> bool:
        entry = others.winner(name)
        return entry is None or str(entry.value).rstrip("/") == values[name]

    if is_of_stack(_ENDPOINT):
        values |= {"bigquery.project": stack.bigquery_project, _STORAGE: stack.bigquery_storage}
    if is_of_stack("harper.url"):
        values["harper.user"] = stack.harper_user
        password = _password(stack.harper_password_file)
        if is_of_stack("harper.user") and password:
            values["harper.password"] = password
    return {n: ConfigEntry.without_lines(STACK, n, value) for n, value in values.items()}


def _password(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _with_storage(origins: SettingOrigins) -> SettingOrigins:
    endpoint = origins.winner(_ENDPOINT)
    if endpoint is None or origins.rank(_STORAGE) <= origins.rank(_ENDPOINT):
        return origins
    try:
        text = f"{host_of(EMULATOR_URL.parse(endpoint.value))}:{STORAGE_PORT}"
    except ValueError:
        return origins  # told where it is checked
    origin = f"{origin_text(endpoint)} (same host, port {STORAGE_PORT})"
    return replace(origins, derived={_STORAGE: ConfigEntry.without_lines(origin, "", text)})


def origin_text(entry: ConfigEntry) -> str:
    """Names where an entry comes from as a user would."""
    if entry.file == ENVIRONMENT:
        return str(entry.path[0])
    if entry.file == DOTENV_FILE:
        return f"{DOTENV_FILE} ({entry.path[0]})"
    return entry.where
