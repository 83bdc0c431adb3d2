"""A profile says where BigQuery, Harper, Spark and the ledger are: one file per place to run in."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field, SecretStr, model_validator

from bq_harper_assets.contract import identifiers
from bq_harper_assets.contract.fields.declared_model import Declared, FieldFault, Reads, Wrong
from bq_harper_assets.contract.fields.quantities import FLAG, whole
from bq_harper_assets.contract.loading.config_entry import ConfigEntry
from bq_harper_assets.contract.loading.problems import Problem
from bq_harper_assets.contract.secrets import (
    is_key_itself,
    is_secret_name,
    literal_part,
    password_in_url,
)
from bq_harper_assets.contract.settings.urls import EMULATOR_URL, HARPER_URL, HOST_AND_PORT

LOCAL = "local"
_TEXT_SCHEMA = {"type": "string", "minLength": 1}
_BYTES_BILLED = whole(
    10 * 2**20,
    10**15,
    unit="bytes",
    too_small="BigQuery bills at least 10 MiB (10485760) per table that a query reads",
)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("must be text")
    text = str(value).strip()
    for char in text:
        if unicodedata.category(char) in ("Cc", "Cs"):
            raise ValueError(f"holds the control character U+{ord(char):04X}: take it out")
    return text


def key_path(value: Any) -> str:
    """Reads the path of a key file, which may not be there; refuses the key itself."""
    text = _text(value)
    if is_key_itself(text):
        raise ValueError("is the key itself: save it in a file and give the path of that file")
    return text


def _secret(value: Any) -> SecretStr:
    if isinstance(value, SecretStr):
        return value
    if not isinstance(value, str):
        raise ValueError("must be text")
    if not value.strip():
        raise ValueError("is blank: give it, or leave the key out")
    if re.search("[\ud800-\udfff]", value):
        raise ValueError("is not UTF-8 text: set it again in a terminal that writes UTF-8")
    return SecretStr(str(value))


def _location(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", value):
        raise ValueError("must be the location of the datasets, such as US, EU or europe-west1")
    return str(value)


def _ledger_url(value: Any) -> SecretStr:
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    if not isinstance(value, str) or not re.match(r"(sqlite:///.|postgresql(\+\w+)?://.)", value):
        raise ValueError("must be sqlite:///path/to/file.db or postgresql://host/database")
    return SecretStr(str(value))


def _spark_settings(value: Any) -> dict[str, SecretStr]:
    if not isinstance(value, dict):
        raise ValueError("must be a block of Spark settings, such as spark.executor.memory: 4g")
    faults: list[FieldFault] = []
    settings: dict[str, SecretStr] = {}
    for name, setting in value.items():
        if not str(name).startswith("spark."):
            faults.append(
                FieldFault((name,), "is not a Spark setting: their names begin with spark.")
            )
        elif isinstance(setting, str):
            settings[name] = SecretStr(str(setting))
        else:
            faults.append(FieldFault((name,), "must be text or a number"))
    if faults:
        raise Wrong(*faults)
    return settings


_Text = Annotated[str, Reads(_text, _TEXT_SCHEMA)]
_Secret = Annotated[SecretStr, Reads(_secret, _TEXT_SCHEMA)]


class BigQueryProfile(Declared):
    """This block says where BigQuery is and how it is asked."""

    project: Annotated[str, Reads(identifiers.project_name, _TEXT_SCHEMA)] | None = Field(
        default=None, description="Google Cloud project"
    )
    location: Annotated[str, Reads(_location, _TEXT_SCHEMA)] = Field(
        default="US", description="Location of the datasets; jobs must run where the data is"
    )
    endpoint: Annotated[str, EMULATOR_URL] | None = Field(
        default=None, description="REST address of an emulator"
    )
    storage_endpoint: Annotated[str, HOST_AND_PORT] | None = Field(
        default=None, description="host:port of the emulator's Storage API"
    )
    credentials: Annotated[str, Reads(key_path, _TEXT_SCHEMA)] | None = Field(
        default=None,
        description="Service account key file; left out: application default credentials",
    )
    max_retries: Annotated[int, whole(0, 20)] = Field(
        default=5, description="Retries of a BigQuery call that may succeed later"
    )
    initial_retry_delay: Annotated[int, whole(1, 30_000, unit="milliseconds")] = Field(
        default=1_000,
        description="Milliseconds before the first retry; doubles with each, up to 30 seconds",
    )
    max_bytes_billed: Annotated[int, _BYTES_BILLED] | None = Field(
        default=None, description="Most bytes one query may be billed for; left out: no limit"
    )
    results_dataset: Annotated[str, Reads(identifiers.dataset_name, _TEXT_SCHEMA)] = Field(
        default="bqh_results",
        description="Dataset in which the result of a query or view is kept while a run reads it",
    )


class HarperProfile(Declared):
    """This block says where Harper is and how it is asked."""

    url: Annotated[str, HARPER_URL] = Field(
        default="http://localhost:9925", description="Harper's Operations API"
    )
    user: _Text = Field(default="admin", description="Harper user")
    password: _Secret | None = Field(default=None, description="Its password")
    token: _Secret | None = Field(
        default=None, description="Operation token, used instead of user and password"
    )
    allow_http: Annotated[bool, FLAG] = Field(
        default=False, description="Send the password over plain http to another machine"
    )
    requests_in_flight: Annotated[int, whole(1, 256)] | None = Field(
        default=None, description="Requests to Harper at once; left out: one per server thread"
    )


class SparkProfile(Declared):
    """This block says on which Spark rows are moved."""

    master: _Text | None = Field(default=None, description="Spark master")
    remote: _Text | None = Field(
        default=None, repr=False, description="Spark Connect server, instead of master"
    )
    settings: Annotated[dict[str, SecretStr], Reads(_spark_settings, {"type": "object"})] = Field(
        default_factory=dict, description="Further Spark settings"
    )

    @model_validator(mode="after")
    def _one_way(self) -> "SparkProfile":
        if self.master and self.remote:
            raise Wrong(
                FieldFault(("remote",), "stands beside master: give one of them", ("master",))
            )
        return self


class LedgerProfile(Declared):
    """This block says where the ledger is."""

    url: Annotated[SecretStr, Reads(_ledger_url, _TEXT_SCHEMA)] = Field(
        default=SecretStr("sqlite:///.local/ledger.db"),
        description="SQLAlchemy URL; a SQLite path is relative to the project",
    )


class Profile(Declared):
    """A profile has a block for each system."""

    bigquery: BigQueryProfile = BigQueryProfile()
    harper: HarperProfile = HarperProfile()
    spark: SparkProfile = SparkProfile()
    ledger: LedgerProfile = LedgerProfile()


def literal_secrets(profile: ConfigEntry) -> Iterator[Problem]:
    """Finds secrets that the file itself holds, which is right for a throw-away stack only."""
    harper, spark = profile.below("harper"), profile.below("spark")
    settings = [entry for _, entry in spark.below("settings").items()]
    for entry in (*(entry for _, entry in harper.items()), *settings):
        if is_secret_name(str(entry.path[-1])) and _literal(entry).strip():
            yield entry.problem(
                "is a secret written in a file: put it into the environment or .env, "
                "and write ${NAME} here"
            )
    for entry in (profile.below("ledger", "url"), spark.below("remote"), *settings):
        if password_in_url(_literal(entry)):
            yield entry.problem(
                "holds a password written in a file: "
                "put it into the environment and write ${NAME} here"
            )


def _literal(entry: ConfigEntry) -> str:
    return literal_part(entry.written) if isinstance(entry.value, str) else ""
