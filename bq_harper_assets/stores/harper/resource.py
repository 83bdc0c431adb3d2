"""Makes Harper a Dagster resource."""

from typing import Any, ClassVar

import dagster as dg
from pydantic import ConfigDict, Field, SecretStr, field_validator

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.contract.settings.urls import HARPER_URL
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.stores.harper.client import DATABASE, HarperClient


class HarperResource(dg.ConfigurableResource[HarperClient]):
    """Connects to one Harper.

    Give its password and token as EnvVar, so that no page of the UI shows them.
    """

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    url: str = Field(description="Harper's Operations API, such as https://harper.example.com:9925")
    user: str = Field(default="", description="Harper user")
    password: str = Field(default="", repr=False, description="Its password")
    token: str = Field(
        default="", repr=False, description="Operation token, used instead of user and password"
    )
    allow_http: bool = Field(
        default=False, description="Send the password over plain http to another machine"
    )
    database: str = Field(default=DATABASE, description="Harper database of the tables")
    requests_in_flight: int | None = Field(
        default=None, ge=1, description="Requests at once; left out: one per server thread"
    )
    max_retries: int = Field(default=5, ge=0, description="Tries after the first")
    initial_retry_delay_ms: int = Field(
        default=1000, ge=0, description="Wait before the first of them; doubles, up to 30 s"
    )

    _secrets: ClassVar[HarperConnection | None] = None

    @field_validator("url", mode="before")
    @classmethod
    def _is_url(cls, value: object) -> object:
        # An EnvVar is known by its name only until the run starts, and checked then.
        return value if isinstance(value, dg.EnvVar) else HARPER_URL.parse(value)

    @classmethod
    def from_connection(cls, connection: HarperConnection, **fields: Any) -> "HarperResource":
        """Makes a profile's resource; its secrets stay out of Dagster's config, which is shown."""
        # Dagster makes the resource again for each run from its config alone: only its class stays.
        told = {"__module__": cls.__module__, "__doc__": cls.__doc__}  # the UI shows the latter
        bound = type(cls.__name__, (cls,), {"_secrets": connection, **told})
        resource: HarperResource = bound(
            url=connection.url,
            user=connection.user,
            allow_http=connection.allow_http,
            requests_in_flight=connection.requests_in_flight,
            **fields,
        )
        return resource

    def connection(self) -> HarperConnection:
        """Returns the connection that a client needs."""
        known = self._secrets
        password = SecretStr(self.password) if self.password or known is None else known.password
        token = known.token if known else None
        return HarperConnection(
            url=self.url,
            user=self.user,
            password=password,
            token=SecretStr(self.token) if self.token else token,
            allow_http=self.allow_http,
            requests_in_flight=self.requests_in_flight,
        )

    def retry(self) -> RetryPolicy:
        """Returns the retry policy of this resource's clients."""
        return RetryPolicy(
            max_retries=self.max_retries, initial_delay_s=self.initial_retry_delay_ms / 1000
        )

    def client(self) -> HarperClient:
        """Makes a client, which the caller has to close: `with harper.client() as client`."""
        return HarperClient(self.connection(), database=self.database, retry=self.retry())
