"""The text of a row: what counts as the same value, and how a wide row is put together."""

import pytest

from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.bigquery import row_text
from bq_harper_assets.stores.bigquery.fingerprint import (
    SourceAtInstant,
    fingerprints,
)
from bq_harper_assets_tests.stores.bigquery.test_fingerprint import (
    DAY,
    HOUR,
    TS,
    many,
    struct,
    tables,
)
from bq_harper_assets_tests.stores.small_tables import SmallTables

__all__ = ["tables"]
pytestmark = pytest.mark.bigquery


def test_minus_zero_counts_as_zero_wherever_it_stands(tables: SmallTables) -> None:
    table = tables.make_from(
        "SELECT TIMESTAMP '2026-03-01 00:00:00+00' AS ts, 0.0 AS f, [0.0] AS fs,"
        " STRUCT(0.0 AS f) AS st UNION ALL SELECT TIMESTAMP '2026-03-01 01:00:00+00',"
        " CAST('-0.0' AS FLOAT64), [CAST('-0.0' AS FLOAT64)], STRUCT(CAST('-0.0' AS FLOAT64))"
    )
    columns = (
        Column(name="f", kind=Kind.FLOAT64),
        many("fs", Kind.FLOAT64),
        struct("st", Column(name="f", kind=Kind.FLOAT64)),
    )

    found = fingerprints(
        tables.queries,
        SourceAtInstant(table=table, columns=columns, time_column=TS),
        DAY,
        DAY + 2 * HOUR,
        HOUR,
    )

    assert found[DAY] == found[DAY + HOUR]
    assert found[DAY].rows == 1


def test_how_the_columns_of_a_wide_row_are_put_together_changes_no_fingerprint(
    tables: SmallTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = tuple(Column(name=name, kind=Kind.STRING) for name in "abcdef")
    texts = "'x' AS a, '' AS b, CAST(NULL AS STRING) AS c, 'y' AS d, '\\'' AS e, '🚢' AS f"
    narrow = tables.make_from(f"SELECT TIMESTAMP '2026-03-01 00:30:00+00' AS ts, {texts}")
    source = SourceAtInstant(table=narrow, columns=(TS, *columns), time_column=TS)
    found = fingerprints(tables.queries, source, DAY, DAY + HOUR, HOUR)[DAY]
    monkeypatch.setattr(row_text, "_MOST_IN_CONCAT", 3)
    assert fingerprints(tables.queries, source, DAY, DAY + HOUR, HOUR)[DAY] == found
