"""Every value knows where it stands."""

from pathlib import Path

from bq_harper_assets_tests.contract.loading.test_yaml_file import read


def test_every_value_knows_its_line(tmp_path: Path) -> None:
    entry, _ = read(tmp_path, "a: 1\nb:\n  - c: 2\n    d: [3,\n      4]\n")
    assert entry is not None
    for steps, line in [(("a",), 1), (("b",), 2), (("b", 0, "c"), 3), (("b", 0, "d", 1), 5)]:
        assert entry.below(*steps).where == f"a.yaml:{line}"
    assert entry.below("b", 0, "e").where == "a.yaml:3"
