"""Makes clients for BigQuery or its emulator: one for tables and queries, one for Storage reads."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.stores.bigquery.errors import BigQueryRefused, Feature, google_errors

# A ping finds out that the server is gone; after two without an answer in rows gRPC sends no
# more of them, so that no server takes them for abuse.
_KEPT_ALIVE = [("grpc.keepalive_time_ms", 30_000), ("grpc.keepalive_timeout_ms", 10_000)]

# Google's libraries take seconds to import and most commands need none: functions import them.
if TYPE_CHECKING:
    from google.cloud import bigquery
    from google.cloud.bigquery_storage_v1 import BigQueryReadClient


def connect(connection: BigQueryConnection) -> "bigquery.Client":
    """Connects to the emulator if `endpoint` is set, else with a key file or default login."""
    client = _client(connection)
    client._http.hooks["response"].append(_refuse_nothing)
    return client


def _refuse_nothing(response: Any, *args: Any, **named: Any) -> None:
    """Raises an error for an empty 200, which the library would accept, to fail in its own code."""
    import requests

    # When an upload is opened, the answer has headers only.
    says_nothing = response.request.method == "DELETE" or "/upload/" in response.request.url
    if response.status_code == 200 and not says_nothing and not response.content:
        raise requests.exceptions.InvalidJSONError("it answered 200 with nothing in it")


def _client(connection: BigQueryConnection) -> "bigquery.Client":
    from google.api_core.client_options import ClientOptions
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import bigquery

    if connection.endpoint is not None:
        return bigquery.Client(
            project=connection.project,
            location=connection.location,
            credentials=AnonymousCredentials(),  # type: ignore[no-untyped-call]
            client_options=ClientOptions(api_endpoint=connection.endpoint),
        )
    with google_errors(connection, "connecting", Feature.QUERY):
        if connection.credentials is not None:
            _require_key_file(connection.credentials)
            return bigquery.Client.from_service_account_json(  # type: ignore[no-any-return,no-untyped-call]
                str(connection.credentials),
                project=connection.project,
                location=connection.location,
            )
        return bigquery.Client(project=connection.project, location=connection.location)


def _require_key_file(file: Path) -> None:
    if not file.is_file():
        raise BigQueryRefused(
            f"the key file {file} is not there. Nothing was sent; set"
            " GOOGLE_APPLICATION_CREDENTIALS or `credentials` to a service account's key, then see"
            " `bqh doctor`."
        )


def connect_storage(connection: BigQueryConnection) -> "BigQueryReadClient":
    """Makes a Storage Read client; to the emulator it is plain text without a limit on messages."""
    from google.cloud.bigquery_storage_v1 import BigQueryReadClient
    from google.cloud.bigquery_storage_v1.services.big_query_read.transports import (
        BigQueryReadGrpcTransport,
    )

    if connection.endpoint is None:

        def channel(host: str, **settings: Any) -> Any:
            settings["options"] = [*settings["options"], *_KEPT_ALIVE]
            return BigQueryReadGrpcTransport.create_channel(host, **settings)

        make_transport: Any = partial(BigQueryReadGrpcTransport, channel=channel)
        with google_errors(connection, "connecting", Feature.READ):
            if connection.credentials is not None:
                _require_key_file(connection.credentials)
                key_file = str(connection.credentials)
                return BigQueryReadClient.from_service_account_file(  # type: ignore[no-any-return]
                    key_file, transport=make_transport
                )
            return BigQueryReadClient(transport=make_transport)  # type: ignore[no-untyped-call]
    if connection.storage_endpoint is None:
        raise BigQueryRefused(
            f"the emulator's REST address is set ({connection.endpoint}) but not its Storage"
            " address. Nothing was read; set BIGQUERY_EMULATOR_STORAGE_HOST to host:port."
        )
    import grpc  # type: ignore[import-untyped]

    options = [("grpc.max_receive_message_length", -1), *_KEPT_ALIVE]
    plain = grpc.insecure_channel(connection.storage_endpoint, options=options)
    transport = BigQueryReadGrpcTransport(channel=plain)
    return BigQueryReadClient(transport=transport)  # type: ignore[no-untyped-call]
