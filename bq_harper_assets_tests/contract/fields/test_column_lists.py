"""Lists of columns as users write them: what is taken, and which part of the rest is wrong."""

from typing import Any

import pytest

from bq_harper_assets.contract.fields.column_lists import (
    ALL_COLUMNS,
    COLUMNS,
    KEY,
    RENAMES,
    refuse_wrong_paths,
)
from bq_harper_assets.contract.fields.declared_model import Wrong

TWICE = "is listed twice (upper and lower case are the same): keep one"


def _faults(read: Any, value: Any) -> dict[Any, str]:
    """What is wrong, by the place in the value."""
    with pytest.raises(Wrong) as caught:
        read(value)
    return {fault.steps[0]: fault.message for fault in caught.value.faults}


def test_a_star_means_all_columns_alone_or_in_a_list_and_nowhere_else() -> None:
    assert COLUMNS.parse("*") == COLUMNS.parse(["*"]) == ALL_COLUMNS
    assert COLUMNS.parse(["a", "b"]) == ("a", "b")
    told = _faults(COLUMNS.parse, ["a", "*"])
    assert told == {1: "'*' means all columns and stands alone"}


def test_each_wrong_name_of_a_list_is_told_at_its_own_place() -> None:
    told = _faults(COLUMNS.parse, ["speed", "", "Speed", "name", "a`b"])
    assert list(told) == [1, 2, 4]
    assert told[2] == TWICE


@pytest.mark.parametrize("value", [[], "speed", {"a": "b"}, None, 7])
def test_what_is_no_list_of_columns_is_refused_with_what_to_do(value: Any) -> None:
    with pytest.raises(ValueError, match=r"list of column names|name the columns"):
        COLUMNS.parse(value)


def test_a_key_may_be_one_name_but_not_none() -> None:
    assert KEY.parse("id") == ("id",)
    assert KEY.parse(["region", "id"]) == ("region", "id")
    assert _faults(KEY.parse, ["id", "ID"]) == {1: TWICE}
    for value in ([], {}, None):
        with pytest.raises(ValueError, match="leave it out if rows have no key"):
            KEY.parse(value)


def test_a_path_names_a_field_inside_a_column_and_each_name_of_it_is_looked_at() -> None:
    paths = {"address": 1, "address.zip": 2}
    assert refuse_wrong_paths(paths) == paths
    told = _faults(refuse_wrong_paths, {"address.zip": 1, "Address.ZIP": 2, "address..zip": 3})
    assert list(told) == ["Address.ZIP", "address..zip"]
    assert told["Address.ZIP"] == TWICE


def test_a_rename_has_two_names_and_a_target_of_its_own() -> None:
    assert RENAMES.parse({"old": "new", "was": "name"}) == {"old": "new", "was": "name"}
    told = _faults(RENAMES.parse, {"a": "A", "b": "c", "d": "C"})
    assert told == {"a": "is renamed to itself: take it out", "d": TWICE}
    with pytest.raises(ValueError, match="must be a block of old: new"):
        RENAMES.parse(["a", "b"])
