"""Makes SQL for one text per row; two texts are equal exactly if the rows are equal.

Columns are in the order of their names, and NULLs and empty arrays leave no trace, nested too: a
column that was added, and is still empty, changes no row's text.
"""

import json
from collections.abc import Sequence

from bq_harper_assets.contract.identifiers import quoted
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.bigquery.types import BIGQUERY_KINDS, as_json

# The emulator nests CONCAT as deep as it has arguments, and answers 500 for some 120 of them.
_MOST_IN_CONCAT = 50


def row_text(columns: Sequence[Column]) -> str:
    """Makes SQL for the text of a row of these columns."""
    return _members(columns, path="", depth=0)


def row_hash(columns: Sequence[Column]) -> str:
    """Makes SQL for 64 bits of the text, as INT64.

    MD5 comes first, because FARM alone is no good hash of long text.
    """
    return f"FARM_FINGERPRINT(TO_HEX(MD5({row_text(columns)})))"


def _members(columns: Sequence[Column], path: str, depth: int) -> str:
    ordered = sorted(columns, key=lambda column: column.name)
    return _concat([_member(column, path + quoted(column.read_as), depth) for column in ordered])


def _concat(texts: Sequence[str]) -> str:
    """Joins the texts; how they are joined changes neither the text nor its hash."""
    if len(texts) <= _MOST_IN_CONCAT:
        return f"CONCAT({', '.join(texts)})"
    return f"ARRAY_TO_STRING([{', '.join(texts)}], '')"


def _member(column: Column, value: str, depth: int) -> str:
    name = _string(json.dumps(column.name, ensure_ascii=False) + ":")
    if column.repeated:
        return f"IF(ARRAY_LENGTH({value}) > 0, CONCAT({name}, {_array(column, value, depth)}), '')"
    return f"IF({value} IS NULL, '', CONCAT({name}, {_text(column, value, depth)}))"


def _array(column: Column, value: str, depth: int) -> str:
    item, place = f"e{depth}", f"o{depth}"
    text = _text(column, item, depth + 1)
    if text == as_json(item):
        return as_json(value)
    return (
        f"'[', (SELECT STRING_AGG({text}, ',' ORDER BY {place})"
        f" FROM UNNEST({value}) AS {item} WITH OFFSET AS {place}), ']'"
    )


def _text(column: Column, value: str, depth: int) -> str:
    """Makes SQL for a text that ends where the value ends, so that neighbours stay distinct."""
    if column.kind is Kind.STRUCT:
        return f"CONCAT('{{', {_members(column.fields, f'{value}.', depth)}, '}}')"
    return BIGQUERY_KINDS[column.kind].text(value)


def _string(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
