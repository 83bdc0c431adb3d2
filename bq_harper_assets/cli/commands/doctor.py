"""`bqh doctor` shows every setting with its origin, tries every connection, and says what to do."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from bq_harper_assets.cli.exit_codes import ExitCode
from bq_harper_assets.cli.options import OUTPUT, PROFILE
from bq_harper_assets.cli.runs.asked_table import open_project
from bq_harper_assets.cli.runs.readiness import require_ready, require_source
from bq_harper_assets.cli.storage_errors import StorageFault, storage_errors
from bq_harper_assets.contract.loading.problems import ConfigError
from bq_harper_assets.contract.project import Project
from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets.errors import BqhError
from bq_harper_assets.local.dagster_home import SETTINGS, dagster_home, make_dagster_home
from bq_harper_assets.local.errors import SetupError
from bq_harper_assets.local.java import java_home
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.stores.bigquery.probe import BEFORE_TABLES, probe_bigquery
from bq_harper_assets.stores.finding import Finding
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.mirror.tables import (
    MIRRORED_LEASES,
    SystemTable,
    look_at_system_tables,
)
from bq_harper_assets.stores.harper.probe import probe_harper

LOW_SPACE_BYTES = 2 * 1024**3
_WIDE = 10_000  # columns
COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command()
@PROFILE
@OUTPUT
def doctor(profile: str | None, output: str) -> None:
    """Print each setting with its source, try each connection and right, and say what to do."""
    project = open_project(profile)
    findings = examine(project)
    tables = system_tables(project, findings)
    findings += [system_table_finding(table) for table in tables]
    findings += list(_ready(project, findings))
    findings.append(dagster_finding(project))
    if output == "json":
        settings = [asdict(setting) for setting in project.settings]
        report = {
            "profile": project.profile_name,
            "settings": settings,
            "warnings": [str(warning) for warning in project.warnings],
            "systemTables": [asdict(table) for table in tables],
        }
        click.echo(
            json.dumps(report | {"findings": [asdict(found) for found in findings]}, indent=2)
        )
    else:
        _print(project, findings)
    failed = any(found.verdict == "fail" for found in findings)
    sys.exit(ExitCode.ERROR if failed else ExitCode.DONE)


def examine(project: Project) -> list[Finding]:
    """Tries everything; what cannot be tried for want of a setting is a finding too."""
    return [
        *_check_machine(project.root, os.environ),
        *_unless_unset(
            "bigquery: settings", lambda: probe_bigquery(project.bigquery, project.tables)
        ),
        *_unless_unset("harper: settings", lambda: probe_harper(project.harper)),
    ]


def _check_machine(root: Path, environ: Mapping[str, str]) -> list[Finding]:
    """Checks that there is a Java for Spark, room on the disk, and a folder that can be written."""
    return [_java(root, environ), _disk(root), _writable(local_folder(root))]


def _java(root: Path, environ: Mapping[str, str]) -> Finding:
    try:
        return Finding("machine: Java", "ok", f"Spark will use {java_home(root, environ)}")
    except SetupError as error:
        return Finding("machine: Java", "fail", str(error), "make setup")


def _disk(root: Path) -> Finding:
    free = shutil.disk_usage(root).free
    detail = f"{free / 1024**3:.1f} GB free in {root}"
    if free < LOW_SPACE_BYTES:
        return Finding("machine: disk", "warn", detail, "free some space before a large sync")
    return Finding("machine: disk", "ok", detail)


def _writable(folder: Path) -> Finding:
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    if nearest.is_dir() and os.access(nearest, os.W_OK):
        return Finding("machine: files", "ok", f"{folder} can be written")
    return Finding(
        "machine: files",
        "fail",
        f"{folder} cannot be written",
        "change its owner, or set BQH_HOME to a project folder of yours",
    )


def system_tables(project: Project, findings: list[Finding]) -> tuple[SystemTable, ...]:
    """Lists the sync's own tables in Harper; none if the findings say that it cannot be asked."""
    if ("harper: log in", "ok") not in {(found.subject, found.verdict) for found in findings}:
        return ()
    with HarperClient(project.harper, retry=RetryPolicy(max_retries=0)) as harper:
        return look_at_system_tables(harper)


def _ready(project: Project, findings: list[Finding]) -> Iterator[Finding]:
    """Says whether each table can be synced as it is declared and as both stores stand."""
    failed = {found.subject for found in findings if found.verdict == "fail"}
    if any(": settings" in subject for subject in failed):
        return
    for contract in project.tables:
        subject = f"table {contract.id}"
        try:
            readiness = require_ready(project, contract)
            if wrong := sorted(failed & {f"bigquery: {contract.id}", *BEFORE_TABLES}):
                told = f"cannot be synced as long as this fails: {wrong[0]}"
                yield Finding(subject, "fail", told)
                continue
            require_source(project, contract)
        except BqhError as error:
            yield Finding(subject, "fail", str(error))
        else:
            yield Finding(subject, "ok", readiness.value)


def dagster_finding(project: Project) -> Finding:
    """Says whether Dagster's settings let it notice runs that were killed."""
    # Here and not above: dagster takes seconds to import.
    from bq_harper_assets.defs.instance_settings import lacking_at, what_it_means

    subject, home = "dagster: settings", dagster_home(project.root, os.environ)
    try:
        with storage_errors():
            settings = lacking_at(make_dagster_home(project.root, os.environ))
    except StorageFault as fault:
        return Finding(subject, "fail", f"Dagster does not open {home}: {fault.what}", fault.cure)
    except Exception as error:  # whatever its storage, its launcher or its own settings raise
        why = str(error).partition("\n[SQL")[0]  # what follows is SQLAlchemy's
        return Finding(subject, "fail", f"Dagster does not open {home}: {why}")
    if not settings:
        return Finding(subject, "ok", f"runs that are killed are noticed ({home})")
    advice = f"write into {home / SETTINGS}: {'; '.join(settings)}"
    return Finding(subject, "warn", what_it_means(home), advice)


def system_table_finding(table: SystemTable) -> Finding:
    """Says whether one of the sync's own tables in Harper is as declared, and what to do if not."""
    subject = f"harper: {table.name}"
    match table.state:
        case "present":
            has = ", ".join(table.attributes)
            return Finding(subject, "ok", f"version {table.version} of its layout: {has}")
        case "missing":
            return Finding(subject, "ok", "not there yet: the first sync makes it")
        case "unknown":
            return Finding(subject, "warn", table.problem)
    if table.name == MIRRORED_LEASES.name:
        advice = (
            "every run needs it. What is lacking comes with the next run; if it is another tool's,"
            " drop it when no run goes on, and then type: bqh reconcile TABLE for each table"
        )
    else:
        advice = (
            "syncs do not need it. If it is no other tool's, drop it: the ledger has what it shows,"
            " and the next copy makes it anew"
        )
    lacks = f"lacks {', '.join(table.lacking)} of version {table.version} of its layout"
    return Finding(subject, "warn", lacks, advice)


def _unless_unset(subject: str, probe: Callable[[], list[Finding]]) -> list[Finding]:
    try:
        return probe()
    except ConfigError as error:
        return [Finding(subject, "fail", "; ".join(each.message for each in error.problems))]


def _print(project: Project, findings: list[Finding]) -> None:
    # Nothing is cut: a file or a program gets whole lines, and a narrow terminal folds them.
    console = Console() if sys.stdout.isatty() else Console(width=_WIDE)
    columns = (Column(name, overflow="fold") for name in ("setting", "value", "from"))
    settings = Table(*columns, title=f"Profile {project.profile_name}", title_justify="left")
    for setting in project.settings:
        settings.add_row(setting.name, Text(setting.value), setting.source)
    console.print(settings)
    for warning in project.warnings:
        console.print(Text(f"warning: {warning}", style="yellow"))
    for found in findings:
        console.print(
            Text(f"{found.verdict:4}", style=COLOURS[found.verdict]),
            Text(f"{found.subject}: {found.detail}"),
        )
        if found.next_step:
            console.print(Text(f"     next: {found.next_step}"))
