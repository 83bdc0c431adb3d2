"""Names cannot break out of the SQL, the table or the path they are put in."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.contract.identifiers import (
    RESERVED_TARGETS,
    column_name,
    contract_id,
    dataset_name,
    project_name,
    quoted,
    table_name,
    target_name,
)

Check = Callable[[Any], str]
CHECKS: list[Check] = [
    project_name,
    dataset_name,
    table_name,
    column_name,
    contract_id,
    target_name,
]
NASTY = "`'\"\\;/.\n\r\t\0\u202e\u200b#--/*)( \ufeff$*@?"
TEXTS = st.one_of(st.text(max_size=20), st.text(alphabet=NASTY + "abcÄ_-1", max_size=12))


def unquoted(text: str) -> list[str]:
    """Reads quoted names as BigQuery does: backticks, in which a backslash escapes."""
    names: list[str] = []
    at = 0
    while at < len(text):
        assert text[at] == "`"
        at += 1
        name = ""
        while text[at] != "`":
            assert text[at] != "\\", "an escape would change the name"
            name += text[at]
            at += 1
        names.append(name)
        at += 1
        if at < len(text):
            assert text[at] == "."
            at += 1
    return names


@pytest.mark.promise("G2")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@given(text=TEXTS)
@settings(deadline=None, max_examples=150)
def test_any_text_is_refused_or_survives_quoting_unchanged(check: Check, text: str) -> None:
    try:
        name = check(text)
    except ValueError:
        return
    assert name == text
    assert unquoted(quoted("project", name, "x")) == ["project", name, "x"]
    assert not set("`'\"\\;/\n\r\0") & set(name)


@given(names=st.lists(TEXTS, min_size=1, max_size=3))
@settings(deadline=None, max_examples=150)
def test_quoting_alone_already_refuses_what_it_cannot_hold(names: list[str]) -> None:
    try:
        text = quoted(*names)
    except ValueError:
        return
    assert unquoted(text) == names


@pytest.mark.promise("G2")
@pytest.mark.parametrize(
    ("check", "name"),
    [
        (project_name, "maritime-demo"),
        (project_name, "example.com:my-project"),
        (dataset_name, "production"),
        (table_name, "daily-orders"),
        (table_name, "order lines 2026"),
        (table_name, "Bestellübersicht"),
        (table_name, "select"),
        (table_name, "注文"),
        (column_name, "select"),
        (column_name, "Straße-Nr 1"),
        (column_name, "a:b=c"),
        (column_name, "id"),
        (contract_id, "user_events"),
        (target_name, "UserEvents2"),
    ],
)
def test_what_bigquery_allows_is_allowed(check: Check, name: str) -> None:
    assert check(name) == name


@pytest.mark.parametrize(
    ("check", "name", "told"),
    [
        (project_name, "My_Project", "is not a project id"),
        (project_name, 5, "must be text"),
        (dataset_name, "project.dataset", "the project goes into projectId"),
        (table_name, "events_*", "for a wildcard or a partition use customQuery"),
        (table_name, "events$20260101", "use customQuery"),
        (table_name, "a" * 1025, "longer than 1024 bytes"),
        (table_name, "a\u202eb", "U+202E (character 2)"),
        (table_name, " a", "begins or ends with a space"),
        (table_name, "", "is blank"),
        (column_name, "address.city", "nested fields come along whole"),
        (column_name, "ä" * 126, "longer than 250 bytes"),
        (column_name, "it's", 'holds no "\'" (character 3)'),
        (column_name, "_syncedAt", "SELECT _syncedAt AS"),
        (column_name, "_SYNCEDAT", "_syncedAt is written by the sync"),
        (column_name, "_batch", "written by the sync"),
        (column_name, "_hash", "written by the sync"),
        (column_name, "_deletedAt", "written by the sync"),
        (column_name, "__proto__", "Harper refuses an attribute of this name"),
        (column_name, "constructor", "Harper refuses an attribute of this name"),
        (column_name, "_PARTITIONTIME", "SELECT *, _PARTITIONTIME AS"),
        (column_name, "_table_suffix", "begin with _TABLE_"),
        (column_name, "_FILE_NAME", "begin with _FILE_"),
        (contract_id, "1st", "t_1st, for instance"),
        (contract_id, "a b-c", "a_b_c, for instance"),
        (contract_id, "a" * 129, "longer than 128"),
        (contract_id, "é", "a letter first"),
        (target_name, "Sync-Checkpoint", "Sync_Checkpoint, for instance"),
        *((target_name, name, "a table of the sync itself") for name in RESERVED_TARGETS),
        (target_name, "synccheckpoint", "SyncCheckpoint is a table of the sync itself"),
    ],
)
def test_what_cannot_be_is_refused_with_the_way_out(check: Check, name: object, told: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        check(name)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("check", "longest"),
    [(table_name, "a" * 1024), (column_name, "ä" * 125), (contract_id, "a" * 128)],
)
def test_a_name_may_be_as_long_as_the_stores_take_it(check: Check, longest: str) -> None:
    assert check(longest) == longest


@pytest.mark.parametrize("name", ["", "a`b", "a\\b", "a\nb", "a\u200bb"])
def test_what_could_end_a_quoted_name_or_hide_in_it_is_not_quoted(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be quoted"):
        quoted("shop", name)
