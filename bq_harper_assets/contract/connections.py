"""A connection holds all that a store needs to connect; settings are resolved to one per system."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SecretStr


class BigQueryConnection(BaseModel):
    """This reaches BigQuery, or its emulator if `endpoint` is set, which uses no credentials."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    project: str
    location: str = "US"
    endpoint: str | None = None  # http://host:port of the emulator's REST API
    storage_endpoint: str | None = None  # host:port of the emulator's gRPC Storage API
    credentials: Path | None = None  # key file; None means application default credentials
    max_retries: int | None = None  # None: 5, and storms are waited out as each table says
    initial_retry_delay_ms: int = 1000
    max_bytes_billed: int | None = None  # of one query; None means no limit
    results_dataset: str = "bqh_results"  # results of queries are kept here while a run reads them


class HarperConnection(BaseModel):
    """Harper is reached by its Operations API."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str
    user: str
    password: SecretStr
    token: SecretStr | None = None  # if set, used instead of user and password
    allow_http: bool = False  # plain http to a host that is not loopback
    requests_in_flight: int | None = None  # None means one per server thread

    def __getstate__(self) -> dict[Any, Any]:
        """Refuses to pickle secrets: a closure is written to files and sent over networks."""
        if self.password.get_secret_value() or self.token is not None:
            raise TypeError(
                "a connection with a password is not pickled: see stores/harper/task_login.py"
            )
        return super().__getstate__()


class SparkSettings(BaseModel):
    """Rows are moved by the Spark at `master`, or by a Spark Connect server if `remote` is set."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    master: str | None = "local[*]"
    remote: str | None = Field(default=None, repr=False)  # may hold a token
    settings: dict[str, SecretStr] = {}  # some settings are secrets, so all are kept as such


class LedgerSettings(BaseModel):
    """The ledger's SQLAlchemy URL may hold a password; the path of a SQLite file is absolute."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: SecretStr
