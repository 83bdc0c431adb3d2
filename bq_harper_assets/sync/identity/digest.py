"""A digest sums up a set of rows: it does not depend on their order, and digests can be added."""

from dataclasses import dataclass

import numpy as np

from bq_harper_assets.sync.arrays.arrow_memory import Int64s, UInt64s

_MASK = 0xFFFFFFFFFFFFFFFF


@dataclass(frozen=True)
class Digest:
    """A digest is the count, the sum modulo 2^64 and the exclusive or of row hashes."""

    count: int = 0
    total: int = 0
    xor: int = 0

    @classmethod
    def of(cls, hashes: UInt64s) -> "Digest":
        """Returns the digest of rows with these hashes."""
        total = int(hashes.sum(dtype=np.uint64))
        return cls(len(hashes), total, int(np.bitwise_xor.reduce(hashes, initial=np.uint64(0))))

    @classmethod
    def parse(cls, text: str) -> "Digest":
        """Reads a digest from the text that str() gives of it."""
        count, total, xor = text.split("-")
        return cls(int(count), int(total, 16), int(xor, 16))

    def __add__(self, other: "Digest") -> "Digest":
        return Digest(
            self.count + other.count, (self.total + other.total) & _MASK, self.xor ^ other.xor
        )

    def __str__(self) -> str:
        return f"{self.count}-{self.total:016x}-{self.xor:016x}"


def digests_by_place(places: Int64s, hashes: UInt64s) -> dict[int, Digest]:
    """Returns the digest of each place's rows, in one pass however many places there are."""
    order = np.argsort(places, kind="stable")
    found, begins, counts = np.unique(places[order], return_index=True, return_counts=True)
    if not len(found):
        return {}
    ordered = hashes[order]
    totals = np.add.reduceat(ordered, begins, dtype=np.uint64)
    xors = np.bitwise_xor.reduceat(ordered, begins)
    parts = zip(*(each.tolist() for each in (found, counts, totals, xors)), strict=True)
    return {place: Digest(count, total, xor) for place, count, total, xor in parts}
