"""Texts that Harper does not find again are told from all others, by length and characters."""

import pytest

from bq_harper_assets.stores.harper.index_keys import is_lost


@pytest.mark.parametrize("character", ["\x00", "\x01", "\x04"])
def test_a_long_text_with_such_a_character_is_lost_and_a_shorter_one_is_not(
    character: str,
) -> None:
    assert is_lost("a" * 63 + character)
    assert is_lost(character + "a" * 63)
    assert not is_lost("a" * 62 + character)


def test_units_are_counted_as_harper_counts_them() -> None:
    assert is_lost("\U0001f6a2" * 32 + "\x01")
    assert is_lost("\U0001f6a2" * 31 + "a" + "\x01")
    assert not is_lost("\U0001f6a2" * 31 + "\x01")
    assert not is_lost("é" * 62 + "\x01")
    assert is_lost("\ud800" * 63 + "\x01")


def test_other_characters_lose_nothing() -> None:
    assert not is_lost("\x05" * 100)
    assert not is_lost("a" * 1_000)
    assert not is_lost("")
