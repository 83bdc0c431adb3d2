"""Settings become connections: a wrong one fails at once, a missing one when it is needed."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from bq_harper_assets.contract.connections import (
    BigQueryConnection,
    HarperConnection,
    LedgerSettings,
    SparkSettings,
)
from bq_harper_assets.contract.loading.block_check import validated
from bq_harper_assets.contract.loading.config_entry import ConfigEntry
from bq_harper_assets.contract.loading.problems import Problem
from bq_harper_assets.contract.loading.variables import ENVIRONMENT
from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets.contract.settings.origins import Entries, Origins
from bq_harper_assets.contract.settings.profile import (
    LOCAL,
    BigQueryProfile,
    HarperProfile,
    LedgerProfile,
    Profile,
    SparkProfile,
    key_path,
)
from bq_harper_assets.contract.settings.urls import HARPER_URL, is_loopback

_SQLITE = "sqlite:///"


@dataclass(frozen=True, kw_only=True)
class Systems:
    """A project has four systems; where a connection cannot be made, its problem stands instead."""

    profile: Profile
    bigquery: BigQueryConnection | Problem
    harper: HarperConnection | Problem
    spark: SparkSettings
    ledger: LedgerSettings
    emulated: bool


def resolve_systems(
    origins: Origins,
    name: str,
    root: Path,
    problems: list[Problem],
    stack: StackAddresses | None = None,
) -> Systems | None:
    """Makes the systems of the settings that count; None if one of them is wrong."""
    winners = {setting: entries[0] for setting, entries in origins.items() if entries}
    profile = _profile(winners, problems)
    # Also what is overruled must be right: it counts again as soon as a variable is gone.
    for setting, entries in origins.items():
        for overruled in entries[1:]:
            _profile({setting: overruled}, problems)
    emulated = name == LOCAL or "bigquery.endpoint" in winners
    # Looked at even if another value is wrong, so that all is told at once.
    credentials = None if emulated else _key_file(winners, root, problems)
    _refuse_open_http(winners, problems)
    if profile is None:
        return None
    if profile.bigquery.endpoint is None and profile.bigquery.storage_endpoint is not None:
        entry = winners["bigquery.storageEndpoint"]
        problems.append(entry.problem("needs endpoint, the emulator's REST address, beside it"))
    return Systems(
        profile=profile,
        bigquery=_bigquery(profile.bigquery, name, credentials),
        harper=_harper(profile.harper, name, stack),
        spark=_spark(profile.spark),
        ledger=_ledger(profile.ledger, root),
        emulated=emulated,
    )


def _profile(entries: Entries, problems: list[Problem]) -> Profile | None:
    """Makes the profile of the entries; a fault is told where its own entry stands."""
    sections: dict[str, dict[str, Any]] = {}
    for name, entry in entries.items():
        section, _, key = name.partition(".")
        sections.setdefault(section, {})[key] = entry.value
    profile, faults = validated(sections, Profile)
    for fault in faults:
        entry = entries[f"{fault.steps[0]}.{fault.steps[1]}"]
        problems.append(entry.below(*fault.steps[2:]).problem(fault.message))
    return profile


def _bigquery(
    found: BigQueryProfile, name: str, credentials: Path | None
) -> BigQueryConnection | Problem:
    if found.project is None:
        message = (
            "no Google Cloud project: set projectId under bigquery: in config/tables.yaml, "
            "or GOOGLE_CLOUD_PROJECT"
        )
        return _missing(name, "bigquery.project", message)
    if found.endpoint is None and name == LOCAL:
        message = (
            "the local stack was not started: type bqh up, or set BIGQUERY_EMULATOR_HOST to an "
            "emulator of your own; for BigQuery itself set BQH_PROFILE=gcp"
        )
        return _missing(name, "bigquery.endpoint", message)
    return BigQueryConnection(
        **found.model_dump(exclude={"initial_retry_delay", "max_retries", "credentials"}),
        credentials=credentials,
        initial_retry_delay_ms=found.initial_retry_delay,
        # Whoever writes the default means it: a storm counts too.
        max_retries=found.max_retries if "max_retries" in found.model_fields_set else None,
    )


def _harper(
    found: HarperProfile, name: str, stack: StackAddresses | None
) -> HarperConnection | Problem:
    if found.password is None and found.token is None:
        is_of_stack = stack is not None and found.url == stack.harper_url
        if stack is not None and is_of_stack and (why := stack.password_refusal()):
            message = (
                f"this user cannot read Harper's password in {stack.harper_password_file} ({why}):"
                " type this as the user who started the local stack, or set OPERATIONSAPI_PASS"
            )
        elif name == LOCAL:
            message = (
                "no password for Harper: start the local stack with bqh up, or set "
                "OPERATIONSAPI_PASS (with OPERATIONSAPI_URL and OPERATIONSAPI_USER) "
                "for a Harper of your own"
            )
        else:
            message = (
                f"no password for Harper at {found.url}: "
                "set OPERATIONSAPI_PASS in the environment or .env"
            )
        return _missing(name, "harper.password", message)
    found = found.model_copy(update={"password": found.password or SecretStr("")})
    return HarperConnection(**found.model_dump())


def _spark(found: SparkProfile) -> SparkSettings:
    master = found.master or (None if found.remote else SparkSettings().master)
    return SparkSettings(master=master, remote=found.remote, settings=found.settings)


def _ledger(found: LedgerProfile, root: Path) -> LedgerSettings:
    url = found.url.get_secret_value()
    if url.startswith(_SQLITE):
        # Relative to the project, wherever the command was typed.
        url = f"{_SQLITE}{root / url.removeprefix(_SQLITE)}"
    return LedgerSettings(url=SecretStr(url))


def _refuse_open_http(winners: Entries, problems: list[Problem]) -> None:
    url, allowed = winners.get("harper.url"), winners.get("harper.allowHttp")
    if url is None or (allowed is not None and str(allowed.value).lower() != "false"):
        return
    try:
        text = HARPER_URL.parse(url.value)
    except ValueError:
        return  # told with the profile
    if text.startswith("http:") and not is_loopback(text):
        message = (
            "would send the password unencrypted to another machine: use https, "
            "or set allowHttp: true under harper: in the profile"
        )
        problems.append(url.problem(message))


def _key_file(winners: Entries, root: Path, problems: list[Problem]) -> Path | None:
    entry = winners.get("bigquery.credentials")
    if entry is None:
        return None
    try:
        tried = _paths_of(entry, key_path(entry.value), root)
    except ValueError:
        return None  # told with the profile
    for file in tried:
        if os.path.isfile(file):  # unlike Path's own, False also for what cannot be looked at
            return file
    message = (
        f"there is no key file at {' or '.join(map(str, tried))}: put it there, correct the path, "
        "or leave it out to use application default credentials "
        "(gcloud auth application-default login)"
    )
    problems.append(entry.problem(message))
    return None


def _paths_of(entry: ConfigEntry, path: str, root: Path) -> list[Path]:
    written = Path(os.path.expanduser(path))
    if entry.file == ENVIRONMENT:
        return [written.absolute()]
    return list(dict.fromkeys([(root / entry.file).parent / written, root / written]))


def _missing(profile: str, setting: str, message: str) -> Problem:
    return Problem(file=f"profile {profile}", message=message, path=setting)
