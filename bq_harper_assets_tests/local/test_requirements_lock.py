"""The lock is complete and without addresses; a new dependency without `make lock` is seen."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bq_harper_assets.local.requirements_lock import LOCK, pins, problems_of, requirement_blocks

ROOT = Path(__file__).parents[2]
SAMPLE = """\
numpy==2.4.6 ; python_full_version < '3.12' \\
    --hash=sha256:aa
numpy==2.5.4 ; python_full_version >= '3.12' \\
    --hash=sha256:bb
    # via pandas
uv==0.13.7 \\
    --hash=sha256:cc
"""


def test_a_package_locked_per_python_version_stays_in_one_block() -> None:
    blocks = requirement_blocks(SAMPLE)
    assert list(blocks) == ["numpy", "uv"]
    assert "".join(blocks.values()) == SAMPLE


def test_pins_carry_their_markers() -> None:
    assert pins(SAMPLE) == {
        "numpy==2.4.6 ; python_full_version < '3.12'",
        "numpy==2.5.4 ; python_full_version >= '3.12'",
        "uv==0.13.7",
    }


def test_every_kind_of_problem_is_named() -> None:
    lock = "a==1 \\\n    --hash=sha256:aa\nb==2\n--index-url https://example.org/simple\n"
    assert problems_of(lock, {"a==1", "c==3"}) == [
        "pyproject.toml needs c==3",
        "pyproject.toml does not need b==2",
        "b has no hash",
        "line 4 holds an address: --index-url https://example.org/simple",
    ]


def test_our_own_lock_has_a_hash_for_every_package_and_no_address() -> None:
    lock = (ROOT / LOCK).read_text(encoding="utf-8")
    assert len(pins(lock)) > 100
    assert problems_of(lock, pins(lock)) == []


@pytest.mark.registry
def test_a_dependency_changed_without_a_new_lock_is_found(tmp_path: Path) -> None:
    shutil.copy(ROOT / LOCK, tmp_path)
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    changed = declared.replace('"pyyaml>=6.0"', '"pyyaml<6.0.3"')
    assert changed != declared
    (tmp_path / "pyproject.toml").write_text(changed, encoding="utf-8")
    check = [sys.executable, "-m", "bq_harper_assets.local.requirements_lock", "check"]
    done = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pyproject.toml needs pyyaml==" in done.stderr
    assert done.stderr.endswith("Run: make lock\n")
