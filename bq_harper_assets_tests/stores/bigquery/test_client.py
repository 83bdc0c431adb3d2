"""Clients for BigQuery: what is missing for them is told before anything is sent."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import google.auth
import grpc
import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud.bigquery_storage_v1.services.big_query_read.transports import (
    BigQueryReadGrpcTransport,
)
from requests.exceptions import InvalidJSONError

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.stores.bigquery.client import connect, connect_storage
from bq_harper_assets.stores.bigquery.errors import BigQueryRefused
from bq_harper_assets_tests.fault_proxy import Answer, FaultProxy
from bq_harper_assets_tests.stores.bigquery.by_hand import PROJECT, BigQueryByHand

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


@pytest.mark.parametrize(
    ("method", "status", "body", "fails"),
    [
        ("GET", 200, b"", True),
        ("GET", 200, b'{"datasetReference": {"projectId": "demo", "datasetId": "d"}}', False),
        ("DELETE", 200, b"", False),
        ("DELETE", 204, b"", False),
    ],
)
def test_a_200_with_nothing_in_it_is_no_answer_but_to_a_delete(
    method: str, status: int, body: bytes, fails: bool, nowhere: str
) -> None:
    with FaultProxy(nowhere) as proxy:
        proxy.on(Answer(status, body, {"Content-Type": "application/json"}), times=9)
        with connect(BigQueryConnection(project="demo", endpoint=proxy.url)) as client:
            call = client.get_dataset if method == "GET" else client.delete_dataset
            with pytest.raises(InvalidJSONError) if fails else nullcontext():
                call("demo.d", retry=None)
    assert proxy.seen()[0].method == method


def test_a_client_is_of_the_project_and_location_with_the_key_file_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with BigQueryByHand() as service:
        monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", service.endpoint)
        known = service.as_service(tmp_path / "key.json").model_copy(update={"location": "EU"})
        for each in (known, service.connection.model_copy(update={"location": "EU"})):
            with connect(each) as client:
                assert (client.project, client.location) == (PROJECT, "EU")
                assert [*client.query("SELECT 1").result()] == []
    assert [asked.job["jobReference"]["location"] for asked in service.asked] == ["EU", "EU"]
    storage = connect_storage(known)
    assert storage.transport._credentials.service_account_email == "nobody@by-hand"
    storage.transport.close()
