"""What a user reads when a configuration is wrong: the full text, for one mistake after another.

Each file of data/mistakes holds a user's files and what is told of them; {root} is the project.
"""

import re
from pathlib import Path

import pytest

from bq_harper_assets_tests.contract.conftest import Disk

MISTAKES = sorted((Path(__file__).parent / "data" / "mistakes").glob("*.txt"))


def sections(mistake: Path) -> dict[str, str]:
    parts = re.split(r"^--- (.+)\n", mistake.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.promise("E1")
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda file: file.stem)
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
