"""These errors say what does not fit between contract, source schema and stored values.

BqhError
├── SchemaMismatch       the contract asks for what the source lacks, or the target cannot take
└── SchemaRefused        the source changed so that rows could not be told apart any more
"""

from collections.abc import Sequence

from bq_harper_assets.errors import BqhError


class SchemaMismatch(BqhError):
    """The contract does not fit the source: all problems are listed, and nothing was started."""

    exit_code = 2

    def __init__(self, table: str, problems: Sequence[str]) -> None:
        self.table = table
        self.problems = tuple(problems)
        count = f"{len(self.problems)} problem{'' if len(self.problems) == 1 else 's'}"
        lines = (f"  - {problem}" for problem in self.problems)
        title = f"table {table} does not fit its source ({count}); nothing was started."
        advice = f"Correct this, then look again with: bqh schema show {table}"
        super().__init__("\n".join([title, *lines, advice]))


class SchemaRefused(BqhError):
    """Rows would get other ids or windows: nothing is synced until somebody settles the change."""

    def __init__(self, table: str, problems: Sequence[str], target: str) -> None:
        self.table = table
        self.problems = tuple(problems)
        lines = "".join(f"\n  - {problem}" for problem in self.problems)
        super().__init__(
            f"table {table} cannot follow its source:{lines}\n"
            f"Nothing was written, and {target} keeps all rows as they are. See the change with:"
            f" bqh schema diff {table}"
        )
