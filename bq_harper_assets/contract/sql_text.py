"""rowFilter and customQuery are SQL that users write and we put inside parentheses of our own.

It is read by the lexical rules of GoogleSQL, far enough to know that it cannot end the parentheses,
start a second statement or hide what follows it in a comment; and that it says nothing that
would give other rows when the same snapshot is read again.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

_TOKEN = re.compile(
    r"""
    (?P<quoted>(?:\b(?:[rR][bB]?|[bB][rR]?))?(?P<quote>'''|\"\"\"|'|"|`))
  | (?P<comment>\#|--|/\*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<parameter>@@?)
  | (?P<space>\s+)
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_CLOSING = {")": "(", "]": "[", "}": "{"}
_CLOCKS = frozenset({"CURRENT_DATE", "CURRENT_DATETIME", "CURRENT_TIME", "CURRENT_TIMESTAMP"})
_VARYING_CALLS = _CLOCKS | {"RAND", "GENERATE_UUID", "SESSION_USER", "EXTERNAL_QUERY"}
_STEADY_VARIABLES = ("project_id",)


@dataclass(frozen=True)
class Token:
    """A token is a piece of SQL; its kind is quoted, comment, word, parameter or other."""

    kind: str
    text: str
    at: int  # 1-based

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.text.upper() in words


_NOTHING = Token("", "", 0)


def row_filter(value: Any) -> str:
    """Reads a condition on the row's own columns that is safe inside WHERE ( ... )."""
    text = _sql(value)
    tokens = list(_checked(text))
    for before, token in pairwise((_NOTHING, *tokens)):
        # A pipe query needs no SELECT; elsewhere FROM is a part of EXTRACT(DAY FROM a).
        if token.is_word("SELECT") or (token.is_word("FROM") and before.text == "("):
            raise ValueError(
                "is a condition on the row's own columns: for a SELECT inside it use customQuery"
            )
    _refuse_what_varies(tokens)
    return text


def custom_query(value: Any) -> str:
    """Reads one SELECT that is safe inside FROM ( ... )."""
    text = _sql(value)
    tokens = list(_checked(text))
    if tokens[0].kind != "word" or tokens[0].text.upper() not in ("SELECT", "WITH"):
        raise ValueError("must begin with SELECT or WITH")
    _refuse_what_varies(tokens)
    return text


def _sql(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("must be SQL text")
    if not value.strip():
        raise ValueError("is blank: write the SQL, or leave the key out")
    text = str(value).strip()
    for at, char in enumerate(text, start=1):
        if "\ud800" <= char <= "\udfff":
            raise ValueError(f"holds U+{ord(char):04X} (character {at}), which is no character")
    return text


def _refuse_what_varies(tokens: list[Token]) -> None:
    """Refuses what changes with time, user or luck: a cell is proved by reading it again."""
    for before, token, after in zip(
        (_NOTHING, *tokens), tokens, (*tokens[1:], _NOTHING), strict=False
    ):
        name = token.text.strip("`").upper()
        if token.is_word("FOR") and after.is_word("SYSTEM_TIME", "SYSTEM"):
            raise ValueError(
                f"holds FOR SYSTEM_TIME (character {token.at}): take it out; the moment that is "
                "read is the same for a whole run, the sync pins it itself"
            )
        called = name in _VARYING_CALLS and after.text == "("
        # Without parentheses it is the clock too, unless it is a field or a name that is given.
        bare = token.is_word(*_CLOCKS) and before.text != "." and not before.is_word("AS")
        if before.text == "@@" and token.text.lower() not in _STEADY_VARIABLES:
            name = f"@@{token.text}"
        elif not (called or bare or token.is_word("TABLESAMPLE")):
            continue
        raise ValueError(
            f"holds {name} (character {token.at}), but a window must give the same rows each time "
            "it is read: use a column or a fixed value; a column of this name goes into `backticks`"
        )


def _checked(text: str) -> Iterator[Token]:
    opened: list[Token] = []
    before: Token | None = None
    for token in _tokens(text):
        if token.kind == "comment":
            raise ValueError(
                f"holds a comment (character {token.at}): put it into the YAML instead"
            )
        if token.text == ";":
            raise ValueError(f"holds ; (character {token.at}): one statement, without a semicolon")
        if token.text in "([{" and token.kind == "other":
            opened.append(token)
        elif token.text in _CLOSING:
            if not opened or opened.pop().text != _CLOSING[token.text]:
                raise ValueError(f"closes {token.text} that was not opened (character {token.at})")
        elif before is not None and before.text == "@" and token.kind in ("word", "quoted"):
            if token.text.strip("`").lower() == "lasttimestamp":
                raise ValueError(
                    "must not hold @lastTimestamp: the time window is added around the query; "
                    "take that condition out"
                )
            raise ValueError(
                f"holds the parameter @{token.text}: there are none; write the value itself"
            )
        before = token
        yield token
    if opened:
        raise ValueError(
            f"opens {opened[-1].text} (character {opened[-1].at}) and does not close it"
        )


def _tokens(text: str) -> Iterator[Token]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match is not None
        kind = match.lastgroup or ""
        end = match.end()
        if match["quoted"]:
            closed = _end_of_quoted(text, match.end(), match["quote"])
            if closed is None:
                raise ValueError(
                    f"opens {match['quote']} (character {at + 1}) and does not close it"
                )
            kind, end = "quoted", closed
        elif kind == "other" and not match[0].isprintable():
            raise ValueError(
                f"holds the control character U+{ord(match[0]):04X} (character {at + 1})"
            )
        if kind != "space":
            yield Token(kind, text[at:end], at + 1)
        at = end


def _end_of_quoted(text: str, at: int, quote: str) -> int | None:
    # A backslash takes the next character along in raw strings too, so one rule serves all kinds.
    while at < len(text):
        if text[at] == "\\":
            at += 2
        elif text.startswith(quote, at):
            return at + len(quote)
        elif text[at] in "\r\n" and len(quote) == 1:
            return None
        else:
            at += 1
    return None
