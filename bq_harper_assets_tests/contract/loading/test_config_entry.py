"""Every value knows where it stands."""

from pathlib import Path

from bq_harper_assets.contract.loading.config_entry import ConfigEntry, NoValue
from bq_harper_assets_tests.contract.loading.test_yaml_file import read


def test_every_value_knows_its_line(tmp_path: Path) -> None:
    entry, _ = read(tmp_path, "a: 1\nb:\n  - c: 2\n    d: [3,\n      4]\n")
    assert entry is not None
    for steps, line in [(("a",), 1), (("b",), 2), (("b", 0, "c"), 3), (("b", 0, "d", 1), 5)]:
        assert entry.below(*steps).where == f"a.yaml:{line}"
    assert entry.below("b", 0, "e").where == "a.yaml:3"


def test_what_is_shown_of_a_value_has_at_most_60_characters() -> None:
    def shown(value: object, name: str = "a") -> str:
        return ConfigEntry.without_lines("f", name, value).shown()

    assert shown("x" * 60) == "x" * 60
    assert shown("x" * 61) == "x" * 57 + "..."
    assert shown("a\nb") == "a\N{REPLACEMENT CHARACTER}b"
    assert shown({}) == "{}"
    assert shown({"a": 1}) == "{...}"
    assert shown(["a", 5, {"b": 1}]) == "[a, 5, {...}]"
    assert shown("hunter2", "password") == "***"
    assert shown(["hunter2"], "password") == "***"


def test_an_entry_behind_the_last_of_a_list_is_not_written(tmp_path: Path) -> None:
    entry, _ = read(tmp_path, "a:\n  - b\n  - c\n")
    assert entry is not None
    assert entry.below("a", 1).value == "c"
    missing = entry.below("a", 2)
    assert missing.value is NoValue.MISSING
    assert "=" not in str(missing.problem("is missing"))


def test_an_entry_shows_itself_without_its_secrets() -> None:
    assert repr(ConfigEntry.without_lines("f", "password", "hunter2")) == (
        "ConfigEntry(f, password = ***)"
    )
