"""Checks whether we can read the tables: it tries each right by its call, and reads no rows."""

from collections.abc import Callable, Sequence
from typing import Any

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.contract.identifiers import quoted
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.errors import BqhError
from bq_harper_assets.stores.bigquery.client import connect, connect_storage
from bq_harper_assets.stores.bigquery.errors import Feature
from bq_harper_assets.stores.finding import Finding

_TIMEOUT_S = 15
_REACH, _QUERY = "bigquery: reach", "bigquery: run a query"
BEFORE_TABLES = (_REACH, _QUERY)  # without these no table is looked at
TIME_TYPES = ("TIMESTAMP", "DATETIME", "DATE")


def probe_bigquery(
    connection: BigQueryConnection, tables: Sequence[TableContract]
) -> list[Finding]:
    """Returns the findings in a useful order, and stops where the next ones would be pointless."""
    where = connection.endpoint or f"project {connection.project!r}"
    client, failed = _try(_REACH, "", lambda: connect(connection))
    if failed:
        return [failed]
    _, failed = _try(
        _QUERY,
        "bigquery.jobs.create",
        lambda: _dry_run(client, "SELECT 1"),
    )
    if failed:
        return [failed]
    findings = [Finding(_QUERY, "ok", f"queries may be run in {where}")]
    for contract in tables:
        findings += _probe_table(client, connection, contract)
    return findings


def _dry_run(client: Any, sql: str | None) -> None:
    from google.cloud import bigquery  # its import takes seconds, and few need it

    # There are no retries: the library would go on for ten minutes if nothing answers.
    settings = bigquery.QueryJobConfig(dry_run=True, use_query_cache=False)
    client.query(sql, job_config=settings, retry=None, job_retry=None, timeout=_TIMEOUT_S)


def _probe_table(
    client: Any, connection: BigQueryConnection, contract: TableContract
) -> list[Finding]:
    source = contract.source
    if source.dataset is None or source.table is None:
        return [_probe_query(client, contract)]
    name = source.name_in(connection.project)
    subject = f"bigquery: {contract.id}"
    dataset, failed = _try(
        subject,
        "bigquery.datasets.get",
        lambda: client.get_dataset(
            f"{connection.project}.{source.dataset}", retry=None, timeout=_TIMEOUT_S
        ),
    )
    if failed:
        return [failed]
    if dataset.location and dataset.location.upper() != connection.location.upper():
        return [
            Finding(
                subject,
                "fail",
                f"{source.dataset} is in {dataset.location}, location is {connection.location}",
                f"set location: {dataset.location}",
            )
        ]
    table, failed = _try(
        subject,
        "bigquery.tables.get",
        lambda: client.get_table(name, retry=None, timeout=_TIMEOUT_S),
    )
    if failed:
        return [failed]
    columns = {field.name: field.field_type for field in table.schema}
    if wrong := _wrong_timestamp(subject, name, contract.timestamp_column, columns):
        return [wrong]
    _, failed = _try(
        subject,
        ", ".join(Feature.READ.value),
        lambda: _open_session(connection, contract),
    )
    if failed:
        return [failed]
    return [
        Finding(
            subject, "ok", f"{name}: {len(columns)} columns, {table.num_rows} rows, may be read"
        )
    ]


def _probe_query(client: Any, contract: TableContract) -> Finding:
    subject = f"bigquery: {contract.id}"
    _, failed = _try(
        subject,
        "bigquery.tables.getData",
        lambda: _dry_run(client, contract.source.query),
    )
    return failed or Finding(subject, "ok", "customQuery is a valid query and may be run")


def _wrong_timestamp(
    subject: str, name: str, column: str, columns: dict[str, str]
) -> Finding | None:
    if columns.get(column) in TIME_TYPES:
        return None
    fitting = [name for name, kind in columns.items() if kind in TIME_TYPES]
    problem = f"is of type {columns[column]}" if column in columns else "does not exist"
    return Finding(
        subject,
        "fail",
        f"timestampColumn {column!r} of {name} {problem}; a TIMESTAMP, DATETIME or DATE is needed",
        f"set timestampColumn to one of: {', '.join(fitting)}"
        if fitting
        else "name a table with a time column",
    )


def _open_session(connection: BigQueryConnection, contract: TableContract) -> None:
    from google.cloud.bigquery_storage_v1 import types  # its import takes seconds, and few need it

    project, source = connection.project, contract.source
    session = types.ReadSession(
        table=f"projects/{project}/datasets/{source.dataset}/tables/{source.table}",
        data_format=types.DataFormat.ARROW,
        read_options={
            "selected_fields": [contract.timestamp_column],
            "row_restriction": f"{quoted(contract.timestamp_column)} IS NULL AND FALSE",
        },
    )
    connect_storage(connection).create_read_session(
        parent=f"projects/{project}",
        read_session=session,
        max_stream_count=1,
        retry=None,
        timeout=_TIMEOUT_S,
    )


def _try(subject: str, permission: str, call: Callable[[], Any]) -> tuple[Any, Finding | None]:
    """Returns the call's answer, or a finding that says what its failure means to a user."""
    from google.api_core import exceptions
    from google.auth.exceptions import GoogleAuthError
    from requests.exceptions import ConnectionError as NotReached

    try:
        return call(), None
    except BqhError as error:
        return None, Finding(subject, "fail", str(error))
    except (exceptions.Forbidden, exceptions.PermissionDenied) as error:
        return None, Finding(subject, "fail", f"refused: {error.message}", f"grant {permission}")
    except exceptions.NotFound as error:
        return None, Finding(
            subject,
            "fail",
            f"not there: {error.message}",
            "check projectId, dataset and table; `bqh maritime initialize` makes the samples",
        )
    except GoogleAuthError as error:
        return None, Finding(
            subject,
            "fail",
            f"no credentials: {error}",
            "set credentials or GOOGLE_APPLICATION_CREDENTIALS, or use `gcloud auth`",
        )
    except (
        NotReached,
        exceptions.ServiceUnavailable,
        exceptions.DeadlineExceeded,
        exceptions.RetryError,
    ) as error:
        return None, Finding(
            subject,
            "fail",
            f"nothing answers ({type(error).__name__})",
            "start the local stack with `bqh up`, or check the network and the profile",
        )
    except exceptions.GoogleAPICallError as error:
        return None, Finding(
            subject,
            "fail",
            f"{type(error).__name__}: {error.message}",
            "check the table's settings in config/tables.yaml",
        )
