"""What cells that were synced under different schema versions have in common with the source.

A column that came since a cell was synced says nothing about it, and one that is gone cannot be
asked for: only what both have is compared. A fingerprint is of all columns the cell had, so once
one of them is gone it is told anew, as of the cell's own instant.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.questions.status import CellCommit
from bq_harper_assets.ledger.records import LogicalTable
from bq_harper_assets.schema.version import TableVersion

Basis = frozenset[str]  # paths of columns and fields


@dataclass(frozen=True)
class Bases:
    """Of one table, whose source has the columns of `now`."""

    now: TableVersion
    versions: Mapping[int, TableVersion]
    _paths: dict[int, Basis] = field(default_factory=dict)  # worked out so far

    @classmethod
    def of(cls, ledger: Ledger, table: LogicalTable, now: TableVersion) -> "Bases":
        """With all versions that cells may have been synced under."""
        history = ledger.schema_history(table)
        return cls(now, {each.version: TableVersion.parse(each.body) for each in history})

    @property
    def all(self) -> Basis:
        """What a cell that is synced now is compared by."""
        return self.now.live_paths

    def basis(self, version: int) -> Basis:
        """What a cell of this version and the source have in common."""
        return self._live(version) & self.all

    def is_told(self, commit: CellCommit) -> bool:
        """Whether the cell's fingerprint is of its basis."""
        told = self._live(commit.schema_version) & self._live(commit.fingerprint_version)
        return told == self.basis(commit.schema_version)

    def has_stored_hashes(self, version: int) -> bool:
        """Whether the hashes that were stored with rows of this version are of their basis."""
        return self._live(version) == self.basis(version)

    def may_be_stale(self, version: int | None) -> bool:
        """Whether rows of a cell may hold values of a column that was gone, and is back since.

        The hash that was stored with them says nothing of it: it looks like one that is NULL. None
        is the version of a cell whose rows may be of any.
        """
        if version is None:
            return any(map(self.may_be_stale, self.versions))
        came = self.all - self._live(version)
        return any(came & self._live(earlier) for earlier in self.versions if earlier < version)

    def left_out(self, basis: Basis) -> tuple[str, ...]:
        """What the source has besides, but for fields of such a column."""
        return outermost(self.all - basis)

    def _live(self, version: int) -> Basis:
        if version not in self._paths:
            self._paths[version] = self.versions[version].live_paths
        return self._paths[version]


def outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """Without those that lie inside another."""
    found: list[str] = []
    for path in sorted(paths):
        if not any(path.startswith(f"{above}.") for above in found):
            found.append(path)
    return tuple(found)
