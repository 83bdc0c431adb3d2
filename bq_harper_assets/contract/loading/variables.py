"""Variables are read from the environment, else from .env; an empty one is not set."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

from dotenv.parser import parse_stream

from bq_harper_assets.contract.loading.config_entry import ConfigEntry
from bq_harper_assets.contract.loading.problems import Problem

ENVIRONMENT = "environment"
DOTENV_FILE = ".env"
_REFERENCE = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|\$\{")


@dataclass(frozen=True)
class Variables:
    """These are the two places that a variable can be set in."""

    environ: Mapping[str, str] = field(repr=False)
    dotenv: Mapping[str, str] = field(repr=False)

    def get(self, name: str) -> str | None:
        return self.environ.get(name) or self.dotenv.get(name) or None

    def entry(self, name: str) -> ConfigEntry | None:
        """Returns the variable as an entry that a problem can point at; None if it is not set."""
        text = self.get(name)
        if text is None:
            return None
        file = ENVIRONMENT if self.environ.get(name) else DOTENV_FILE
        return ConfigEntry.without_lines(file, name, text)

    def expand(self, text: str) -> tuple[str, list[str]]:
        """Puts in ${NAME} and ${NAME:-default}, and says what is wrong; $${ becomes ${."""
        wrong: list[str] = []

        def put_in(match: re.Match[str]) -> str:
            if match[0] == "$${":
                return "${"
            if match[1] is None:
                wrong.append(
                    "${ opens a variable: write ${NAME} or ${NAME:-default}, or $${ for a plain ${"
                )
                return ""
            found = self.get(match[1])
            if found is None and match[2] is None:
                wrong.append(
                    f"the variable {match[1]} is not set: set it in the environment or in .env, "
                    f"or give a default as ${{{match[1]}:-...}}"
                )
            return found or match[2] or ""

        return _REFERENCE.sub(put_in, text), wrong


def read_variables(root: Path, environ: Mapping[str, str], problems: list[Problem]) -> Variables:
    """Reads both places; nothing inside .env is expanded, so a password may hold any character."""
    file = root / DOTENV_FILE
    try:
        content = file.read_text(encoding="utf-8-sig") if file.is_file() else ""
    except (OSError, UnicodeDecodeError):
        message = "cannot be read: it must be a UTF-8 text file that this user may open"
        problems.append(Problem(file=DOTENV_FILE, message=message))
        content = ""
    found: dict[str, str] = {}
    # Not dotenv_values, which only logs the lines it cannot read and goes on without them.
    for line in parse_stream(StringIO(content)):
        if line.error:
            message = "is not NAME=value: write it so, and close every quote"
            problem = Problem(file=DOTENV_FILE, message=message, line=line.original.line)
            problems.append(problem)
        elif line.key and line.value:
            found[line.key] = line.value
    return Variables(environ, found)
