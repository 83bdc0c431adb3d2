"""Variables in YAML: what is put in, and what is told where it cannot be."""

from pathlib import Path

import pytest

from bq_harper_assets_tests.contract.loading.test_yaml_file import read, value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${X}", "x"),
        ("a-${X}-${Y:-d}", "a-x-d"),
        ("${X:-d}", "x"),
        ("${Y:-}", None),
        ("${EMPTY:-d}", "d"),
        ("$${X}", "${X}"),
        ("$X {X}", "$X {X}"),
        ("${INJECTED}", "b: [c] # d\ne: f"),
    ],
)
def test_variables_are_put_in_as_text(text: str, expected: object, tmp_path: Path) -> None:
    assert value(tmp_path, f"a: {text}", X="x", EMPTY="", INJECTED="b: [c] # d\ne: f") == {
        "a": expected
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: ${X}", "the variable X is not set"),
        ("a: ${EMPTY}", "the variable EMPTY is not set"),
        ("a: ${1X}", "write ${NAME} or ${NAME:-default}"),
        ("a: ${X", "write ${NAME}"),
    ],
)
def test_a_variable_that_cannot_be_put_in_is_told(text: str, told: str, tmp_path: Path) -> None:
    _, (problem,) = read(tmp_path, text, EMPTY="")
    assert told in problem.message
    assert (problem.line, problem.path) == (1, "a")
