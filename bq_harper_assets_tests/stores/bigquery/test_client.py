"""Clients for BigQuery: what is missing for them is told before anything is sent."""

from pathlib import Path
from typing import Any

import google.auth
import grpc
import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud.bigquery_storage_v1.services.big_query_read.transports import (
    BigQueryReadGrpcTransport,
)

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.stores.bigquery.client import connect, connect_storage
from bq_harper_assets.stores.bigquery.errors import BigQueryRefused

NOWHERE = BigQueryConnection(project="demo", endpoint="http://127.0.0.1:9")  # the discard port


def test_an_emulator_without_a_storage_address_is_refused_with_the_variable() -> None:
    with pytest.raises(BigQueryRefused, match="set BIGQUERY_EMULATOR_STORAGE_HOST"):
        connect_storage(NOWHERE)


def test_a_missing_key_file_is_named(tmp_path: Path) -> None:
    connection = BigQueryConnection(project="demo", credentials=tmp_path / "key.json")
    for call in (connect, connect_storage):
        with pytest.raises(BigQueryRefused, match=r"key\.json is not there"):
            call(connection)


def test_google_is_pinged_while_a_stream_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[dict[str, Any]] = []

    def channel(host: str, **settings: Any) -> Any:
        made.append({"host": host, **settings})
        return grpc.insecure_channel("127.0.0.1:9")

    monkeypatch.setattr(google.auth, "default", lambda **named: (AnonymousCredentials(), "demo"))
    monkeypatch.setattr(BigQueryReadGrpcTransport, "create_channel", channel)
    connect_storage(BigQueryConnection(project="demo")).transport.close()
    [settings] = made
    assert settings["host"] == "bigquerystorage.googleapis.com:443"
    options = dict(settings["options"])
    assert options["grpc.keepalive_time_ms"] == 30_000
    assert options["grpc.keepalive_timeout_ms"] == 10_000
    assert options["grpc.max_receive_message_length"] == -1


def test_missing_default_credentials_point_to_doctor(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    with pytest.raises(BigQueryRefused, match=r"application-default login`, then `bqh doctor`"):
        connect(BigQueryConnection(project="demo"))
