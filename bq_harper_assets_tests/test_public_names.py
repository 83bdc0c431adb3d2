"""A public name of the package has one home, so that a reader who meets it knows what it is."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import bq_harper_assets

PACKAGE = Path(bq_harper_assets.__file__).parent
MIGRATIONS = PACKAGE / "ledger" / "store" / "migrations"  # Alembic asks each for the same names


def _public_names(file: Path) -> Iterator[str]:
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.FunctionDef):
            # A command is called as it is typed, and `bqh` reaches it through its group; `main`
            # is what `python -m` begins with.
            if not _is_command(node) and node.name != "main":
                yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                yield from (each.id for each in ast.walk(target) if isinstance(each, ast.Name))


def _is_command(node: ast.FunctionDef) -> bool:
    called = (each.func for each in node.decorator_list if isinstance(each, ast.Call))
    return any(isinstance(f, ast.Attribute) and f.attr in ("command", "group") for f in called)


def test_a_public_name_is_defined_in_one_module_only() -> None:
    homes: dict[str, set[str]] = defaultdict(set)
    for file in sorted(PACKAGE.rglob("*.py")):
        if MIGRATIONS not in file.parents:
            for name in _public_names(file):
                homes[name].add(str(file.relative_to(PACKAGE)))
    assert len(homes) > 1000  # it looks at the package, and at all of it
    several = {n: h for n, h in homes.items() if len(h) > 1 and not n.startswith("_")}
    assert several == {}
