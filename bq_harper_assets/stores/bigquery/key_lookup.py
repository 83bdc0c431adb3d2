"""Looks up the time of each of some keys, as BigQuery has them at one instant."""

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from bq_harper_assets.contract.identifiers import quoted
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.bigquery.fingerprint import micros_sql
from bq_harper_assets.stores.bigquery.queries import Queries

KEYS_PER_QUERY = 5_000


def key_text(stored: Any) -> str:
    """Writes a stored value as BigQuery's CAST reads it; most are such texts already."""
    if isinstance(stored, bool):
        return "true" if stored else "false"
    if isinstance(stored, float):
        return f"{Decimal(repr(stored)).normalize():f}"  # without an exponent, and 5 for 5.0
    return str(stored)


def times_of_keys(
    queries: Queries,
    origin: str,
    row_filter: str | None,
    key: Sequence[Column],
    time_column: Column,
    texts: Sequence[Sequence[str]],
    *,
    table: str,
) -> Mapping[int, int | None]:
    """Returns the time of each key in microseconds, None for NULL, by its position in `texts`.

    `texts` has a text per key column. A key that no row has is left out. `origin` is the text that
    comes after FROM.
    """
    sql = lookup_sql(origin, row_filter, key, time_column)
    found: dict[int, int | None] = {}
    for first in range(0, len(texts), KEYS_PER_QUERY):
        keys = key_parameter(texts[first : first + KEYS_PER_QUERY])
        positions = {key: first + at for at, key in enumerate(keys)}
        answer = queries.run(
            sql, {"keys": keys}, doing="looking for rows that left their window", table=table
        )
        found.update({positions[row["asked"]]: row["micros"] for row in answer.rows})
    return found


def lookup_sql(
    origin: str, row_filter: str | None, key: Sequence[Column], time_column: Column
) -> str:
    """Makes SQL for a row per key that exists: asked (as it was given) and micros."""
    columns = ", ".join(f"{quoted(column.name)} AS k{n}" for n, column in enumerate(key))
    values = ", ".join(f"{_typed(column.kind, n)} AS v{n}" for n, column in enumerate(key))
    where = f" WHERE ({row_filter})" if row_filter else ""
    same = " AND ".join(f"k{n} = v{n}" for n in range(len(key)))
    return (
        f"SELECT asked, micros FROM (SELECT asked, {values} FROM UNNEST(@keys) AS asked)"
        f" JOIN (SELECT {columns}, {micros_sql(time_column)} AS micros FROM {origin}{where})"
        f" ON {same}"
    )


def rows_sql(query: str, key: Sequence[Column]) -> str:
    """Makes SQL for the rows of a query that have one of @keys, as `key_parameter` makes them."""
    values = ", ".join(f"{_typed(column.kind, n)} AS v{n}" for n, column in enumerate(key))
    same = " AND ".join(f"q.{quoted(column.name)} = k.v{n}" for n, column in enumerate(key))
    return (
        f"SELECT q.* FROM (SELECT {values} FROM UNNEST(@keys) AS asked) AS k"
        f" JOIN ({query}) AS q ON {same}"
    )


def key_parameter(texts: Sequence[Sequence[str]]) -> list[str]:
    """Makes one text per key, since arrays side by side would have to be joined by position."""
    return [json.dumps(text) for text in texts]


def _typed(kind: Kind, number: int) -> str:
    """Makes SQL that reads a text, in the form of Harper's rows, as a value; NULL if it is none."""
    text = f"JSON_VALUE(asked, '$[{number}]')"
    if kind is Kind.STRING:
        return text
    if kind is Kind.BYTES:
        return f"SAFE.FROM_BASE64({text})"
    return f"SAFE_CAST({text} AS {kind.name})"
