"""What a user reads when a configuration is wrong: the full text, for one mistake after another.

Each file of data/mistakes holds a user's files and what is told of them; {root} is the project.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from bq_harper_assets_tests.contract.conftest import Disk

MISTAKES = sorted((Path(__file__).parents[1] / "data" / "mistakes").glob("*.txt"))


# What users of the older plugin met most.
COMMON = {"timestamp-not-in-columns", "two-tables-in-one-target", "a-missing-key-file"}


def _marked() -> Iterator[ParameterSet]:
    for file in MISTAKES:
        marks = [pytest.mark.promise("G12")] if file.stem in COMMON else []
        yield pytest.param(file, id=file.stem, marks=marks)


def sections(mistake: Path) -> dict[str, str]:
    parts = re.split(r"^--- (.+)\n", mistake.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.promise("E1")
@pytest.mark.parametrize("mistake", [*_marked()])
def test_each_mistake_gets_the_message_a_user_needs(mistake: Path, disk: Disk) -> None:
    written = sections(mistake)
    told = written.pop("told").rstrip("\n")
    variables = written.pop("environment", "").splitlines()
    profile = written.pop("profile", "").strip() or None
    for name, text in written.items():
        disk.write(name, text)
    environ = dict(line.split("=", 1) for line in variables)
    assert disk.refusal(environ, profile=profile).replace(str(disk.root), "{root}") == told


def test_there_are_at_least_twenty_mistakes() -> None:
    assert len(MISTAKES) >= 20
    assert {file.stem for file in MISTAKES} >= COMMON
