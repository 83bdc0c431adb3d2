"""Commands as a user types them."""

import json
from typing import Any

from click.testing import CliRunner, Result

from bq_harper_assets.cli.main import bqh


def typed(*arguments: str) -> Result:
    """In this process, where Spark is running already."""
    return CliRunner().invoke(bqh, arguments)


def typed_well(*arguments: str, code: int = 0) -> str:
    """What it printed; it ended with this code."""
    ended = typed(*arguments)
    assert ended.exit_code == code, (ended.output, ended.exception)
    return ended.stdout


def told(*arguments: str, code: int = 0) -> Any:
    """What it says to programs."""
    return json.loads(typed_well(*arguments, "--output", "json", code=code))
