"""The folders of stores have one shape: whoever knows one of them finds a page in another."""

from pathlib import Path

import pytest

from bq_harper_assets import stores

STORES = sorted(each for each in Path(stores.__file__).parent.iterdir() if each.is_dir())
PAGES = ("client", "errors", "probe", "resource", "schema", "types")


@pytest.mark.parametrize("store", [s for s in STORES if s.name != "__pycache__"], ids=str)
def test_a_store_has_the_pages_that_every_store_has(store: Path) -> None:
    there = {module.stem for module in store.glob("*.py")}
    assert [page for page in PAGES if page not in there] == []
    assert there & {"source", "target"}
