"""A project is read from disk: its contracts, and how to reach the systems they name."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from bq_harper_assets.contract.connections import (
    BigQueryConnection,
    HarperConnection,
    LedgerSettings,
    SparkSettings,
)
from bq_harper_assets.contract.loading.config_entry import ConfigEntry
from bq_harper_assets.contract.loading.declared_tables import contracts
from bq_harper_assets.contract.loading.problems import ConfigError, Problem, in_order
from bq_harper_assets.contract.loading.shapes import declarations
from bq_harper_assets.contract.loading.variables import Variables, read_variables
from bq_harper_assets.contract.loading.yaml_file import read_yaml
from bq_harper_assets.contract.settings.addresses import (
    ADDRESSES_FILE,
    StackAddresses,
    read_addresses,
)
from bq_harper_assets.contract.settings.origins import (
    Setting,
    choose_profile,
    connection_settings,
    gather_origins,
    origin_text,
    read_profile,
    table_settings,
)
from bq_harper_assets.contract.settings.profile import LOCAL
from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets.contract.settings.systems import resolve_systems
from bq_harper_assets.contract.table import TableContract


@dataclass(frozen=True, kw_only=True)
class Project:
    """A project is valid; a connection that lacks an address or password says so when used."""

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
    now: datetime | None = None,
) -> Project:
    """Reads and checks everything in config/; ConfigError holds all that is wrong."""
    root = root.absolute()
    problems: list[Problem] = []
    warnings: list[Problem] = []
    variables = read_variables(root, environ, problems)
    declared = declarations(_config_files(root, variables, problems), problems)
    tables = contracts(declared, problems, warnings, now or datetime.now(UTC))
    chosen = choose_profile(profile, variables)
    name = str(chosen.value)
    stack = _stack(root, name, problems)
    origins = gather_origins(
        variables,
        read_profile(root, chosen, variables, problems),
        {f"bigquery.{key}": entry for key, entry in declared.connection.items()},
        stack,
    )
    systems = resolve_systems(origins, name, root, problems, stack)
    if systems is None or problems:
        raise ConfigError(problems)
    if name != LOCAL and (endpoint := origins["bigquery.endpoint"]):
        message = f"profile {name} reads from an emulator, not from BigQuery"
        warnings.append(endpoint[0].problem(message))
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
            Setting("profile", name, origin_text(chosen)),
            *connection_settings(systems.profile, origins, emulated=systems.emulated),
            *declared_settings,
        ),
        warnings=in_order(warnings),
        _bigquery=systems.bigquery,
        _harper=systems.harper,
    )


def _config_files(root: Path, variables: Variables, problems: list[Problem]) -> list[ConfigEntry]:
    folder = root / "config"
    # Hidden files are what editors and file systems leave beside the real ones.
    files = sorted(file for file in folder.glob("[!.]*") if file.suffix in (".yaml", ".yml"))
    read = (read_yaml(f, f.relative_to(root).as_posix(), variables, problems) for f in files)
    return [file for file in read if file is not None]


def _stack(root: Path, profile: str, problems: list[Problem]) -> StackAddresses | None:
    if profile != LOCAL:
        return None
    folder = local_folder(root)
    file = (folder / ADDRESSES_FILE).relative_to(root).as_posix()
    try:
        return read_addresses(folder)
    except PermissionError as error:
        message = (
            f"cannot be read by this user ({error.strerror}): type this as the user who started the"
            " local stack"
        )
        problems.append(Problem(file=file, message=message))
        return None
    except (ValidationError, OSError, UnicodeDecodeError):
        message = "is not what bqh up writes: delete it, then type bqh up"
        problems.append(Problem(file=file, message=message))
        return None
