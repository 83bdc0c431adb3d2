"""Settings from every place they can be set in, the strongest first, each with where it came from.

argument > environment > .env > profile > config/*.yaml > local stack > default
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic.alias_generators import to_camel

from bq_harper_assets.contract.loading.located import Expanded, Located, Place
from bq_harper_assets.contract.loading.problems import Problem
from bq_harper_assets.contract.loading.spelling import keys_of, nearest
from bq_harper_assets.contract.loading.variables import DOTENV_FILE, Variables
from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets.contract.settings.profile import Profile

ARGUMENT = "argument"
ENVIRONMENT = "environment"
STACK = "local stack"
DEFAULT = "default"
EMULATOR_HOST = "BIGQUERY_EMULATOR_HOST"
VARIABLES = {
    "bigquery.project": "GOOGLE_CLOUD_PROJECT",
    "bigquery.credentials": "GOOGLE_APPLICATION_CREDENTIALS",
    "bigquery.endpoint": EMULATOR_HOST,
    "bigquery.storageEndpoint": "BIGQUERY_EMULATOR_STORAGE_HOST",
    "harper.url": "OPERATIONSAPI_URL",
    "harper.user": "OPERATIONSAPI_USER",
    "harper.password": "OPERATIONSAPI_PASS",
}
# Platforms preset these two, so a file means it more; Google's own libraries see it alike.
_FILES_FIRST = ("bigquery.project", "bigquery.credentials")
NAMES = tuple(
    f"{section}.{key}"
    for section, field in Profile.model_fields.items()
    for key in keys_of(field.annotation)  # type: ignore[arg-type]
)


@dataclass(frozen=True, kw_only=True)
class Layers:
    """One mapping of settings per place, by names such as harper.url."""

    arguments: Mapping[str, Located]
    variables: Mapping[str, Located]
    profile: Mapping[str, Located]
    files: Mapping[str, Located]
    stack: Mapping[str, Located]
    derived: Mapping[str, Located] = field(
        default_factory=dict
    )  # follows from another setting's winner

    def found(self, name: str) -> list[Located]:
        """Every value of the setting, the one that counts first."""
        written = (self.profile, self.files)
        order: Iterable[Mapping[str, Located]] = (
            (*written, self.variables) if name in _FILES_FIRST else (self.variables, *written)
        )
        order = (self.derived, self.arguments, *order, self.stack)
        return [layer[name] for layer in order if name in layer]

    def winner(self, name: str) -> Located | None:
        found = self.found(name)
        return found[0] if found else None

    def winners(self) -> dict[str, Located]:
        """Every setting that is set, by the value that counts."""
        return {name: entry for name in NAMES if (entry := self.winner(name)) is not None}


def source_text(entry: Located | None) -> str:
    """Where a value came from, as a user would say it."""
    if entry is None:
        return DEFAULT
    if entry.place.file == ENVIRONMENT:
        return str(entry.place.path[0])
    if entry.place.file == DOTENV_FILE:
        return f"{DOTENV_FILE} ({entry.place.path[0]})"
    return str(entry.place)


def from_arguments(overrides: Mapping[str, Any], problems: list[Problem]) -> dict[str, Located]:
    """Options of a command; one that was not given is None."""
    found: dict[str, Located] = {}
    for written, value in overrides.items():
        name = ".".join(to_camel(step) for step in written.split("."))
        text = value if isinstance(value, bool) else Expanded(value)
        entry = Located(Place(ARGUMENT, 0, (written,)), text, str(value))
        if name not in NAMES or name == "spark.settings":
            meant = nearest(name, NAMES)
            hint = f"did you mean {meant}?" if meant else f"valid: {', '.join(NAMES)}"
            problems.append(entry.key_problem(f"is not a setting; {hint}"))
        elif value is not None:
            found[name] = entry
    return found


def from_variables(variables: Variables) -> dict[str, Located]:
    """Settings that have a variable of their own."""
    located = {name: variables.located(variable) for name, variable in VARIABLES.items()}
    return {name: entry for name, entry in located.items() if entry is not None}


def from_block(profile: Located) -> dict[str, Located]:
    """A profile's block with canonical keys, flattened."""
    return {
        f"{section}.{key}": entry
        for section, block in profile.mapping.items()
        for key, entry in block.mapping.items()
    }


def from_stack(stack: StackAddresses | None) -> dict[str, Located]:
    """What the running local stack says of itself."""
    if stack is None:
        return {}
    values: dict[str, str] = {
        "bigquery.project": stack.bigquery_project,
        "bigquery.endpoint": stack.bigquery_url,
        "bigquery.storageEndpoint": stack.bigquery_storage,
        "harper.url": stack.harper_url,
        "harper.user": stack.harper_user,
    }
    if (password := _password(stack.harper_password_file)) is not None:
        values["harper.password"] = password
    return {name: Located(Place(STACK, 0, (name,)), Expanded(v), v) for name, v in values.items()}


def to_block(entries: Mapping[str, Located]) -> Located:
    """The flattened settings as a profile's block."""
    sections: dict[str, dict[str, Located]] = {}
    for name, entry in entries.items():
        section, _, key = name.partition(".")
        sections.setdefault(section, {})[key] = entry
    nowhere = Place("")
    return Located(nowhere, {name: Located(nowhere, keys) for name, keys in sections.items()})


def _password(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
