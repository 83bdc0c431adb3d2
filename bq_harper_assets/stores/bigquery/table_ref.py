"""The full name of a table, as SQL, the client library and the Storage API write it."""

from dataclasses import dataclass

from bq_harper_assets.contract.identifiers import quoted


@dataclass(frozen=True)
class TableRef:
    """One table or view of a project."""

    project: str
    dataset: str
    table: str

    @property
    def sql(self) -> str:
        """Quoted, for the text of a query."""
        return quoted(self.project, self.dataset, self.table)

    @property
    def path(self) -> str:
        """As the Storage API names it."""
        return f"projects/{self.project}/datasets/{self.dataset}/tables/{self.table}"

    def __str__(self) -> str:
        return f"{self.project}.{self.dataset}.{self.table}"
