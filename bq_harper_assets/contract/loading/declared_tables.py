"""From declared tables to contracts: each valid by itself, and all of them together."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from bq_harper_assets.contract.budget import judge
from bq_harper_assets.contract.loading.block_check import checked
from bq_harper_assets.contract.loading.located import Located
from bq_harper_assets.contract.loading.problems import Problem
from bq_harper_assets.contract.loading.shapes import Declarations, about
from bq_harper_assets.contract.table import TableContract


def contracts(
    declared: Declarations, problems: list[Problem], warnings: list[Problem], now: datetime
) -> list[TableContract]:
    """Contracts of the tables that are right; what is wrong or doubtful is noted."""
    found: list[TableContract] = []
    for table in declared.tables:
        if contract := checked(table, TableContract, problems, about(table)):
            found.append(contract)
            verdict = judge(contract, now)
            for message, told in ((verdict.refused, problems), (verdict.warning, warnings)):
                if message:
                    told.append(table.key_problem(message, about(table)))
    problems.extend(_clashes(declared.tables))
    if not declared.tables:
        message = "no table is declared: add one to config/tables.yaml; config/examples shows how"
        warnings.append(Problem(file="config", line=0, path="", value=None, message=message))
    return found


def _clashes(tables: Iterable[Located]) -> Iterator[Problem]:
    """Judged by what is written, so that a fault elsewhere in a table hides no clash."""
    ids: dict[str, Located] = {}
    targets: dict[str, Located] = {}
    sources: dict[tuple[str, str], Located] = {}
    for table in tables:
        if name := _text(table, "id"):
            first = ids.setdefault(name.lower(), table)
            if first is not table:
                yield table.mapping["id"].problem(
                    f"is the id of another table too ({_place(first, 'id')}), upper and lower case "
                    "being the same: give each table its own",
                    about(table),
                )
        if target := _text(table, "targetTable"):
            first = targets.setdefault(target.lower(), table)
            if first is not table:
                yield table.mapping["targetTable"].problem(_one_source(first), about(table))
        source = (_text(table, "dataset"), _text(table, "table"))
        if all(source) and "customQuery" not in table.mapping:
            first = sources.setdefault(source, table)
            if first is not table:
                yield table.mapping["table"].problem(
                    f"{'.'.join(source)} already belongs to {_named(first)} "
                    f"({_place(first, 'table')}): it would be read, billed and proved twice. "
                    "Use one contract with all the columns, or a customQuery",
                    about(table),
                )


def _one_source(first: Located) -> str:
    return (
        f"is already the target of {_named(first)} ({_place(first, 'targetTable')}). "
        "Two sources in one Harper table overwrite each other where their ids collide, "
        "cannot both be validated, confuse their checkpoints and mix their fields. "
        "Give each its own target and join them when you query"
    )


def _named(table: Located) -> str:
    return about(table) or "another table"


def _text(table: Located, key: str) -> str:
    entry = table.mapping.get(key)
    return str(entry.value) if entry is not None and isinstance(entry.value, str) else ""


def _place(table: Located, key: str) -> str:
    return str(table.mapping[key].place)
