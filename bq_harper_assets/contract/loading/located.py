"""Values that know where the user wrote them, so that every later check can point there."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from bq_harper_assets.contract.loading.problems import Problem
from bq_harper_assets.contract.settings.secrets import is_secret_name, value_without_secrets

Step: TypeAlias = str | int
MOST_SHOWN = 60


class Expanded(str):
    """Text from a variable: it has no YAML type, so a number or flag may be read from it."""

    __slots__ = ()


@dataclass(frozen=True)
class Place:
    """A spot in a file, with the path to it in the user's own spelling."""

    file: str
    line: int = 0
    path: tuple[Step, ...] = ()

    def below(self, step: Step, line: int | None = None) -> "Place":
        return Place(self.file, self.line if line is None else line, (*self.path, step))

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, repr=False)
class Located:
    """A scalar, a list or a mapping of located values."""

    place: Place
    value: "str | int | float | bool | tuple[Located, ...] | dict[str, Located] | None"
    raw: str = ""  # a scalar as written, before variables were put in
    broken: bool = False  # its problem is already told: nothing more is said of it

    def __repr__(self) -> str:
        return f"Located({self.place}, {path_text(self.place.path)} = {self.shown()})"

    @property
    def mapping(self) -> "dict[str, Located]":
        return self.value if isinstance(self.value, dict) else {}

    def plain(self) -> Any:
        """The value as ordinary dicts and lists."""
        if isinstance(self.value, dict):
            return {key: inner.plain() for key, inner in self.value.items()}
        if isinstance(self.value, tuple):
            return [inner.plain() for inner in self.value]
        return self.value

    def nearest(self, steps: Sequence[Step]) -> "tuple[Located, tuple[Step, ...]]":
        """The deepest located value on the way, and the steps that lead beyond it."""
        here = self
        for at, step in enumerate(steps):
            inner: Located | None = None
            if isinstance(here.value, dict) and isinstance(step, str):
                inner = here.value.get(step)
            elif isinstance(here.value, tuple) and isinstance(step, int) and step < len(here.value):
                inner = here.value[step]
            if inner is None:
                return here, tuple(steps[at:])
            here = inner
        return here, ()

    def with_keys(self, keys: "dict[str, Located]") -> "Located":
        return replace(self, value=keys)

    def shown(self) -> str:
        """As written, shortened; a secret as ***, a variable by its name and not its content."""
        if any(isinstance(step, str) and is_secret_name(step) for step in self.place.path):
            return "***"
        if isinstance(self.value, dict):
            return "{...}" if self.value else "{}"
        if isinstance(self.value, tuple):
            text = "[" + ", ".join(inner.shown() for inner in self.value) + "]"
        else:
            text = value_without_secrets(self.raw)
        text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
        return text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 3] + "..."

    def problem(self, message: str, about: str = "") -> Problem:
        """A problem with this very value."""
        return Problem(
            file=self.place.file,
            line=self.place.line,
            path=path_text(self.place.path),
            value=self.shown(),
            message=message,
            about=about,
        )

    def key_problem(self, message: str, about: str = "") -> Problem:
        """A problem with the key; its value is not shown, it may be a secret under a wrong name."""
        return Problem(
            file=self.place.file,
            line=self.place.line,
            path=path_text(self.place.path),
            value=None,
            message=message,
            about=about,
        )


def path_text(path: Sequence[Step]) -> str:
    """bigquery.tables[1].columns"""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            # password:abc, its space forgotten, is a key to YAML.
            shown = value_without_secrets(step)
            text += f".{shown}" if text else shown
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
