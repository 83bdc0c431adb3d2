"""Lets bqemulator parse a statement once.

It parses each about twenty times, in every rule that asks what the statement is about, and that
takes more processor time than all else that it does for a small table.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

KEPT = 16  # some for each of the requests that are under way
LONGEST = 30_000  # characters; the tree of a long statement takes much memory

Parse = Callable[..., Any]


def remember_parsed_statements() -> None:
    """From now on sqlglot, as bqemulator calls it, remembers the last statements."""
    import sqlglot

    sqlglot.parse_one = remembering(sqlglot.parse_one)


def remembering(parse: Parse) -> Parse:
    """Returns a parser like the given one, of whose trees the callers may change each their own."""

    @lru_cache(maxsize=KEPT)
    def parsed(sql: str, read: str) -> Any:
        return parse(sql, read=read)

    def parse_one(sql: str, read: str | None = None, **options: Any) -> Any:
        if read is None or options or len(sql) > LONGEST:
            return parse(sql, read=read, **options)
        return parsed(sql, read).copy()

    return parse_one
