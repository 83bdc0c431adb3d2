"""The benchmarks fit the package as it is: they reach into it, and nobody runs them every day."""

import importlib
from pathlib import Path

import pytest

import benchmarks
from benchmarks.parts_of_a_run import PARTS, timed

MODULES = sorted(file.stem for file in Path(benchmarks.__path__[0]).glob("*.py"))


@pytest.mark.parametrize("name", MODULES)
def test_every_benchmark_can_be_imported(name: str) -> None:
    importlib.import_module(f"benchmarks.{name}")


def test_the_parts_of_a_run_are_timed_and_left_as_they_were() -> None:
    before = {name: getattr(owner, function) for name, (owner, function) in PARTS.items()}
    with timed({}):
        inside = {name: getattr(owner, function) for name, (owner, function) in PARTS.items()}
    after = {name: getattr(owner, function) for name, (owner, function) in PARTS.items()}
    assert after == before
    assert not [name for name in PARTS if inside[name] is before[name]]
