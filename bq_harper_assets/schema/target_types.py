"""What a plan asks of the store that will take the rows; each target answers for itself."""

from collections.abc import Collection, Sequence
from typing import Protocol

from bq_harper_assets.contract.table import ColumnOverride
from bq_harper_assets.schema.logical import Column, Spelling


class TargetTypes(Protocol):
    """Says how a target stores the columns of one contract, and what it cannot store."""

    @property
    def own_names(self) -> Collection[str]:
        """Names what the sync itself writes into every row; no column may have such a name."""
        ...

    @property
    def longest_indexed(self) -> int:
        """Returns how many characters a text may have whose column is indexed."""
        ...

    def spelling(self, column: Column, path: str) -> Spelling:
        """Returns the target's name, type and form of a column or field at this path."""
        ...

    def impossible_override(self, column: Column, override: ColumnOverride) -> str | None:
        """Says why a column cannot have the type that the contract asks for; None if it can."""
        ...

    def refusal_of_column(self, name: str) -> str | None:
        """Says why the target cannot have a column of this name; None if it can."""
        ...

    def refusal_of_field(self, name: str) -> str | None:
        """Says why the target cannot have a field of this name inside a column; None if it can."""
        ...

    def is_id(self, column: Column) -> bool:
        """Says whether a key of this column alone is the id of a row; other ids are hashes."""
        ...

    def is_stored_as_id(self, column: Column) -> bool:
        """Says whether the id is, in the target, the very value that the column has there."""
        ...

    def unindexable(self, column: Column) -> str | None:
        """Says why the target cannot search by this column; None if it can."""
        ...

    def warnings(self, columns: Sequence[Column]) -> Sequence[str]:
        """Lists the columns and fields that the target cannot store as what they are."""
        ...
