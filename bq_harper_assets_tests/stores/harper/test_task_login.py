"""Secrets on their way to tasks: they do not travel, and are found where the task runs."""

import hashlib
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pydantic import SecretStr
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import SparkSession

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.stores.harper.errors import NoPassword, PasswordNotWritten
from bq_harper_assets.stores.harper.task_login import TaskLogin, task_login
from bq_harper_assets.sync.spark.task_waits import FOLDER_SETTING
from bq_harper_assets.sync.spark.tasks import task_rows
from bq_harper_assets.validation.verdict import ProofStatus
from bq_harper_assets_tests.stores.small_tables import SmallTables, utc
from bq_harper_assets_tests.sync.conftest import Sync

CANARY = "canary-in-the-closure"
HARPER = HarperConnection(url="http://127.0.0.1:1", user="sync", password=SecretStr(CANARY))
MEGABYTE = 1 << 20


def test_a_connection_with_its_password_refuses_to_be_pickled() -> None:
    with pytest.raises(TypeError, match="a connection with a password is not pickled"):
        pickle.dumps(HARPER)


def test_a_task_without_file_takes_the_variable_of_its_machine_and_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = HARPER.model_copy(update={"password": SecretStr("")})
    of_tasks = TaskLogin(hidden, tmp_path / "nothing.json")
    with pytest.raises(NoPassword, match="nor the variable OPERATIONSAPI_PASS"):
        of_tasks.connection()
    monkeypatch.setenv("OPERATIONSAPI_PASS", CANARY)
    assert of_tasks.connection() == HARPER


def test_a_file_that_cannot_be_read_or_written_is_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder.json").mkdir()
    of_tasks = TaskLogin(HARPER.model_copy(), tmp_path / "folder.json")
    with pytest.raises(NoPassword, match=r"cannot read the file .*folder.json \(Is a directory\)"):
        of_tasks.connection()
    monkeypatch.setenv("OPERATIONSAPI_PASS", CANARY)
    assert of_tasks.connection() == HARPER
    (tmp_path / "file").touch()
    with pytest.raises(PasswordNotWritten, match=r"Set spark\.bqh\.secrets to a folder"):
        task_login(HARPER, str(tmp_path / "file"))


def test_a_password_that_was_changed_is_what_the_next_task_finds(tmp_path: Path) -> None:
    task_login(HARPER, str(tmp_path))
    changed = HARPER.model_copy(update={"password": SecretStr("changed"), "token": SecretStr("t")})
    assert task_login(changed, str(tmp_path)).connection() == changed


@pytest.mark.harper
@pytest.mark.bigquery
@pytest.mark.spark
def test_no_closure_of_a_copy_a_reconcile_or_a_proof_holds_the_password(
    sync: Sync, tables: SmallTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    closures: list[bytes] = []
    dumps = CloudPickleSerializer.dumps

    def noted(self: CloudPickleSerializer, obj: Any) -> bytes:
        closures.append(dumps(self, obj))
        return closures[-1]

    monkeypatch.setattr(CloudPickleSerializer, "dumps", noted)
    rows = "SELECT TIMESTAMP '2026-01-05 00:30:00+00' AS ts, n AS id FROM UNNEST([1, 2, 3]) AS n"
    contract = sync.contract(tables.make_from(rows), key=["id"])
    cells = sync.cells(contract, utc(2026, 1, 5), utc(2026, 1, 5, 1))
    assert sync.run(contract, cells).rows == 3
    sync.run(contract, cells)
    proofs = sync.prover(contract).prove(cells, deep=True)
    assert {proof.status for proof in proofs} == {ProofStatus.PROVED}
    assert len(closures) >= 4
    password = sync.stores.harper.password.get_secret_value().encode()
    assert not any(password in closure for closure in closures)
    # Tasks found it all the same, in a file that is theirs alone.
    of_tasks = task_login(sync.stores.harper, sync.spark.conf.get(FOLDER_SETTING, None))
    assert password in of_tasks.file.read_bytes()
    assert of_tasks.file.stat().st_mode & 0o777 == 0o600
    assert of_tasks.file.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.spark
def test_a_closure_above_a_megabyte_leaves_no_password_in_a_temporary_file(
    spark: SparkSession, tmp_path: Path
) -> None:
    of_tasks = task_login(HARPER, str(tmp_path / "secrets"))
    assert of_tasks.file.parent == tmp_path / "secrets"
    ballast = bytes(range(256)) * (2 * MEGABYTE // 256)
    # A closure holds what it names: not the canary itself, here.
    expected = hashlib.sha256(CANARY.encode()).hexdigest()

    def run(_: int) -> Iterator[pa.RecordBatch]:
        password = of_tasks.connection().password.get_secret_value()
        found = hashlib.sha256(password.encode()).hexdigest() == expected
        yield pa.record_batch([[found and len(ballast) > 0]], names=["found"])

    assert task_rows(spark, [0], run, "found boolean").collect()[0].found
    folder = spark.sparkContext._temp_dir
    assert folder
    written = [file.read_bytes() for file in Path(folder).rglob("*") if file.is_file()]
    assert any(len(content) > MEGABYTE for content in written)
    assert not any(CANARY.encode() in content for content in written)
