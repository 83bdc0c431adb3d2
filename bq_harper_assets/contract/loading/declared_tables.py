"""Declared tables become contracts, each valid by itself and all of them together."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from bq_harper_assets.contract.budget import judge_budget
from bq_harper_assets.contract.loading.block_check import checked
from bq_harper_assets.contract.loading.config_entry import ConfigEntry
from bq_harper_assets.contract.loading.problems import Problem
from bq_harper_assets.contract.loading.shapes import Declarations, about
from bq_harper_assets.contract.table import TableContract


def contracts(
    declared: Declarations, problems: list[Problem], warnings: list[Problem], now: datetime
) -> list[TableContract]:
    """Makes contracts of the tables that are right, and notes what is wrong or doubtful."""
    found: list[TableContract] = []
    for table in declared.tables:
        if contract := checked(table, TableContract, problems, about(table)):
            found.append(contract)
            verdict = judge_budget(contract, now)
            for message, told in ((verdict.refused, problems), (verdict.warning, warnings)):
                if message:
                    told.append(table.key_problem(message, about(table)))
    problems.extend(_clashes(declared.tables))
    if not declared.tables:
        message = "no table is declared: add one to config/tables.yaml; config/examples shows how"
        warnings.append(Problem(file="config", message=message))
    return found


def _clashes(tables: Iterable[ConfigEntry]) -> Iterator[Problem]:
    """Finds clashes by what is written, so that a fault elsewhere in a table hides none."""
    ids: dict[str, ConfigEntry] = {}
    targets: dict[str, ConfigEntry] = {}
    sources: dict[tuple[str, str], ConfigEntry] = {}
    for table in tables:
        if name := _text(table, "id"):
            first = ids.setdefault(name.lower(), table)
            if first is not table:
                yield table.below("id").problem(
                    f"is the id of another table too ({first.below('id').where}), "
                    "upper and lower case being the same: give each table its own",
                    about(table),
                )
        if target := _text(table, "targetTable"):
            first = targets.setdefault(target.lower(), table)
            if first is not table:
                yield table.below("targetTable").problem(_one_source(first), about(table))
        source = (_text(table, "dataset"), _text(table, "table"))
        if all(source) and table.get("customQuery") is None:
            first = sources.setdefault(source, table)
            if first is not table:
                yield table.below("table").problem(
                    f"{'.'.join(source)} already belongs to {_named(first)} "
                    f"({first.below('table').where}): it would be read, billed and proved twice. "
                    "Use one contract with all the columns, or a customQuery",
                    about(table),
                )


def _one_source(first: ConfigEntry) -> str:
    return (
        f"is already the target of {_named(first)} ({first.below('targetTable').where}). "
        "Two sources in one Harper table overwrite each other where their ids collide, "
        "cannot both be validated, confuse their checkpoints and mix their fields. "
        "Give each its own target and join them when you query"
    )


def _named(table: ConfigEntry) -> str:
    return about(table) or "another table"


def _text(table: ConfigEntry, key: str) -> str:
    value = table.below(key).value
    return value if isinstance(value, str) else ""
