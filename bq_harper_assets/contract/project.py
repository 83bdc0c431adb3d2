"""A project as it stands on disk: its contracts, and how to reach the systems they name."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bq_harper_assets.contract.connections import (
    BigQueryConnection,
    HarperConnection,
    LedgerSettings,
    SparkSettings,
)
from bq_harper_assets.contract.loading.block_check import checked
from bq_harper_assets.contract.loading.declared_tables import contracts
from bq_harper_assets.contract.loading.located import Located, Place
from bq_harper_assets.contract.loading.problems import ConfigError, Problem, in_order
from bq_harper_assets.contract.loading.shapes import declarations
from bq_harper_assets.contract.loading.spelling import with_canonical_keys
from bq_harper_assets.contract.loading.variables import Variables, read_variables
from bq_harper_assets.contract.loading.yaml_file import read_yaml
from bq_harper_assets.contract.settings.addresses import (
    ADDRESSES_FILE,
    StackAddresses,
    read_addresses,
)
from bq_harper_assets.contract.settings.effective import (
    Setting,
    connection_settings,
    table_settings,
)
from bq_harper_assets.contract.settings.layers import (
    ARGUMENT,
    DEFAULT,
    Layers,
    from_arguments,
    from_block,
    from_stack,
    from_variables,
    source_text,
    to_block,
)
from bq_harper_assets.contract.settings.profile import LOCAL, Profile, literal_secrets, profile_file
from bq_harper_assets.contract.settings.resolution import resolve
from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets.contract.settings.server_pairs import usable
from bq_harper_assets.contract.table import TableContract

PROFILE_VARIABLE = "BQH_PROFILE"


@dataclass(frozen=True, kw_only=True)
class Project:
    """Valid contracts; a connection that lacks an address or password says so when asked for."""

    root: Path
    profile_name: str
    tables: tuple[TableContract, ...]
    spark: SparkSettings
    ledger: LedgerSettings
    settings: tuple[Setting, ...] = field(repr=False)
    warnings: tuple[Problem, ...]
    _bigquery: BigQueryConnection | Problem = field(repr=False)
    _harper: HarperConnection | Problem = field(repr=False)

    @property
    def bigquery(self) -> BigQueryConnection:
        if isinstance(self._bigquery, Problem):
            raise ConfigError([self._bigquery])
        return self._bigquery

    @property
    def harper(self) -> HarperConnection:
        if isinstance(self._harper, Problem):
            raise ConfigError([self._harper])
        return self._harper


def load_project(
    root: Path,
    *,
    profile: str | None = None,
    environ: Mapping[str, str] = os.environ,
    overrides: Mapping[str, Any] | None = None,
    now: datetime | None = None,
) -> Project:
    """Everything in config/, checked together; ConfigError holds all that is wrong."""
    root = root.absolute()
    problems: list[Problem] = []
    warnings: list[Problem] = []
    variables = read_variables(root, environ, problems)
    declared = declarations(_config_files(root, variables, problems), problems)
    tables = contracts(declared, problems, warnings, now or datetime.now(UTC))
    chosen = _profile_name(profile, variables)
    name = str(chosen.value)
    layers = usable(
        Layers(
            arguments=from_arguments(overrides or {}, problems),
            variables=from_variables(variables),
            profile=from_block(_profile_block(root, chosen, variables, problems)),
            files={f"bigquery.{key}": entry for key, entry in declared.connection.items()},
            stack=from_stack(_stack(root, name, problems)),
        )
    )
    # Also what is overruled must be right: it counts again as soon as a variable is gone.
    for layer in (layers.arguments, layers.variables, layers.files):
        checked(to_block(layer), Profile, problems)
    systems = resolve(layers, name, root, problems)
    if systems is None or problems:
        raise ConfigError(problems)
    if name != LOCAL and (endpoint := layers.winner("bigquery.endpoint")):
        message = f"profile {name} reads from an emulator, not from BigQuery"
        warnings.append(endpoint.problem(message))
    declared_settings = (
        setting
        for contract, table in zip(tables, declared.tables, strict=True)
        for setting in table_settings(contract, table)
    )
    return Project(
        root=root,
        profile_name=name,
        tables=tuple(tables),
        spark=systems.spark,
        ledger=systems.ledger,
        settings=(
            Setting("profile", name, source_text(chosen)),
            *connection_settings(systems.profile, layers, emulated=systems.emulated),
            *declared_settings,
        ),
        warnings=in_order(warnings),
        _bigquery=systems.bigquery,
        _harper=systems.harper,
    )


def _config_files(root: Path, variables: Variables, problems: list[Problem]) -> list[Located]:
    folder = root / "config"
    # Hidden files are what editors and file systems leave beside the real ones.
    files = sorted(file for file in folder.glob("[!.]*") if file.suffix in (".yaml", ".yml"))
    read = (read_yaml(f, f.relative_to(root).as_posix(), variables, problems) for f in files)
    return [file for file in read if file is not None]


def _profile_name(argument: str | None, variables: Variables) -> Located:
    if argument is not None:
        return Located(Place(ARGUMENT, 0, ("profile",)), argument, argument)
    return variables.located(PROFILE_VARIABLE) or Located(Place(DEFAULT), LOCAL, LOCAL)


def _profile_block(
    root: Path, chosen: Located, variables: Variables, problems: list[Problem]
) -> Located:
    file = profile_file(root, str(chosen.value))
    nothing = Located(chosen.place, {})
    if isinstance(file, str):
        problems.append(chosen.problem(file))
        return nothing
    if not file.is_file():
        return nothing
    block = read_yaml(file, file.relative_to(root).as_posix(), variables, problems)
    if block is None:
        return nothing
    block = with_canonical_keys(block, Profile, problems)
    checked(block, Profile, problems)
    if chosen.value != LOCAL:
        problems.extend(literal_secrets(block))
    return block


def _stack(root: Path, profile: str, problems: list[Problem]) -> StackAddresses | None:
    if profile != LOCAL:
        return None
    folder = local_folder(root)
    try:
        return read_addresses(folder)
    except (ValidationError, OSError, UnicodeDecodeError):
        file = (folder / ADDRESSES_FILE).relative_to(root).as_posix()
        message = "is not what bqh up writes: delete it, then type bqh up"
        problems.append(Problem(file=file, line=0, path="", value=None, message=message))
        return None
