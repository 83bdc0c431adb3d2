"""Writes the full name of a table for SQL, the client library and the Storage API."""

from dataclasses import dataclass

from bq_harper_assets.contract.identifiers import quoted


@dataclass(frozen=True)
class TableRef:
    """A table ref names one table or view of a project."""

    project: str
    dataset: str
    table: str

    @property
    def sql(self) -> str:
        """Returns the quoted name, for the text of a query."""
        return quoted(self.project, self.dataset, self.table)

    @property
    def path(self) -> str:
        """Returns the name that the Storage API takes."""
        return f"projects/{self.project}/datasets/{self.dataset}/tables/{self.table}"

    def __str__(self) -> str:
        return f"{self.project}.{self.dataset}.{self.table}"
