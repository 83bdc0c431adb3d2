"""A fingerprint's text, which the ledger keeps, says every part of it."""

from bq_harper_assets.sync.protocols import Fingerprint


def test_every_part_of_a_fingerprint_stands_in_its_text() -> None:
    found = Fingerprint(rows=1, distinct=2, xor=-1, low=3, high=4)
    assert found.text == "1:2:ffffffffffffffff:3:4"
