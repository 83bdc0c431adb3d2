"""A random history of a source and its syncs: made from a seed, played on real servers."""

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import datetime

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.routes.bigquery_to_harper import BigQueryToHarper
from bq_harper_assets.sync.errors import TurnFailed
from bq_harper_assets.validation.proof.prover import Prover
from bq_harper_assets.validation.verdict import ProofStatus
from bq_harper_assets_tests.long.held.plain_http import PlainHarper, differences
from bq_harper_assets_tests.long.held.ships import HOUR, START, Ships, moment, values
from bq_harper_assets_tests.sync.conftest import Sync

HOURS = 5
# Rows may move out of the hours that are synced on the way, and come back.
FIRST, LAST = START - 2 * HOUR, START + (HOURS + 2) * HOUR
CHANGES = ("insert", "insert", "update", "blank", "delete", "move", "forget the time", "restore")
SYNCS = ("sync some", "sync all", "sync while it changes", "other slices")


@dataclass(frozen=True)
class Step:
    """One thing that happens, by name and with a seed for its details."""

    name: str
    seed: int


def steps_of(seed: int, length: int) -> list[Step]:
    """Changes and syncs in turn, by chance; the first rows come first."""
    chance = random.Random(seed)
    names = ["insert"]
    for _ in range(length):
        names += chance.choices(CHANGES, k=chance.randrange(1, 4))
        names.append(chance.choice(SYNCS))
    return [Step(name, chance.randrange(10**9)) for name in names]


@dataclass(kw_only=True)
class Player:
    """Plays one history and compares what was synced, on the way and at the end."""

    sync: Sync
    harper: PlainHarper
    ships: Ships
    contract: TableContract
    numbers: int = 0
    kept: list[str] = field(default_factory=list)  # earlier states, as tables
    windows_compared: int = 0

    @property
    def key(self) -> str | None:
        """None if equal rows are told apart by nothing."""
        return "number" if self.contract.key else None

    def play(self, steps: Sequence[Step]) -> None:
        """All of them; then everything is synced, compared and proved."""
        for step in steps:
            self._one(step)
        self._sync(FIRST, LAST)
        self._compare(FIRST, LAST)
        cells = self.sync.cells(self.contract, FIRST, LAST)
        prover = Prover(
            BigQueryToHarper(self.sync.stores, self.contract), self.sync.spark, self.sync.retry
        )
        proofs = prover.prove(cells, deep=True)
        wrong = [proof for proof in proofs if proof.status is not ProofStatus.PROVED]
        assert not wrong, wrong

    def _one(self, step: Step) -> None:
        chance = random.Random(step.seed)
        if step.name in CHANGES:
            self._change(step.name, chance)
        elif step.name == "other slices":
            self._other_slices(chance.randrange(1, 6))
        elif step.name == "sync all":
            self._sync(START, START + HOURS * HOUR)
            self._compare(START, START + HOURS * HOUR)
        elif step.name == "sync some":
            begin, end = sorted(chance.sample(range(HOURS + 1), 2))
            self._sync(START + begin * HOUR, START + end * HOUR)
            self._compare(START + begin * HOUR, START + end * HOUR)
        else:
            self._sync_while_it_changes(chance)

    def _change(self, name: str, chance: random.Random) -> None:
        sql, part = self.ships.sql, self._part(chance)
        if name == "insert":
            self._insert(chance)
        elif name == "update":
            speed = round(chance.uniform(0, 9), 2)
            self._run(f"UPDATE {sql} SET name = 'renamed {speed}', speed = {speed} WHERE {part}")
        elif name == "blank":
            column = chance.choice(["name", "speed", "docked", "doc", "flag"])
            self._run(f"UPDATE {sql} SET {column} = NULL, tags = [] WHERE {part}")
        elif name == "delete":
            self._run(f"DELETE FROM {sql} WHERE {part}")
        elif name == "move":
            by = chance.choice([-90, -60, -1, 1, 30, 60, 119])
            new = f"TIMESTAMP_ADD(ts, INTERVAL {by} MINUTE)"
            inside = f"{new} >= {moment(FIRST)} AND {new} < {moment(LAST)}"
            self._run(f"UPDATE {sql} SET ts = {new} WHERE {part} AND {inside}")
        elif name == "forget the time":
            self._run(f"UPDATE {sql} SET ts = NULL WHERE {part}")
        elif name == "restore":
            self._keep_or_restore(chance)

    def _run(self, sql: str) -> None:
        self.ships.emulator.run(sql)

    def _part(self, chance: random.Random) -> str:
        """Some of the rows, and sometimes all."""
        by = chance.choice([1, 2, 3, 7, 7, 13, 40])
        return f"MOD(number, {by}) = {chance.randrange(by)}"

    def _insert(self, chance: random.Random) -> None:
        rows = []
        for _ in range(chance.choice([1, 10, 40, 90])):
            micros = chance.choice([1, 1_000_000, 60_000_000])
            ts = START + HOURS * HOUR * chance.random()
            whole = int((ts - START) / (HOUR / 3_600_000_000)) // micros * micros
            rows.append(values(self.numbers, START + whole * (HOUR / 3_600_000_000), chance))
            self.numbers += 1
        if self.key is None:
            rows += chance.choices(rows, k=len(rows) // 4)  # equal rows are all kept
        self.ships.insert(rows)

    def _keep_or_restore(self, chance: random.Random) -> None:
        if not self.kept or chance.random() < 0.4:
            kept = f"{self.ships.name}_{len(self.kept)}"
            self.ships.copied_to(kept)
            self.kept.append(kept)
            return
        self._run(f"DELETE FROM {self.ships.sql} WHERE TRUE")
        self._run(f"INSERT INTO {self.ships.sql} SELECT * FROM held.{chance.choice(self.kept)}")

    def _other_slices(self, count: int) -> None:
        known = self.sync.stores.ledger.find_route(self.contract.id)
        if known is not None and known.facts.slices != count:
            self.sync.stores.ledger.change_slices(known, count)
        self.contract = self.contract.model_copy(update={"slices": count})

    def _sync(self, start: datetime, end: datetime) -> None:
        self.sync.run(self.contract, self.sync.cells(self.contract, start, end))

    def _sync_while_it_changes(self, chance: random.Random) -> None:
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(self._sync, START, START + HOURS * HOUR)
            for name in chance.choices(CHANGES[:6], k=chance.randrange(1, 5)):
                wait([running], timeout=chance.random())
                self._change(name, chance)
            failed = running.exception()
        if failed is not None:  # a source that moves too fast is told as such, and synced again
            assert isinstance(failed, TurnFailed), failed
            assert failed.report.is_transient, failed
            self._sync(START, START + HOURS * HOUR)

    def _compare(self, start: datetime, end: datetime) -> None:
        """The windows that were just synced, in both stores."""
        first, last = (f"{at:%Y-%m-%dT%H:%M:%S}.000000Z" for at in (start, end))
        stored = [
            row for row in self.harper.rows(self.contract.target.table) if first <= row["ts"] < last
        ]
        self.windows_compared += (end - start) // HOUR
        found = differences(self.ships.rows(start, end), stored, self.key)
        assert not found, "\n".join(found)
