"""What is wrong in a configuration: every problem of every file, told at once."""

from collections.abc import Iterable
from dataclasses import dataclass

from bq_harper_assets.errors import BqhError


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One wrong or doubtful thing: where it stands, what is wrong and how to fix it."""

    file: str  # as the user would name it: config/tables.yaml, .env, environment
    line: int  # 0 where there are no lines
    path: str  # in the user's own spelling: bigquery.tables[1].targetTable
    value: str | None  # as written and never a secret; None where it is not the value that is wrong
    message: str
    about: str = ""  # table orders

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        what = self.path if self.value is None else f"{self.path} = {self.value}"
        head = ": ".join(part for part in (where, what) if part)
        if self.about:
            head += f" ({self.about})"
        return f"{head}\n    {self.message}"


class ConfigError(BqhError):
    """The configuration cannot be used; nothing was started and nothing was changed."""

    exit_code = 2

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = in_order(problems)
        count = len(self.problems)
        title = (
            f"{count} problem{'' if count == 1 else 's'} in the configuration; nothing was started."
        )
        advice = "Correct this, then check with: bqh doctor"
        super().__init__("\n".join([title, *map(str, self.problems), advice]))


def in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """By file and line, each once."""
    return tuple(sorted(dict.fromkeys(problems), key=lambda p: (p.file, p.line, p.path, p.message)))
