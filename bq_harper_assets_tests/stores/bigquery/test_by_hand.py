"""The BigQuery by hand refuses as it is told, and fails a test that asks for more."""

import pytest

from bq_harper_assets.stores.bigquery.errors import BigQueryRefused
from bq_harper_assets_tests.stores.bigquery.by_hand import BigQueryByHand


def test_a_query_without_rows_to_tell_is_refused_and_fails_no_test() -> None:
    with (
        BigQueryByHand(lambda asked: None) as service,
        service.queries() as queries,
        pytest.raises(BigQueryRefused, match="no"),
    ):
        queries.run("SELECT 1", doing="asking")
    assert [asked.sql for asked in service.asked] == ["SELECT 1"]


@pytest.mark.parametrize("answer", [[{"n": object()}], [{"n": 1}, {"n": "one"}]])
def test_rows_that_cannot_be_told_fail_the_test_even_if_the_answer_is_expected(
    answer: object,
) -> None:
    with (
        pytest.raises((AssertionError, KeyError)),
        BigQueryByHand(lambda asked: answer) as service,  # type: ignore[arg-type,return-value]
        service.queries() as queries,
        pytest.raises(BigQueryRefused),
    ):
        queries.run("SELECT 1", doing="asking")


def test_a_request_to_which_nobody_has_written_an_answer_fails_the_test() -> None:
    with pytest.raises(LookupError, match="GET /models"), BigQueryByHand() as service:
        assert service.answered("GET", "/models", {}, {})[0] == 400
