"""SQL that users write cannot leave the parentheses it is put in."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.contract.sql_text import custom_query, row_filter

PIECES = st.sampled_from(
    [
        "'",
        '"',
        "`",
        "'''",
        '"""',
        "\\",
        "\n",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ";",
        "--",
        "#",
        "/*",
        "*/",
        "@",
        "a",
        "r",
        "b",
        "r'",
        'B"',
        " ",
        "SELECT",
        "1",
        "é",
        "\0",
        ",",
        "=",
        "x.y",
    ]
)


def depth_outside_quotes(sql: str) -> list[int]:
    """An independent reading: how deep in parentheses each character outside quotes is."""
    depths: list[int] = []
    depth = 0
    quote = ""
    at = 0
    while at < len(sql):
        if quote:
            if sql[at] == "\\":
                at += 2
                continue
            if sql.startswith(quote, at):
                at += len(quote)
                quote = ""
                continue
            assert len(quote) == 3 or sql[at] not in "\r\n", "the quote ends with its line"
        else:
            for opening in ("'''", '"""', "'", '"', "`"):
                if sql.startswith(opening, at):
                    quote = opening
                    break
            if quote:
                at += len(quote)
                continue
            assert sql[at] not in ";#\0"
            assert not sql.startswith(("--", "/*"), at)
            depth += (sql[at] in "([{") - (sql[at] in ")]}")
            depths.append(depth)
        at += 1
    assert not quote
    return depths


@given(text=st.lists(PIECES, min_size=1, max_size=14).map("".join))
@settings(deadline=None, max_examples=600)
def test_any_text_is_refused_or_stays_inside_its_parentheses(text: str) -> None:
    try:
        taken = row_filter(text)
    except ValueError:
        return
    assert taken == text.strip()
    inside = depth_outside_quotes(f"({taken})")
    assert inside[-1] == 0
    assert min(inside[:-1]) >= 1


@pytest.mark.parametrize(
    "text",
    [
        "status = 'paid'",
        "a = ')' AND b = '--' AND c = '#;'",
        "a = 'it\\'s (' OR b = \"x)\"",
        "`odd ) name` > 1",
        "a = '''line\none'''",
        "a = r'\\d+(' AND REGEXP_CONTAINS(b, r\"[)]\")",
        "EXTRACT(DAY FROM created_at) = 1",
        "arr[OFFSET(0)] = STRUCT(1 AS x).x",
        "project = @@project_id",
        "rand = 1 AND t.current_date = 2 AND `current_timestamp` > a",
        "a = 'RAND()' AND my_rand(a) > 1",
    ],
)
def test_a_condition_is_taken(text: str) -> None:
    assert row_filter(text) == text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1 = 1) OR (1 = 1", "closes ) that was not opened (character 6)"),
        ("(1 = 1", "opens ( (character 1) and does not close it"),
        ("(1 = 1]", "closes ] that was not opened"),
        ("a = 'x", "opens ' (character 5) and does not close it"),
        ("a = 'x\n'", "opens ' (character 5)"),
        ("a = 'x\\'", "opens ' (character 5)"),
        ("a = `b", "opens ` (character 5)"),
        ("a = 1 -- x", "holds a comment (character 7)"),
        ("a = 1 # x", "holds a comment"),
        ("a /* x */ = 1", "holds a comment"),
        ("a = 1; DELETE FROM b WHERE TRUE", "holds ; (character 6)"),
        ("a IN (SELECT b FROM c)", "use customQuery"),
        ("a IN (FROM c |> AGGREGATE MAX(b))", "use customQuery"),
        ("a > @start", "holds the parameter @start"),
        ("a = '\ud800'", "U+D800 (character 6), which is no character"),
        ("a > @`lastTimestamp`", "the time window is added"),
        ("a = \0", "control character U+0000"),
        ("  ", "is blank"),
        (5, "must be SQL text"),
    ],
)
def test_a_condition_that_could_break_out_is_refused(text: object, told: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        row_filter(text)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 AS a",
        "select * from `p.d.t`",
        "WITH x AS (SELECT 1) SELECT * FROM x",
        "\n SELECT 'a;b' ",
    ],
)
def test_a_query_is_taken(text: str) -> None:
    assert custom_query(text) == text.strip()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("DELETE FROM x", "must begin with SELECT or WITH"),
        ("'SELECT'", "must begin with SELECT or WITH"),
        ("(SELECT 1)", "must begin with SELECT or WITH"),
        ("SELECT 1;", "one statement, without a semicolon"),
        ("SELECT 1) UNION ALL (SELECT 2", "closes )"),
        ("SELECT * FROM a WHERE b > @lastTimestamp", "the time window is added around the query"),
        ("SELECT 1 -- all", "holds a comment"),
    ],
)
def test_a_query_that_could_break_out_is_refused(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        custom_query(text)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("a > CURRENT_TIMESTAMP()", "CURRENT_TIMESTAMP"),
        ("a > current_timestamp", "CURRENT_TIMESTAMP"),
        ("a = CURRENT_DATE", "CURRENT_DATE"),
        ("a > CURRENT_DATETIME('UTC')", "CURRENT_DATETIME"),
        ("a > SAFE.CURRENT_TIME ()", "CURRENT_TIME"),
        ("RAND() < 0.5", "RAND"),
        ("`rand`() < 0.5", "RAND"),
        ("a = GENERATE_UUID()", "GENERATE_UUID"),
        ("a = SESSION_USER()", "SESSION_USER"),
        ("a = @@session_id", "@@session_id"),
    ],
)
def test_sql_that_would_answer_differently_later_is_refused(text: str, named: str) -> None:
    for read, sql in ((row_filter, text), (custom_query, f"SELECT * FROM t WHERE {text}")):
        with pytest.raises(ValueError, match="the same rows each time") as caught:
            read(sql)
        assert f"holds {named} (character " in str(caught.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("SELECT * FROM t TABLESAMPLE SYSTEM (10 PERCENT)", "holds TABLESAMPLE (character 17)"),
        ("SELECT * FROM EXTERNAL_QUERY('c', 'q')", "holds EXTERNAL_QUERY (character 15)"),
        ("SELECT * FROM t FOR SYSTEM_TIME AS OF '2026-01-01'", "the sync pins it itself"),
        ("SELECT * FROM t for system time AS OF '2026-01-01'", "the sync pins it itself"),
    ],
)
def test_a_query_that_chooses_its_own_moment_or_sample_is_refused(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        custom_query(text)
    assert told in str(caught.value)


def test_a_column_may_be_called_like_a_function() -> None:
    text = "SELECT t.current_date, a AS rand, b AS current_time FROM t"
    assert custom_query(text) == text


def test_a_backslash_takes_one_character_along() -> None:
    for sql in (r"a = '\''", r"a = '\\'", r'a = """\""""', "a = 'x' AND b = 'y'"):
        assert row_filter(sql) == sql
    for sql in (r"a = '\'", "a = 'x\ny'", "a = 'x\ry'", "a = '", "a = '''x'"):
        with pytest.raises(ValueError, match=r"opens .* and does not close it"):
            row_filter(sql)


@pytest.mark.parametrize("code", [0xD800, 0xDFFF])
def test_half_a_character_is_refused_with_its_place(code: int) -> None:
    with pytest.raises(ValueError, match=rf"holds U\+{code:04X} \(character 6\)"):
        row_filter(f"a = '{chr(code)}'")
    assert row_filter("a = '\ue000'") == "a = '\ue000'"
