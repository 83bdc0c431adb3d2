"""A project on disk, written by each test."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bq_harper_assets.contract.loading.problems import ConfigError
from bq_harper_assets.contract.project import Project, load_project

NOW = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)


class Disk:
    """A project's folder, loaded with nothing of this machine's environment."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, name: str, text: str) -> Path:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def tables(self, text: str) -> "Disk":
        self.write("config/tables.yaml", text)
        return self

    def load(self, environ: Mapping[str, str] | None = None, **options: Any) -> Project:
        return load_project(self.root, environ=environ or {}, **{"now": NOW, **options})

    def refusal(self, environ: Mapping[str, str] | None = None, **options: Any) -> str:
        with pytest.raises(ConfigError) as caught:
            self.load(environ, **options)
        assert caught.value.exit_code == 2
        assert caught.value.__cause__ is None
        return str(caught.value)


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


@pytest.fixture
def one_table(disk: Disk) -> Callable[[str], Disk]:
    """A project with a single valid table and the given further lines in it."""

    def write(lines: str = "") -> Disk:
        more = "".join(f"\n    {line}" for line in lines.splitlines())
        return disk.tables(
            "tables:\n"
            "  - id: orders\n"
            "    dataset: shop\n"
            "    table: orders\n"
            "    timestampColumn: created_at\n"
            f"    targetTable: Orders{more}\n"
        )

    return write
