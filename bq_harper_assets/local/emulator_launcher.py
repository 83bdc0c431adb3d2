"""Runs bqemulator with its gaps closed; the local stack runs this module.

BQH_EMULATOR_GAPS_OPEN leaves named gaps open, which is how the tests show that each is needed.
"""

import argparse
import asyncio
import os
import sys
from importlib.metadata import version
from pathlib import Path

from bq_harper_assets.local.emulator_gaps import GAPS
from bq_harper_assets.local.emulator_parsing import remember_parsed_statements

EMULATOR_VERSION = "1.4.0"
GAPS_OPEN_VARIABLE = "BQH_EMULATOR_GAPS_OPEN"


def gaps_to_close(left_open: str) -> list[str]:
    """Lists all gaps but the named ones; an unknown name ends the program."""
    names = {name.strip() for name in left_open.split(",") if name.strip()}
    if unknown := sorted(names - set(GAPS)):
        sys.exit(f"error: {GAPS_OPEN_VARIABLE} names {unknown}; there are {sorted(GAPS)}")
    return [name for name in GAPS if name not in names]


def main() -> None:
    """Serves until SIGTERM; the ready file appears when both ports are open."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rest-port", type=int, required=True)
    parser.add_argument("--grpc-port", type=int, required=True)
    parser.add_argument("--project", required=True)
    parser.add_argument("--ready-file", type=Path, required=True)
    parser.add_argument("--uploads", type=Path, required=True)
    parser.add_argument("--data", type=Path, help="where tables are kept; in memory if left out")
    options = parser.parse_args()
    found = version("bqemulator")
    if found != EMULATOR_VERSION:
        sys.exit(
            f"error: bqemulator {found} is installed and {EMULATOR_VERSION} is needed, "
            "the version whose gaps are closed here. Next: make setup"
        )
    for gap in gaps_to_close(os.environ.get(GAPS_OPEN_VARIABLE, "")):
        GAPS[gap]()
    remember_parsed_statements()
    asyncio.run(_serve(options))


async def _serve(options: argparse.Namespace) -> None:
    from bqemulator.config import LogLevel, PersistenceMode, Settings
    from bqemulator.server import EmulatorServer

    class ReadyServer(EmulatorServer):
        async def start(self) -> None:
            await super().start()
            options.ready_file.touch()

    settings = Settings(
        rest_port=options.rest_port,
        grpc_port=options.grpc_port,
        default_project_id=options.project,
        persistence_mode=PersistenceMode.PERSISTENT if options.data else PersistenceMode.EPHEMERAL,
        data_dir=options.data,
        upload_staging_dir=options.uploads,
        enable_format_extensions=False,  # they would be another download
        log_level=LogLevel.WARNING,
    )
    await ReadyServer(settings)._run_forever_async()


if __name__ == "__main__":
    main()
