"""An entry of the configuration is a value that knows where it stands, so that checks point there.

Values are plain dicts, lists and text, and their lines are the tree of positions that Dagster's
own parser makes. `dagster_shared` may be used here although `dagster` may not: it is a light
package of its own (it loads neither `dagster` nor anything else that is heavy).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from dagster_shared.yaml_utils.source_position import (
    KeyPathSegment,
    LineCol,
    SourcePosition,
    SourcePositionTree,
)

from bq_harper_assets.contract.loading.problems import Problem
from bq_harper_assets.contract.loading.spelling import in_style_of, to_snake
from bq_harper_assets.contract.secrets import HIDDEN, is_secret_name, value_without_secrets

_MOST_SHOWN = 60
_NO_LINE = LineCol(0, 0)


class NoValue(Enum):
    """This stands in a value's place where there is no value to check."""

    BROKEN = "its problem is told already, so nothing more is said of it"
    MISSING = "it is not written"


class ExpandedText(str):
    """This text has its variables put in and remembers how the file writes it."""

    written: str

    def __new__(cls, text: str, written: str) -> "ExpandedText":
        made = super().__new__(cls, text)
        made.written = written
        return made


@dataclass(frozen=True, repr=False)
class ConfigEntry:
    """An entry holds a value, the positions of all in it, and its path in the user's spelling."""

    value: Any
    positions: SourcePositionTree
    path: tuple[KeyPathSegment, ...] = ()

    @staticmethod
    def without_lines(file: str, name: str, value: Any) -> "ConfigEntry":
        """Makes an entry from a place without lines, such as the environment."""
        position = SourcePosition(file, _NO_LINE, _NO_LINE)
        return ConfigEntry(value, SourcePositionTree(position, {}), (name,) if name else ())

    def __repr__(self) -> str:
        return f"ConfigEntry({self.where}, {path_text(self.path)} = {self.shown()})"

    @property
    def file(self) -> str:
        return self.positions.position.filename

    @property
    def where(self) -> str:
        """Names the file and line as a user would."""
        line = self.positions.position.start.line
        return f"{self.file}:{line}" if line else self.file

    @property
    def written(self) -> str:
        """Returns the text as it stands in the file, before variables are put in."""
        return self.value.written if isinstance(self.value, ExpandedText) else str(self.value)

    def below(self, *steps: KeyPathSegment) -> "ConfigEntry":
        """Follows the steps to an entry; one that is not written has the place above it."""
        here = self
        for step in steps:
            value = here.value
            if isinstance(value, dict) and step not in value and isinstance(step, str):
                step = to_snake(step) if to_snake(step) in value else in_style_of(value, step)
            has_it = step in value if isinstance(value, dict) else _has_index(value, step)
            inner = here.positions.children.get(step)
            here = ConfigEntry(
                value[step] if has_it else NoValue.MISSING,
                inner or SourcePositionTree(here.positions.position, {}),
                (*here.path, step),
            )
        return here

    def get(self, key: str) -> "ConfigEntry | None":
        """Returns the key's entry in either spelling; None if it is left out or empty."""
        found = self.below(key)
        return None if found.value in (None, NoValue.MISSING) else found

    def items(self) -> "Iterator[tuple[str, ConfigEntry]]":
        """Goes through the entries of a block by their keys as written."""
        for key in self.value if isinstance(self.value, dict) else ():
            yield key, self.below(key)

    def with_items(self, items: "dict[str, ConfigEntry]") -> "ConfigEntry":
        """Makes the block anew with these entries in place of its own."""
        children: dict[KeyPathSegment, SourcePositionTree] = {
            key: entry.positions for key, entry in items.items()
        }
        return replace(
            self,
            value={key: entry.value for key, entry in items.items()},
            positions=SourcePositionTree(self.positions.position, children),
        )

    def shown(self) -> str:
        """Shortens the value as written; a secret becomes ***, a variable shows its name."""
        if any(isinstance(step, str) and is_secret_name(step) for step in self.path):
            return HIDDEN
        if isinstance(self.value, dict):
            return "{...}" if self.value else "{}"
        if isinstance(self.value, list):
            items = (self.below(at).shown() for at in range(len(self.value)))
            text = "[" + ", ".join(items) + "]"
        else:
            text = value_without_secrets(self.written)
        text = _printable(text)
        return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 3] + "..."

    def problem(self, message: str, about: str = "") -> Problem:
        """Says what is wrong with this very value, or with its absence."""
        found = self.key_problem(message, about)
        is_there = self.value not in (None, NoValue.MISSING)
        return replace(found, value=self.shown()) if is_there else found

    def key_problem(self, message: str, about: str = "") -> Problem:
        """Says what is wrong with the key, without its value: that may be a misnamed secret."""
        line = self.positions.position.start.line
        path = path_text(self.path)
        return Problem(file=self.file, message=message, line=line, path=path, about=about)


def _has_index(value: Any, step: KeyPathSegment) -> bool:
    return isinstance(value, list) and isinstance(step, int) and step < len(value)


def path_text(path: Sequence[KeyPathSegment]) -> str:
    """Writes the path as one text: bigquery.tables[1].columns."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            # password:abc, its space forgotten, is a key to YAML.
            shown = value_without_secrets(step)
            text += f".{shown}" if text else shown
    return _printable(text)


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
