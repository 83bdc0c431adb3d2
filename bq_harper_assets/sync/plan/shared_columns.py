"""Cells of older schema versions are compared with the source by the columns that both have.

A column that was added after a cell was synced says nothing about it, and one that is gone cannot
be read: only what both have is compared. A fingerprint covers all columns that the cell had, so
once one of them is gone it is recomputed, as of the cell's own instant.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.questions.status import CellCommit
from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets.schema.version import TableVersion

Basis = frozenset[str]  # paths of columns and fields


@dataclass(frozen=True)
class SharedColumns:
    """Says which columns the source, which has those of `now`, shares with other versions."""

    now: TableVersion
    versions: Mapping[int, TableVersion]
    _paths: dict[int, Basis] = field(default_factory=dict)  # computed so far, by version

    @classmethod
    def of(cls, ledger: Ledger, table: LedgerRoute, now: TableVersion) -> "SharedColumns":
        """Reads all versions of the table that cells may have been synced under."""
        history = ledger.schema_history(table)
        return cls(now, {each.version: TableVersion.parse(each.body) for each in history})

    @property
    def all(self) -> Basis:
        """Returns the columns by which a cell that is synced now is compared."""
        return self.now.live_paths

    def basis(self, version: int) -> Basis:
        """Returns the columns that a cell of this version and the source share."""
        return self._live(version) & self.all

    def is_told(self, commit: CellCommit) -> bool:
        """Says whether the cell's fingerprint covers exactly the columns shared with the source."""
        told = self._live(commit.schema_version) & self._live(commit.fingerprint_version)
        return told == self.basis(commit.schema_version)

    def has_stored_hashes(self, version: int) -> bool:
        """Says whether hashes stored with rows of this version cover exactly the shared columns."""
        return self._live(version) == self.basis(version)

    def may_be_stale(self, version: int | None) -> bool:
        """Says whether rows of a cell may have old values of a column that was gone and came back.

        Their stored hash ignores that column, as if it was NULL. The version None means that the
        rows of the cell may have any version.
        """
        if version is None:
            return any(map(self.may_be_stale, self.versions))
        came = self.all - self._live(version)
        return any(came & self._live(earlier) for earlier in self.versions if earlier < version)

    def left_out(self, basis: Basis) -> tuple[str, ...]:
        """Returns what the source has and `basis` has not; a column stands for its fields."""
        return outermost(self.all - basis)

    def _live(self, version: int) -> Basis:
        if version not in self._paths:
            self._paths[version] = self.versions[version].live_paths
        return self._paths[version]


def outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """Returns the paths that are not inside another one of them."""
    found: list[str] = []
    for path in sorted(paths):
        if not any(path.startswith(f"{above}.") for above in found):
            found.append(path)
    return tuple(found)
