"""A YAML file is read so that every value has its line, and variables are put in.

Every scalar is text, as the user wrote it, and the field that it belongs to reads it: `no`, `on`
and `1:30` are never a flag or a number, so a column may be called `no` and a password `0123`.
"""

import re
from pathlib import Path
from typing import Any

import yaml
from dagster_shared.yaml_utils import parse_yamls_with_source_position
from dagster_shared.yaml_utils.source_position import (
    LineCol,
    SourcePosition,
    SourcePositionTree,
    ValueAndSourcePositionTree,
)

from bq_harper_assets.contract.loading.config_entry import (
    ConfigEntry,
    ExpandedText,
    NoValue,
    path_text,
)
from bq_harper_assets.contract.loading.problems import Problem
from bq_harper_assets.contract.loading.variables import Variables

MOST_VALUES = 100_000  # aliases of aliases can make a small file huge
_TAG = "tag:yaml.org,2002:"
_UNTYPED = [f"{_TAG}{kind}" for kind in ("bool", "int", "float", "timestamp", "value")]
_PLAIN_TAGS = frozenset(f"{_TAG}{kind}" for kind in ("map", "seq", "str"))
_TAGGED = "begins with !, which YAML reads as a tag: take it away, or put the text in quotes"
_NO_CHARACTER = re.compile("[\ud800-\udfff]")


def read_yaml(
    file: Path, name: str, variables: Variables, problems: list[Problem]
) -> ConfigEntry | None:
    """Reads the file's mapping; notes the problem and returns None if it has none."""
    try:
        text = file.read_bytes().decode("utf-8-sig")
        parsed = _parsed(name, text, problems)
    except OSError as error:
        problems.append(Problem(file=name, message=f"cannot be read: {error.strerror}"))
        return None
    except UnicodeDecodeError as error:
        message = f"is not UTF-8 text (byte {error.start}): save it as UTF-8"
        problems.append(Problem(file=name, message=message))
        return None
    except RecursionError:
        problems.append(Problem(file=name, message="is nested too deeply to be read"))
        return None
    except yaml.YAMLError as error:
        problems.append(_syntax_problem(name, text, error))
        return None
    if parsed is None:
        return None
    entry = ConfigEntry(*parsed)
    if not isinstance(entry.value, dict):
        problems.append(
            entry.key_problem("must hold keys at its top, such as bigquery: or tables:")
        )
        return None
    return ConfigEntry(_Expansion(variables, problems).of(entry), entry.positions)


def _parsed(name: str, text: str, problems: list[Problem]) -> ValueAndSourcePositionTree | None:
    # Without types, so that a tag is there only if somebody wrote one.
    node = yaml.compose(text, Loader=yaml.BaseLoader)
    if node is not None and not _is_plain(name, node, problems):
        return None
    for found in parse_yamls_with_source_position(text, name, _UNTYPED):
        if found.value is not None:
            return found
    top = SourcePosition(name, LineCol(0, 0), LineCol(0, 0))
    return ValueAndSourcePositionTree({}, SourcePositionTree(top, {}))


def _is_plain(name: str, root: yaml.Node, problems: list[Problem]) -> bool:
    """Says whether Dagster's parser can read on; tells equal keys, of which it would lose one."""
    is_plain = True
    waiting: list[tuple[yaml.Node, tuple[str | int, ...]]] = [(root, ())]
    known: set[int] = set()

    def note(node: yaml.Node, path: tuple[str | int, ...], message: str) -> None:
        line = node.start_mark.line + 1
        problems.append(Problem(file=name, message=message, line=line, path=path_text(path)))

    while waiting:
        node, path = waiting.pop()
        if id(node) in known:  # an alias
            continue
        known.add(id(node))
        if node.tag not in _PLAIN_TAGS:
            note(node, path, _TAGGED)
            is_plain = False
        elif isinstance(node, yaml.SequenceNode):
            waiting += [(inner, (*path, at)) for at, inner in enumerate(node.value)]
        elif isinstance(node, yaml.MappingNode):
            lines: dict[str, int] = {}
            for key, inner in node.value:
                if not isinstance(key, yaml.ScalarNode) or _is_null(key):
                    note(key, (*path, "?"), "a key must be plain text")
                    is_plain = False
                    continue
                if key.value in lines:
                    first = lines[key.value]
                    note(
                        key,
                        (*path, key.value),
                        f"is written twice, first in line {first}: keep one",
                    )
                lines.setdefault(key.value, key.start_mark.line + 1)
                waiting.append((inner, (*path, key.value)))
    return is_plain


def _is_null(key: yaml.ScalarNode) -> bool:
    return key.style is None and key.value in ("", "~", "null", "Null", "NULL")


def _syntax_problem(name: str, text: str, error: yaml.YAMLError) -> Problem:
    # Only the parser's own words: the snippet it would print may hold a password.
    line = 0
    message = "is not YAML"
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 0
        message = _in_words(error.problem or "", error.context or "")
    elif isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        message += f": it holds the control character U+{ord(text[error.position]):04X}"
    return Problem(file=name, message=message, line=line)


def _in_words(problem: str, context: str) -> str:
    if "another document" in problem:
        return "holds a second document after ---: take the line out, or make it a file of its own"
    if problem == "second occurrence":
        return "is not YAML: an anchor (&name) is defined twice; give each its own name"
    if "for merging" in problem:
        return "<< must name a mapping, as in <<: *name"
    if "recursive" in problem + context:
        return "an alias (*name) refers to itself: write it out"
    # These two would quote the text, and a password may begin with * or !.
    if "undefined alias" in problem:
        return (
            "is not YAML: * begins an alias that is nowhere defined; is it text? Put it in quotes"
        )
    if "tag handle" in problem:
        return f"is not YAML: a value {_TAGGED}"
    if "'\\t'" in problem:
        return f"is not YAML: {problem}; indent with spaces, not tabs"
    if "<block" in problem:
        return f"is not YAML: {problem}; is this line indented like the ones it belongs to?"
    return f"is not YAML: {problem}"


class _Expansion:
    """This puts variables into all values of a file, and counts the values."""

    def __init__(self, variables: Variables, problems: list[Problem]) -> None:
        self._variables = variables
        self._problems = problems
        self._count = 0

    def of(self, entry: ConfigEntry) -> Any:
        self._count += 1
        if self._count > MOST_VALUES:
            if self._count == MOST_VALUES + 1:
                message = f"the file holds more than {MOST_VALUES:,} values: its aliases multiply"
                self._broken(entry, message)
            return NoValue.BROKEN
        if isinstance(entry.value, dict):
            return {key: self.of(inner) for key, inner in entry.items()}
        if isinstance(entry.value, list):
            return [self.of(entry.below(at)) for at in range(len(entry.value))]
        return None if entry.value is None else self._text(entry)

    def _text(self, entry: ConfigEntry) -> str | NoValue | None:
        written = str(entry.value)
        if wrong_one := _NO_CHARACTER.search(written):
            message = f"holds U+{ord(wrong_one[0]):04X}, which is no character: take it out"
            return self._broken(entry, message)
        if "${" not in written:
            return written
        text, wrong = self._variables.expand(written)
        self._problems += [entry.problem(message) for message in wrong]
        if wrong:
            return NoValue.BROKEN
        # As with an empty value, nothing at all means that the key is left out.
        return ExpandedText(text, written) if text else None

    def _broken(self, entry: ConfigEntry, message: str) -> NoValue:
        self._problems.append(entry.key_problem(message))
        return NoValue.BROKEN
