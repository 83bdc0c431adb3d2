"""The emulator parses a statement once, and gives every rule a tree of its own."""

from typing import Any

import pytest
import sqlglot
from bqemulator.catalog import ddl_sync
from sqlglot.errors import ParseError

from bq_harper_assets.local.emulator_parsing import (
    KEPT,
    LONGEST,
    remember_parsed_statements,
    remembering,
)


class Counted:
    """sqlglot's own parser; it notes what it is asked to parse."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._parse = sqlglot.parse_one

    def __call__(self, sql: str, **options: Any) -> Any:
        self.asked.append(sql)
        return self._parse(sql, **options)


def test_a_tree_that_a_caller_changes_is_not_the_next_ones() -> None:
    parse = remembering(counted := Counted())
    first = parse("SELECT a FROM t", read="bigquery")
    first.find(sqlglot.exp.Table).replace(sqlglot.exp.to_table("other"))
    assert first.sql() == "SELECT a FROM other"
    assert parse("SELECT a FROM t", read="bigquery").sql() == "SELECT a FROM t"
    assert len(counted.asked) == 1


def test_what_is_asked_otherwise_is_parsed_otherwise() -> None:
    parse = remembering(counted := Counted())
    quoted = "SELECT `a`"
    assert parse(quoted, read="bigquery").sql("duckdb") == 'SELECT "a"'
    with pytest.raises(sqlglot.errors.SqlglotError):
        parse(quoted, read="duckdb")
    assert isinstance(parse("a", read="bigquery", into=sqlglot.exp.Table), sqlglot.exp.Table)
    assert isinstance(parse("a", read="bigquery"), sqlglot.exp.Column)
    assert len(counted.asked) == 4


def test_a_statement_that_cannot_be_parsed_is_refused_each_time() -> None:
    parse = remembering(Counted())
    for _ in range(2):
        with pytest.raises(ParseError):
            parse("SELECT (", read="bigquery")


def test_only_the_last_statements_and_no_long_one_are_kept() -> None:
    parse = remembering(counted := Counted())
    for number in (*range(KEPT + 1), 0):
        parse(f"SELECT {number}", read="bigquery")
    assert len(counted.asked) == KEPT + 2
    long = f"SELECT '{'x' * LONGEST}'"
    for _ in range(2):
        parse(long, read="bigquery")
    assert counted.asked[-2:] == [long, long]


def test_bqemulator_parses_a_statement_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted()
    monkeypatch.setattr(sqlglot, "parse_one", counted)
    remember_parsed_statements()
    statement = "CREATE TABLE d.t (n INT64)"
    for _ in range(2):
        assert ddl_sync._detect_plain_create_table(statement)
    assert counted.asked == [statement]
