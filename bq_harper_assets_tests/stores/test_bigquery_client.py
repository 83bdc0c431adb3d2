"""Clients for BigQuery: what is missing for them is told before anything is sent."""

from pathlib import Path

import pytest

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


def test_missing_default_credentials_point_to_doctor(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    with pytest.raises(BigQueryRefused, match=r"application-default login`, then `bqh doctor`"):
        connect(BigQueryConnection(project="demo"))
