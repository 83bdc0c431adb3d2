"""Definitions are loaded with what is known of the tables, whether or not any server answers.

Loading opens no store. It asks the ledger, read-only and for two seconds at most, where tables
begin and how they were cut. A local copy of the starts serves while the ledger does not answer.
"""

import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import make_url

from bq_harper_assets.contract.project import Project
from bq_harper_assets.contract.settings.private_files import make_private_folder
from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.tables.first_window import declared_start, provisional_start
from bq_harper_assets.ledger.brief_question import ask_briefly
from bq_harper_assets.ledger.errors import LedgerError
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.sync.ledger_facts import refused_declarations

LEDGER_ANSWERS_WITHIN_S = (
    2.0  # whoever opens the UI, and every run, waits so long for a ledger that is away
)

_DAY = timedelta(days=1)
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class KnownTable:
    """A table's partitions begin here, and its page says this of that or of its declaration."""

    start: datetime
    remark: str = ""


@dataclass(frozen=True)
class LedgerFacts:
    """The ledger, or its copy, says this of all tables."""

    starts: Mapping[str, datetime] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)  # why a table cannot be synced


def known_tables(project: Project, ledger: Ledger | None = None) -> dict[str, KnownTable]:
    """Tells by contract id what is known; a `ledger` that is open already is asked instead.

    Where the ledger answers, its word counts, and the copy is made equal to it. A table without a
    `startTimestamp` whose start neither knows begins two days ago, until a load after its first
    sync: early enough for the newest closed window of any length, also if it becomes midnight
    between two loads.
    """
    facts = _facts(project, ledger)
    for problem in facts.problems.values():
        _log.warning("%s. The other tables go on", problem)
    unknown = provisional_start(datetime.now(UTC)) - 2 * _DAY
    return {table.id: _known(table, facts, unknown) for table in project.tables}


def _known(contract: TableContract, facts: LedgerFacts, unknown: datetime) -> KnownTable:
    problem = facts.problems.get(contract.id, "")
    start = declared_start(contract) or facts.starts.get(contract.id)
    if start is not None:
        return KnownTable(start, problem)
    return KnownTable(unknown, problem or _not_known_yet(contract))


def _not_known_yet(contract: TableContract) -> str:
    return (
        f"{contract.target.table} in Harper, kept equal to its BigQuery source. Its partitions"
        " begin two days ago for now, because nobody has looked for its oldest row yet: the first"
        " sync or tick of its sensor does. Reload the code location after it to see older"
        f" partitions. Or type: bqh sync {contract.id}, which does all in this order; or set"
        " sync.startTimestamp."
    )


def _facts(project: Project, ledger: Ledger | None) -> LedgerFacts:
    def asked(opened: Ledger) -> LedgerFacts:
        refused = refused_declarations(opened, project.tables)
        return LedgerFacts(opened.starts(), {name: str(why) for name, why in refused.items()})

    copy = StartsCopy.of(project)
    if ledger is not None:
        answer: LedgerFacts | None = asked(ledger)
    else:
        try:
            answer = ask_briefly(project.ledger.url, asked, LEDGER_ANSWERS_WITHIN_S)
        except LedgerError as error:
            _log.warning("definitions are loaded without the ledger. %s", error)
            answer = None
    if answer is None:
        return LedgerFacts(copy.read())
    copy.write(answer.starts)
    return answer


@dataclass(frozen=True)
class StartsCopy:
    """This file holds the starts that one ledger has told; another ledger has another file."""

    file: Path

    @classmethod
    def of(cls, project: Project) -> "StartsCopy":
        """Finds it by the ledger's address without its password."""
        url = make_url(project.ledger.url.get_secret_value())
        place = f"{url.host}:{url.port}/{url.database}"
        name = hashlib.sha256(place.encode()).hexdigest()[:16]
        return cls(local_folder(project.root) / "starts" / f"{name}.json")

    def read(self) -> dict[str, datetime]:
        """Gives what was written last; nothing if that cannot be read."""
        try:
            told = json.loads(self.file.read_text(encoding="utf-8"))
            return {name: datetime.fromisoformat(start) for name, start in told.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def write(self, starts: Mapping[str, datetime]) -> None:
        """Replaces the file in one step if it says anything else; without it loading goes on."""
        if dict(starts) == self.read():
            return
        told = {name: start.isoformat() for name, start in sorted(starts.items())}
        with suppress(OSError):
            make_private_folder(self.file.parent)
            handle, draft = tempfile.mkstemp(dir=self.file.parent)  # which makes it 0600
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as opened:
                    json.dump(told, opened, indent=2)
                os.replace(draft, self.file)
            except OSError:
                os.unlink(draft)
