"""Lines of .env: each is taken as it is, or told."""

import pytest

from bq_harper_assets_tests.contract.conftest import Disk


def test_a_dotenv_value_is_taken_as_it_is(disk: Disk) -> None:
    disk.write(".env", "OPERATIONSAPI_PASS='a$b${c}#d'\n")
    assert disk.load().harper.password.get_secret_value() == "a$b${c}#d"


@pytest.mark.parametrize(
    "line", ["OPERATIONSAPI_PASS: hunter2", "OPERATIONSAPI_PASS='hunter2", "=hunter2"]
)
def test_a_dotenv_line_that_sets_nothing_is_told(
    line: str, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    disk.write(".env", f"# mine\nOPERATIONSAPI_USER=a\n{line}\n")
    told = disk.refusal()
    assert ".env:3\n    is not NAME=value" in told
    assert "hunter2" not in told + caplog.text


def test_a_dotenv_of_windows_is_read(disk: Disk) -> None:
    disk.write(".env", "\ufeffOPERATIONSAPI_USER=a\r\nOPERATIONSAPI_PASS=b\r\n")
    assert disk.load().harper.user == "a"
    assert disk.load().harper.password.get_secret_value() == "b"


def test_a_dotenv_that_is_no_text_is_told(disk: Disk) -> None:
    (disk.root / ".env").write_bytes(b"A=\xff\n")
    assert ".env\n    cannot be read" in disk.refusal()
