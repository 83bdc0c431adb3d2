"""One YAML file, read so that every value has its line, with variables put in.

Types follow YAML 1.2: `no`, `on` and `1:30` are text here, so a column may be called `no`.
"""

import re
from pathlib import Path
from typing import Any

import yaml

from bq_harper_assets.contract.loading.located import Expanded, Located, Place
from bq_harper_assets.contract.loading.problems import Problem
from bq_harper_assets.contract.loading.variables import Variables

MOST_VALUES = 100_000  # aliases of aliases can make a small file huge
MOST_NESTED = 40  # far more than any key needs, far less than Python's stack holds
_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"
_TEXT = f"{_TAG}str"
_PLAIN_TAGS = frozenset(
    f"{_TAG}{kind}"
    for kind in ("map", "seq", "str", "null", "bool", "int", "float", "timestamp", "value")
)
_NULL = re.compile(r"(?:~|null|Null|NULL)?")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_TAGGED = "begins with !, which YAML reads as a tag: take it away, or put the text in quotes"
_NO_CHARACTER = re.compile("[\ud800-\udfff]")


def read_yaml(
    file: Path, name: str, variables: Variables, problems: list[Problem]
) -> Located | None:
    """The file's mapping, empty for an empty file; None, with the problem noted, if it has none."""
    try:
        text = file.read_bytes().decode("utf-8-sig")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except OSError as error:
        problems.append(
            Problem(
                file=name, line=0, path="", value=None, message=f"cannot be read: {error.strerror}"
            )
        )
        return None
    except UnicodeDecodeError as error:
        problems.append(
            Problem(
                file=name,
                line=0,
                path="",
                value=None,
                message=f"is not UTF-8 text (byte {error.start}): save it as UTF-8",
            )
        )
        return None
    except RecursionError:
        problems.append(
            Problem(
                file=name, line=0, path="", value=None, message="is nested too deeply to be read"
            )
        )
        return None
    except yaml.YAMLError as error:
        problems.append(_syntax_problem(name, text, error))
        return None
    if node is None:
        return Located(Place(name), {})
    located = _Reader(variables, problems).read(node, Place(name, _line(node)))
    if located.value is None:
        return located.with_keys({})
    if not isinstance(located.value, dict):
        message = "must hold keys at its top, such as bigquery: or tables:"
        problems.append(Problem(file=name, line=_line(node), path="", value=None, message=message))
        return None
    return located


def _syntax_problem(name: str, text: str, error: yaml.YAMLError) -> Problem:
    # Only the parser's own words: the snippet it would print may hold a password.
    line = 0
    message = "is not YAML"
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 0
        message = _in_words(error.problem or "")
    elif isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        message += f": it holds the control character U+{ord(text[error.position]):04X}"
    return Problem(file=name, line=line, path="", value=None, message=message)


def _in_words(problem: str) -> str:
    if "another document" in problem:
        return "holds a second document after ---: take the line out, or make it a file of its own"
    if problem == "second occurrence":
        return "is not YAML: an anchor (&name) is defined twice; give each its own name"
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


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


class _Reader:
    def __init__(self, variables: Variables, problems: list[Problem]) -> None:
        self._variables = variables
        self._problems = problems
        self._open: set[int] = set()
        self._count = 0

    def read(self, node: yaml.Node, place: Place) -> Located:
        self._count += 1
        if id(node) in self._open:
            return self._broken(place, "refers to itself: write it out")
        if len(self._open) > MOST_NESTED:
            return self._broken(place, "is nested too deeply to be read")
        if node.tag not in _PLAIN_TAGS:
            return self._broken(place, _TAGGED)
        if self._count > MOST_VALUES:
            if self._count == MOST_VALUES + 1:
                message = f"the file holds more than {MOST_VALUES:,} values: its aliases multiply"
                return self._broken(place, message)
            return Located(place, None, broken=True)
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return Located(place, self._mapping(node, place))
            if isinstance(node, yaml.SequenceNode):
                items = enumerate(node.value)
                return Located(
                    place, tuple(self.read(n, place.below(i, _line(n))) for i, n in items)
                )
            return self._scalar(node, place)
        finally:
            self._open.discard(id(node))

    def _broken(self, place: Place, message: str) -> Located:
        self._problems.append(Located(place, None).key_problem(message))
        return Located(place, None, broken=True)

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Located]:
        found: dict[str, Located] = {}
        merged: dict[str, Located] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._problems.append(
                    Located(place.below("?", _line(key_node)), None).key_problem(
                        "a key must be plain text"
                    )
                )
            elif key_node.tag == _MERGE:
                self._merge(merged, value_node, place)
            elif key_node.value in found:
                first = found[key_node.value].place.line
                self._problems.append(
                    Located(place.below(key_node.value, _line(key_node)), None).key_problem(
                        f"is written twice, first in line {first}: keep one"
                    )
                )
            else:
                key = str(key_node.value)
                found[key] = self.read(value_node, place.below(key, _line(key_node)))
        return merged | found

    def _merge(self, into: dict[str, Located], node: yaml.Node, place: Place) -> None:
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for source in sources:
            if isinstance(source, yaml.MappingNode):
                for key, value in self.read(source, place).mapping.items():
                    into.setdefault(key, value)
            else:
                self._problems.append(
                    Located(place.below("<<", _line(node)), None).key_problem(
                        "must name a mapping, as in <<: *name"
                    )
                )

    def _scalar(self, node: yaml.Node, place: Place) -> Located:
        raw = str(node.value)
        if wrong_one := _NO_CHARACTER.search(raw):
            message = f"holds U+{ord(wrong_one[0]):04X}, which is no character: take it out"
            return self._broken(place, message)
        if "${" not in raw:
            # A quoted or block scalar is text; only a plain one has a type.
            return Located(place, _typed(raw) if _is_plain(node) else raw, raw)
        text, wrong = self._variables.expand(raw)
        for message in wrong:
            self._problems.append(Located(place, raw, raw).problem(message))
        # As with a plain scalar, nothing at all means that the key is left out.
        return Located(
            place, Expanded(text) if text and not wrong else None, raw, broken=bool(wrong)
        )


def _is_plain(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.style is None and node.tag != _TEXT


def _typed(text: str) -> Any:
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text.lower() == "true"
    if _INT.fullmatch(text):
        return int(text) if len(text) < 20 else text
    if _FLOAT.fullmatch(text):
        return float(text)
    return text
