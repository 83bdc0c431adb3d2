"""Bytes as text."""

import base64

import pyarrow as pa
import pytest

from bq_harper_assets.stores.harper.encoding.bytes_text import base64_text


@pytest.mark.promise("B3")
def test_all_256_bytes_survive_base64() -> None:
    everything = bytes(range(256))
    text = base64_text(pa.array([everything, b"", b"\xff"])).to_pylist()
    assert [base64.b64decode(value) for value in text] == [everything, b"", b"\xff"]
