"""Every query job carries its parameters as values, labels, and a limit on bytes billed."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from google.cloud import bigquery

JOB_TIMEOUT_S = 3600.0

Value = bool | int | float | Decimal | str | bytes | datetime | date
# A bool is also an int and a datetime also a date, so these two come first.
_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "BOOL"),
    (int, "INT64"),
    (float, "FLOAT64"),
    (Decimal, "NUMERIC"),
    (str, "STRING"),
    (bytes, "BYTES"),
    (datetime, "TIMESTAMP"),
    (date, "DATE"),
)


def query_settings(
    parameters: Mapping[str, Value | Sequence[Value]],
    labels: Mapping[str, str],
    max_bytes_billed: int | None,
) -> "bigquery.QueryJobConfig":
    """Makes a query job's settings; without a limit BigQuery bills whatever the query reads."""
    from google.cloud import bigquery

    settings = bigquery.QueryJobConfig(
        labels={_label(name): _label(value) for name, value in labels.items()},
        query_parameters=[_parameter(name, value) for name, value in parameters.items()],
    )
    if max_bytes_billed is not None:  # the library would send the text "None"
        settings.maximum_bytes_billed = max_bytes_billed
    return settings


def _parameter(name: str, value: Any) -> Any:
    from google.cloud import bigquery

    if isinstance(value, list | tuple):
        kind = _type_of(value[0]) if value else "STRING"
        return bigquery.ArrayQueryParameter(name, kind, list(value))
    return bigquery.ScalarQueryParameter(name, _type_of(value), value)


def _type_of(value: Value) -> str:
    for python_type, name in _TYPES:
        if isinstance(value, python_type):
            return name
    raise TypeError(f"no BigQuery parameter is made of {type(value).__name__}")


def _label(text: str) -> str:
    """Makes a text that BigQuery takes as a label: a-z, digits, _ and -, at most 63 characters."""
    return "".join(c if c.isalnum() or c in "_-" else "_" for c in text.lower())[:63]
