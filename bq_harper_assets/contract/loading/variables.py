"""Environment variables and the project's .env: the environment wins, empty is not set."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

from dotenv.parser import parse_stream

from bq_harper_assets.contract.loading.located import Expanded, Located, Place
from bq_harper_assets.contract.loading.problems import Problem

DOTENV_FILE = ".env"
_REFERENCE = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|\$\{")


@dataclass(frozen=True)
class Variables:
    """Both places a variable can be set in."""

    environ: Mapping[str, str] = field(repr=False)
    dotenv: Mapping[str, str] = field(repr=False)

    def get(self, name: str) -> str | None:
        return self.environ.get(name) or self.dotenv.get(name) or None

    def located(self, name: str) -> Located | None:
        """The variable as a value that can be pointed at."""
        text = self.get(name)
        if text is None:
            return None
        file = "environment" if self.environ.get(name) else DOTENV_FILE
        return Located(Place(file, 0, (name,)), Expanded(text), text)

    def expand(self, text: str) -> tuple[str, list[str]]:
        """${NAME} and ${NAME:-default} put in, and what is wrong with them; $${ becomes ${."""
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
    """Nothing inside .env is expanded, so a password may hold any character."""
    file = root / DOTENV_FILE
    try:
        content = file.read_text(encoding="utf-8-sig") if file.is_file() else ""
    except (OSError, UnicodeDecodeError):
        message = "cannot be read: it must be a UTF-8 text file that this user may open"
        problems.append(Problem(file=DOTENV_FILE, line=0, path="", value=None, message=message))
        content = ""
    found: dict[str, str] = {}
    # Not dotenv_values, which only logs the lines it cannot read and goes on without them.
    for line in parse_stream(StringIO(content)):
        if line.error:
            message = "is not NAME=value: write it so, and close every quote"
            problems.append(
                Problem(
                    file=DOTENV_FILE, line=line.original.line, path="", value=None, message=message
                )
            )
        elif line.key and line.value:
            found[line.key] = line.value
    return Variables(environ, found)
