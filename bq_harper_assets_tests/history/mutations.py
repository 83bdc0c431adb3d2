"""Measures the tests: breaks one rule of the protocol after the other, and says what notices it.

make mutations                                                  all of them
python -m bq_harper_assets_tests.history.mutations --only copy  those with this in their name
"""

import argparse
import inspect
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pydantic import SecretStr

from bq_harper_assets.contract.connections import BigQueryConnection, HarperConnection
from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets.local.stack import LocalStack
from bq_harper_assets_tests.conftest import PROJECT_ROOT, environ_without_settings
from bq_harper_assets_tests.history import test_rules
from bq_harper_assets_tests.history.chance import play
from bq_harper_assets_tests.history.mutants import MUTANTS, Mutant
from bq_harper_assets_tests.history.script import WORLDS, drawn
from bq_harper_assets_tests.history.stand_ins import made_world
from bq_harper_assets_tests.history.watch import Violation
from bq_harper_assets_tests.history.world import Servers
from bq_harper_assets_tests.stores.small_tables import SmallTables


def histories_until_noticed(servers: Servers, mutant: Mutant, seconds: float) -> tuple[int, str]:
    """How many random histories it took, and what was seen; an empty text if time ran out."""
    over = time.monotonic() + seconds
    number = 0
    while time.monotonic() < over:
        script, jitter = drawn(number), mutant.is_jittery
        number += 1
        with tempfile.TemporaryDirectory() as folder:
            try:
                play(
                    servers, Path(folder), script, Counter(), broken=mutant.apply, is_jittery=jitter
                )
            except Violation as violation:
                return number, str(violation).splitlines()[-1]
    return number, ""


def scene_notices(servers: Servers, mutant: Mutant) -> bool:
    """Whether its scene fails."""
    test = getattr(test_rules, f"test_{mutant.scene}")
    (kind,) = inspect.signature(test).parameters
    with tempfile.TemporaryDirectory() as folder:
        made = made_world(servers, Path(folder), WORLDS[kind])
        with made as world, pytest.MonkeyPatch.context() as patch:
            mutant.apply(patch)
            try:
                test(world)
            except AssertionError:
                return True
    return False


def other_test_notices(mutant: Mutant) -> bool:
    """Whether a test of another folder fails."""
    plugin = "bq_harper_assets_tests.history.mutated"
    test = f"bq_harper_assets_tests/{mutant.elsewhere}"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", plugin, test],
        cwd=PROJECT_ROOT,
        env={**environ_without_settings(), "MUTANT": mutant.name},
        capture_output=True,
        check=False,
    )
    return done.returncode == 1


@contextmanager
def running_servers() -> Iterator[Servers]:
    """A stack of its own."""
    folder = local_folder(PROJECT_ROOT) / "mutations-stack"
    environ = environ_without_settings()
    stack = LocalStack(PROJECT_ROOT, folder, preferred={}, persistent=False, environ=environ)
    stack.purge(lambda line: None)
    try:
        at = stack.up(lambda line: None)
        bigquery = BigQueryConnection(
            project=at.bigquery_project,
            endpoint=at.bigquery_url,
            storage_endpoint=at.bigquery_storage,
        )
        password = SecretStr(at.harper_password_file.read_text(encoding="ascii"))
        harper = HarperConnection(url=at.harper_url, user=at.harper_user, password=password)
        yield Servers(bigquery, harper, SmallTables.at(bigquery))
    finally:
        stack.down(lambda line: None)


def main() -> int:
    """0 if every mutant is noticed."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", default="", help="part of the names of some mutants")
    options.add_argument("--seconds", type=float, default=40, help="of random histories for each")
    chosen = options.parse_args()
    logging.disable(logging.CRITICAL)
    for name in set(os.environ) - set(environ_without_settings()):
        del os.environ[name]
    unnoticed = by_chance = tried = rules = 0
    with running_servers() as servers:
        for mutant in MUTANTS:
            if chosen.only not in mutant.name:
                continue
            print(mutant.name)
            rules += 1
            seen, by_test = "", False
            if mutant.scene:
                count, seen = histories_until_noticed(servers, mutant, chosen.seconds)
                print(
                    f"  random: {f'history {count}: {seen[:150]}' if seen else f'not in {count}'}"
                )
                tried, by_chance = tried + 1, by_chance + bool(seen)
                by_test = scene_notices(servers, mutant)
                print(f"  directed: {'' if by_test else 'NOT '}by test_{mutant.scene}")
            else:
                by_test = other_test_notices(mutant)
                print(f"  directed: {'' if by_test else 'NOT '}by {mutant.elsewhere}")
            if mutant.argument:
                print(f"  argument: {mutant.argument}")
            sys.stdout.flush()
            unnoticed += not (by_test or seen)
    print(f"{by_chance} of {tried} mutants are noticed by random histories")
    noticed = rules - unnoticed
    share = noticed / max(rules, 1)
    print(f"{noticed} of {rules} broken rules of the protocol are noticed ({share:.1%})")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
