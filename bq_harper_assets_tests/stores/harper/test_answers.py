"""What an answer of Harper means, and which are no answers."""

import pytest

from bq_harper_assets.stores.harper.answers import WriteCount
from bq_harper_assets.stores.harper.errors import (
    HarperGarbled,
    HarperNotUnderstood,
    HarperRefused,
)
from bq_harper_assets_tests.fault_proxy import (
    Answer,
    FaultProxy,
)
from bq_harper_assets_tests.stores.harper.test_client import direct, make, proxy
from bq_harper_assets_tests.stores.harper_clients import (
    FAST,
    ROWS,
    Make,
)

__all__ = ["direct", "make", "proxy"]
pytestmark = pytest.mark.harper


@pytest.mark.promise("I1")
@pytest.mark.parametrize("status", [301, 307, 400, 404, 409, 413, 415, 500, 501])
def test_any_other_answer_is_final(make: Make, proxy: FaultProxy, status: int) -> None:
    proxy.on(Answer(status, {"error": "no"}, {"Location": "http://u:p@elsewhere/"}), times=9)
    with pytest.raises(HarperRefused) as caught:
        make().upsert(ROWS, [{"id": "t"}])
    assert caught.value.status == status
    assert ("redirects to elsewhere, which is not followed" in str(caught.value)) == (status < 400)
    assert len(proxy.seen()) == 1


@pytest.mark.promise("A6")
def test_a_404_of_something_else_is_not_taken_for_a_missing_table(
    make: Make, proxy: FaultProxy
) -> None:
    proxy.on(Answer(404, "Not found"))
    with pytest.raises(HarperRefused, match="answered 404"):
        make().describe_table(ROWS)


@pytest.mark.promise("A6")
@pytest.mark.parametrize("body", ["<html>Welcome</html>", "OK", "<?xml version='1.0'?>"])
def test_something_else_at_harpers_address_is_told_at_once(
    make: Make, proxy: FaultProxy, body: str
) -> None:
    proxy.on(Answer(200, body), times=2)
    writer = make()
    for ask in (lambda: writer.upsert(ROWS, []), lambda: make().describe_table(ROWS)):
        with pytest.raises(HarperNotUnderstood, match=r"answered 200 .* OPERATIONSAPI_URL"):
            ask()
    assert len(proxy.seen()) == 2
    assert writer.last_unanswered_at is not None  # a gateway may say it before a Harper at work


@pytest.mark.promise("E4")
def test_an_empty_answer_each_time_is_given_up_with_the_address_to_look_at(
    make: Make, proxy: FaultProxy
) -> None:
    proxy.on(Answer(200, b""), times=FAST.max_retries + 1)
    with pytest.raises(HarperGarbled, match=r"failed 3 times: .* OPERATIONSAPI_URL"):
        make().upsert(ROWS, [])


@pytest.mark.promise("E4")
@pytest.mark.parametrize("body", [b"", b" ", b'{"message":"upserted 1'])
def test_a_200_without_an_answer_in_it_counts_as_unanswered_and_is_sent_again(
    make: Make, proxy: FaultProxy, body: bytes
) -> None:
    reader = make()
    proxy.on(Answer(200, body), operation="describe_table")
    assert reader.describe_table(ROWS) is not None
    assert reader.last_unanswered_at is None  # it could change nothing
    writer = make()
    proxy.on(Answer(200, body), operation="upsert")
    assert writer.upsert(ROWS, [{"id": "garbled"}]) == WriteCount(1)
    assert writer.last_unanswered_at is not None


def test_json_without_a_count_is_not_taken_for_a_write(make: Make, proxy: FaultProxy) -> None:
    proxy.on(Answer(200, "{}"))
    with pytest.raises(HarperNotUnderstood, match="OPERATIONSAPI_URL"):
        make().upsert(ROWS, [])


def test_skipped_ids_are_told(make: Make, proxy: FaultProxy) -> None:
    told = b'{"message":"upserted 1 of 3 records","upserted_hashes":["a"],"skipped_hashes":["b",7]}'
    proxy.on(Answer(200, told))
    proxy.on(Answer(200, b'{"message":"upserted 2 of 3 records","upserted_hashes":["a","b"]}'))
    client = make()
    assert client.upsert(ROWS, []) == WriteCount(1, ("b", 7))
    assert client.upsert(ROWS, []) == WriteCount(2, ())
