"""From layers to connections: what is wrong fails at once, what is missing when it is asked for."""

import os
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from bq_harper_assets.contract.connections import (
    BigQueryConnection,
    HarperConnection,
    LedgerSettings,
    SparkSettings,
)
from bq_harper_assets.contract.loading.block_check import checked
from bq_harper_assets.contract.loading.located import Located
from bq_harper_assets.contract.loading.problems import Problem
from bq_harper_assets.contract.settings.layers import ARGUMENT, ENVIRONMENT, Layers, to_block
from bq_harper_assets.contract.settings.profile import (
    LOCAL,
    BigQueryProfile,
    HarperProfile,
    LedgerProfile,
    Profile,
    SparkProfile,
    key_path,
)
from bq_harper_assets.contract.settings.urls import is_loopback

_SQLITE = "sqlite:///"


@dataclass(frozen=True, kw_only=True)
class Systems:
    """All four systems; in place of a connection, what is missing for it."""

    profile: Profile
    bigquery: BigQueryConnection | Problem
    harper: HarperConnection | Problem
    spark: SparkSettings
    ledger: LedgerSettings
    emulated: bool


def resolve(layers: Layers, name: str, root: Path, problems: list[Problem]) -> Systems | None:
    """The settings that count as connections; None if one of them is wrong."""
    block = to_block(layers.winners())
    profile = checked(block, Profile, problems)
    emulated = name == LOCAL or layers.winner("bigquery.endpoint") is not None
    # Looked at even if another value is wrong, so that all is told at once.
    credentials = None if emulated else _key_file(layers, root, problems)
    _refuse_open_http(layers, problems)
    if profile is None:
        return None
    if profile.bigquery.endpoint is None and profile.bigquery.storage_endpoint is not None:
        entry = block.mapping["bigquery"].mapping["storageEndpoint"]
        problems.append(entry.problem("needs endpoint, the emulator's REST address, beside it"))
    return Systems(
        profile=profile,
        bigquery=_bigquery(profile.bigquery, name, credentials),
        harper=_harper(profile.harper, name),
        spark=_spark(profile.spark),
        ledger=_ledger(profile.ledger, root),
        emulated=emulated,
    )


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
        project=found.project,
        location=found.location,
        endpoint=found.endpoint,
        storage_endpoint=found.storage_endpoint,
        credentials=credentials,
        # Whoever writes the default means it: a storm counts too.
        max_retries=found.max_retries if "max_retries" in found.model_fields_set else None,
        initial_retry_delay_ms=found.initial_retry_delay,
        max_bytes_billed=found.max_bytes_billed,
        results_dataset=found.results_dataset,
    )


def _harper(found: HarperProfile, name: str) -> HarperConnection | Problem:
    if found.password is None and found.token is None:
        if name == LOCAL:
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
    return HarperConnection(
        url=found.url,
        user=found.user,
        password=found.password or SecretStr(""),
        token=found.token,
        allow_http=found.allow_http,
        requests_in_flight=found.requests_in_flight,
    )


def _spark(found: SparkProfile) -> SparkSettings:
    master = found.master or (None if found.remote else SparkSettings().master)
    return SparkSettings(master=master, remote=found.remote, settings=found.settings)


def _ledger(found: LedgerProfile, root: Path) -> LedgerSettings:
    url = found.url.get_secret_value()
    if url.startswith(_SQLITE):
        # Relative to the project, wherever the command was typed.
        url = f"{_SQLITE}{root / url.removeprefix(_SQLITE)}"
    return LedgerSettings(url=SecretStr(url))


def _refuse_open_http(layers: Layers, problems: list[Problem]) -> None:
    url = layers.winner("harper.url")
    harper = to_block(layers.winners()).mapping.get("harper")
    found = checked(harper, HarperProfile, []) if harper else None
    if url is None or found is None or found.allow_http or not found.url.startswith("http:"):
        return
    if not is_loopback(found.url):
        message = (
            "would send the password unencrypted to another machine: use https, "
            "or set allowHttp: true under harper: in the profile"
        )
        problems.append(url.problem(message))


def _key_file(layers: Layers, root: Path, problems: list[Problem]) -> Path | None:
    entry = layers.winner("bigquery.credentials")
    if entry is None:
        return None
    try:
        tried = _places_of(entry, key_path(entry.value), root)
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


def _places_of(entry: Located, path: str, root: Path) -> list[Path]:
    written = Path(os.path.expanduser(path))
    if entry.place.file in (ARGUMENT, ENVIRONMENT):
        return [written.absolute()]
    return list(dict.fromkeys([(root / entry.place.file).parent / written, root / written]))


def _missing(profile: str, setting: str, message: str) -> Problem:
    return Problem(file=f"profile {profile}", line=0, path=setting, value=None, message=message)
