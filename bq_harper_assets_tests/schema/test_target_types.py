"""The schema belongs to no store: what is one store's is asked of it through TargetTypes."""

import re
from pathlib import Path

import pytest

from bq_harper_assets import schema

MODULES = sorted(Path(schema.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.stem)
def test_no_module_of_the_schema_has_a_store_s_name_or_imports_one(module: Path) -> None:
    text = module.read_text(encoding="utf-8")
    # The folder of the package is named for two stores.
    words = text.replace("bq_harper_assets", "")
    assert re.findall(r"(?i)harper|bigquery|mysql|sqlite", words) == []
    assert "bq_harper_assets.stores" not in text
