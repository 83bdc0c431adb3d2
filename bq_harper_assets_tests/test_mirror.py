"""Tests lie as the package does: whoever opens a module finds its tests by its path.

The tests of a/b/c.py are in a/b/test_c.py; where they fill several files, the others are called
a/b/test_c_<topic>.py. What spans several modules is a story, which lies in the highest room that it
spans and is listed here.
"""

import ast
from pathlib import Path

import bq_harper_assets

PACKAGE = Path(bq_harper_assets.__file__).parent
TESTS = Path(__file__).parent

# Folders that mirror no room: all that lies there spans the whole package.
APART = {
    "history": "random histories of the sync protocol, and the mutants that they must notice",
    "live": "the user's own BigQuery and Harper",
    "long": "what is long by nature",
    "mutation": "mutants of the package, and which test notices them",
    "older_release": "what an older release has left in the stores, and that it goes on",
}

STORIES = {
    "cli/test_equal_now.py": "verify says what sync --changed then does",
    "cli/test_frozen_keys.py": "every command and definition that leads to a run",
    "cli/test_waits.py": "the terminal and Dagster's log in the same words",
    "contract/test_configuration_page.py": "docs/configuration.md",
    "contract/test_imports.py": "what loading contracts imports",
    "defs/test_evolution.py": "sensor, run and proof of a change of columns",
    "defs/test_project_files.py": "whole configurations become rows",
    "defs/test_races.py": "runs that race for a table",
    "defs/test_ui.py": "the requests that Dagster's UI sends",
    "ledger/test_older_ledger.py": "a ledger that an older release has written",
    "ledger/test_open_windows.py": "plans, commits and progress of a window that is open",
    "ledger/test_processes.py": "processes that share a ledger, or die",
    "ledger/test_random_changes.py": "random verbs against a model",
    "ledger/test_random_owners.py": "random owners of leases against a model",
    "local/test_local_stack_page.py": "docs/local-stack.md",
    "maritime/test_synced.py": "the sample data in Harper",
    "stores/test_clustered_table.py": "BigQuery's clustering as Harper's indexes",
    "stores/test_one_shape.py": "the folders of all stores",
    "sync/test_backfill_evolves.py": "columns that change within a backfill",
    "sync/test_evolution.py": "columns that change, from the source to the proof",
    "sync/test_faults.py": "runs among faults",
    "sync/test_filters.py": "records as users ask for them",
    "sync/test_half_done_runs.py": "what a failed run leaves in ledger, Dagster and Harper",
    "sync/test_keys_have_effect.py": "every key of a contract",
    "sync/test_locked_ledger.py": "a ledger that somebody has locked",
    "sync/test_names_and_sizes.py": "odd names and large texts",
    "sync/test_operations.py": "all that a sync asks of Harper",
    "sync/test_rows_harper_loses.py": "rows that Harper would lose",
    "sync/test_shapes.py": "shapes of data",
    "sync/test_shapes_positions.py": "a day of positions",
    "sync/test_shapes_values.py": "values at the edges of their types",
    "sync/test_source_faults.py": "a BigQuery that goes away",
    "test_architecture_page.py": "docs/architecture.md",
    "test_benchmarks.py": "benchmarks that reach into the package",
    "test_mirror.py": "this page",
    "test_public_names.py": "public names of the whole package",
    "test_schema_figures.py": "figures of docs/schema.md",
    "validation/test_validation_page.py": "the queries of docs/validation.md",
}

# A module with more statements than this inside its functions holds logic.
PLAIN_UP_TO = 12
# Modules that hold logic and are tried through others only, with the tests that do so.
TRIED_BY = {
    "cli/commands/demo.py": "maritime/test_synced.py",  # its steps; nobody types the command
    "cli/main.py": "cli/test_exit_codes.py",
    "contract/settings/addresses.py": "contract/settings/test_origins.py",
    "ledger/verbs/transitions.py": "ledger/verbs/test_cell_commits.py",
    "local/emulator.py": "local/test_emulator_gaps.py",
    "local/emulator_launcher.py": "local/test_emulator_gaps.py",
    "local/locks.py": "cli/commands/test_ui.py",
    "maritime/itinerary.py": "maritime/test_track.py",
    "stores/harper/encoding/key_ids.py": "sync/identity/test_row_id.py",
    "stores/harper/encoding/single_values.py": "stores/harper/encoding/test_column_values.py",
    "sync/diff/rows_by_id.py": "validation/proof/test_cell_differences.py",
    "sync/errors.py": "test_errors.py",
    "sync/plan/recomputed_fingerprints.py": "validation/proof/test_prover.py",
    "sync/spark/session.py": "sync/spark/test_errors.py",
    "sync/turn/writing.py": "sync/turn/test_turn.py",
    "sync/turn_context.py": "sync/turn/test_turn.py",
}
AT_LEAST = 0.85


def _modules(folder: Path) -> set[str]:
    return {file.stem for file in folder.glob("*.py") if not file.stem.startswith("test_")}


def _module_of(test: Path) -> str | None:
    """The module that a file of tests is named for, in its room or beside it among the tests."""
    name = test.stem.removeprefix("test_")
    room = PACKAGE / test.parent.relative_to(TESTS)
    known = _modules(room) | _modules(test.parent)
    fitting = [each for each in known if name == each or name.startswith(f"{each}_")]
    return max(fitting, key=len, default=None)


def _tests() -> list[Path]:
    found = sorted(TESTS.rglob("test_*.py"))
    return [test for test in found if test.relative_to(TESTS).parts[0] not in APART]


def _statements(module: Path) -> int:
    tree = ast.parse(module.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    inside = {node for function in functions for node in ast.walk(function)} - {*functions}
    return sum(isinstance(node, ast.stmt) and not _is_docstring(node) for node in inside)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def test_every_folder_of_tests_is_a_room_of_the_package_or_named_as_one_apart() -> None:
    folders = {test.parent.relative_to(TESTS) for test in _tests()}
    assert [str(folder) for folder in sorted(folders) if not (PACKAGE / folder).is_dir()] == []
    assert [name for name in APART if not (TESTS / name).is_dir()] == []


def test_every_file_of_tests_is_named_for_a_module_of_its_room_or_is_a_story() -> None:
    nameless = {str(test.relative_to(TESTS)) for test in _tests() if _module_of(test) is None}
    assert sorted(nameless - {*STORIES}) == [], "name them for a module, or list them as stories"
    assert sorted({*STORIES} - nameless) == [], "no stories any more"


def test_modules_that_hold_logic_have_tests_of_their_name_or_say_who_tries_them() -> None:
    named = {(test.parent.relative_to(TESTS), _module_of(test)) for test in _tests()}
    steps = PACKAGE / "ledger" / "store" / "migrations"
    logical = {
        module.relative_to(PACKAGE)
        for module in PACKAGE.rglob("*.py")
        if steps not in module.parents and _statements(module) > PLAIN_UP_TO
    }
    without = {str(each) for each in logical if (each.parent, each.stem) not in named}
    share = 1 - len(without) / len(logical)
    print(f"{share:.0%} of {len(logical)} modules that hold logic have tests of their name")
    assert sorted(without - {*TRIED_BY}) == [], "write tests, or say in TRIED_BY who tries them"
    assert sorted({*TRIED_BY} - without) == [], "these have tests of their name, or are gone"
    assert [test for test in TRIED_BY.values() if not (TESTS / test).is_file()] == []
    assert share >= AT_LEAST
