"""The contract of a table is what a user declares about it, with every default."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from bq_harper_assets.contract import identifiers, sql_text
from bq_harper_assets.contract.fields.column_lists import (
    ALL_COLUMNS,
    COLUMNS,
    KEY,
    RENAMES,
    refuse_wrong_paths,
)
from bq_harper_assets.contract.fields.declared_model import Declared, FieldFault, Reads, Wrong
from bq_harper_assets.contract.fields.quantities import FLAG, INSTANT, WINDOW, duration, whole

_MOST_ROWS = 1_000_000
_TEXT = {"type": "string", "minLength": 1}
_NAME = {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_]*$"}

_Flag = Annotated[bool, FLAG]
BatchSize = Annotated[int, whole(1, _MOST_ROWS, unit="rows")]
Seconds = Annotated[int, whole(1, 10 * 365 * 86400, unit="seconds")]
Policy = Literal["evolve", "approve", "freeze"]


class Sync(Declared):
    """This block says how fast rows are fetched, by how far the table is behind."""

    initial_batch_size: BatchSize = Field(
        default=10_000,
        description="Rows per request in the initial phase: lag above catchupThreshold",
    )
    catchup_batch_size: BatchSize = Field(
        default=1_000,
        description="Rows per request in the catchup phase: lag between the two thresholds",
    )
    steady_batch_size: BatchSize = Field(
        default=500, description="Rows per request in the steady phase: lag below steadyThreshold"
    )
    poll_interval: Annotated[
        int,
        whole(1_000, 86_400_000, unit="milliseconds", too_small="for 30 seconds write 30000"),
    ] = Field(
        default=30_000,
        description="Milliseconds between two looks at the source in the steady phase",
    )
    catchup_threshold: Seconds = Field(
        default=3_600, description="Seconds of lag above which the phase is initial"
    )
    steady_threshold: Seconds = Field(
        default=600, description="Seconds of lag below which the phase is steady"
    )
    give_up_after: Annotated[timedelta, duration(timedelta(days=1), timedelta(seconds=1))] = Field(
        default=timedelta(minutes=10),
        description="How long a store may refuse or leave a call unanswered before a run gives up",
        json_schema_extra={"default": "10m"},
    )
    start_timestamp: Annotated[datetime, INSTANT] | None = Field(
        default=None,
        description="The first window holds this time; left out: the day of the oldest row",
    )

    @model_validator(mode="after")
    def _phases_are_in_order(self) -> "Sync":
        if self.steady_threshold >= self.catchup_threshold:
            message = (
                f"{self.steady_threshold} seconds is not below catchupThreshold "
                f"({self.catchup_threshold} seconds): steady begins where catching up ends"
            )
            raise Wrong(FieldFault(("steadyThreshold",), message, ("catchupThreshold",)))
        return self


class ValuePolicies(Declared):
    """This block says what happens to numbers that Harper's number cannot hold exactly."""

    int64: Literal["quarantine", "string"] = Field(
        default="quarantine",
        description="INT64 beyond 2^53: quarantine the row, or store the whole column as text",
    )
    numeric: Literal["number", "string"] = Field(
        default="number",
        description="NUMERIC and BIGNUMERIC: a number while 15 digits hold it, or always text",
    )


class QuarantineLimit(Declared):
    """This limits the rows that a run may put into quarantine: more of them mean a wrong table."""

    rows: Annotated[int, whole(0, _MOST_ROWS, unit="rows")] = Field(
        default=1_000, description="Rows that any run may put into quarantine"
    )
    percent: Annotated[int, whole(0, 100)] = Field(
        default=1, description="Per cent of the rows of its windows, where that is more"
    )

    def of(self, rows: int) -> int:
        """Gives the limit for so many rows: the greater of both, so that a few may always fail."""
        return max(self.rows, rows * self.percent // 100)


class ColumnOverride(Declared):
    """This overrides type, index or policy of a column or field where the user knows better."""

    type: Literal["number", "string", "boolean", "array", "object"] | None = Field(
        default=None, description="Harper type instead of the mapped one"
    )
    indexed: _Flag | None = Field(
        default=None, description="Index the column, or do not, whatever the rules say"
    )
    policy: Policy | None = Field(
        default=None, description="What a change of this column in BigQuery does: see schemaPolicy"
    )

    @model_validator(mode="after")
    def _says_something(self) -> "ColumnOverride":
        if self.type is None and self.indexed is None and self.policy is None:
            message = "overrides nothing: give type, indexed or policy, or leave the column out"
            raise Wrong(FieldFault((), message))
        return self


@dataclass(frozen=True, kw_only=True)
class DeclaredSource:
    """A declared source says where in a store a contract's rows come from."""

    dataset: str | None  # None only with a query
    table: str | None
    query: str | None  # it is read instead of the table
    row_filter: str | None  # rows for which it is not true do not belong to the table
    store: str = "BigQuery"

    def name_in(self, project: str) -> str:
        """Returns the table's full name, or 'query'."""
        return "query" if self.query else f"{project}.{self.dataset}.{self.table}"


@dataclass(frozen=True, kw_only=True)
class DeclaredTarget:
    """A declared target says which table takes a contract's rows, and in what portions."""

    table: str
    is_adopted: bool  # it was there before, with its rows
    max_request_bytes: int
    store: str = "Harper"


class TableContract(Declared):
    """A contract keeps one table of a target store in step with one of a source store.

    Its YAML is flat. Whoever needs what is said of one store takes it from `source` or `target`.
    """

    id: Annotated[str, Reads(identifiers.contract_id, _NAME)] = Field(
        description="Name of this contract, for commands and logs"
    )
    dataset: Annotated[str, Reads(identifiers.dataset_name, _TEXT)] | None = Field(
        default=None, description="BigQuery dataset of the source; may be left out with customQuery"
    )
    table: Annotated[str, Reads(identifiers.table_name, _TEXT)] | None = Field(
        default=None,
        description="BigQuery table or view of the source; may be left out with customQuery",
    )
    timestamp_column: Annotated[str, Reads(identifiers.column_name, _TEXT)] = Field(
        description="TIMESTAMP, DATETIME or DATE column that puts each row into its window"
    )
    columns: Annotated[tuple[str, ...], COLUMNS] = Field(
        default=ALL_COLUMNS,
        description="Columns to fetch, timestampColumn and key among them; '*' for all",
    )
    target_table: Annotated[str, Reads(identifiers.target_name, _NAME)] = Field(
        description="Harper table the rows go to; no other contract may name it"
    )
    manage: Literal["create", "adopt"] = Field(
        default="create",
        description="Create the Harper table, or adopt one that is there already, with its rows",
    )
    key: Annotated[tuple[str, ...], KEY] | None = Field(
        default=None,
        description="Column or columns that identify a row; without them the whole row does",
    )
    window: Annotated[timedelta, WINDOW] = Field(
        default=timedelta(minutes=60),
        description="Length of a time partition: 5m, 15m, 30m, 60m or 1d",
        json_schema_extra={"default": "60m"},
    )
    slices: Annotated[int, whole(1, 64)] = Field(
        default=4, description="Worker slices per window, moved side by side"
    )
    safety_lag: Annotated[timedelta, duration(timedelta(days=1))] = Field(
        default=timedelta(seconds=60),
        description="How far the sync stays behind now, for rows that arrive a little late",
        json_schema_extra={"default": "60s"},
    )
    revisit: Annotated[timedelta, duration(timedelta(days=365))] = Field(
        default=timedelta(hours=24),
        description="How far back windows are compared again for late, changed and deleted rows",
        json_schema_extra={"default": "24h"},
    )
    scrub: Annotated[timedelta, duration(timedelta(days=365), timedelta(days=1))] = Field(
        default=timedelta(days=7),
        description="Within this time every window is compared again, however old it is",
        json_schema_extra={"default": "7d"},
    )
    deletes: Literal["mirror", "keep", "flag"] = Field(
        default="mirror",
        description="Rows gone from the source: delete them, keep them, or mark them in _deletedAt",
    )
    deletes_older_than: Annotated[timedelta, duration(timedelta(days=36_500))] | None = Field(
        default=None,
        description="Rows older than this expire in the source: the delete guard lets them go",
    )
    values: ValuePolicies = Field(
        default=ValuePolicies(), description="Policies for numbers that a number cannot hold"
    )
    quarantine_limit: QuarantineLimit = Field(
        default=QuarantineLimit(),
        description="How many rows a run may put into quarantine before it is stopped",
    )
    live: _Flag = Field(
        default=True, description="Also sync the window that is still open, at each poll"
    )
    latest: _Flag = Field(
        default=False, description="Keep only the newest row of each key; needs key"
    )
    spot_check_size: Annotated[int, whole(1, 1_000, unit="rows")] = Field(
        default=10, description="Rows that a spot check compares in each direction"
    )
    max_request_bytes: Annotated[int, whole(16 * 1024, 8 * 1024 * 1024, unit="bytes")] = Field(
        default=262_144, description="Largest request to Harper, in bytes"
    )
    custom_query: Annotated[str, Reads(sql_text.custom_query, _TEXT)] | None = Field(
        default=None,
        description="SELECT that is read instead of the table; windows are added around it",
    )
    row_filter: Annotated[str, Reads(sql_text.row_filter, _TEXT)] | None = Field(
        default=None,
        description="SQL condition; rows for which it is not true do not belong to the table",
    )
    schema_policy: Policy = Field(
        default="evolve",
        description="When BigQuery's columns change: follow, wait for bqh schema apply, or refuse",
    )
    backfill: _Flag = Field(
        default=False,
        description="Also fill new columns of windows that were synced before they came",
    )
    renames: Annotated[dict[str, str], RENAMES] = Field(
        default_factory=dict,
        description="Columns renamed in BigQuery, old name to new; Harper keeps the old one",
    )
    schema_overrides: Annotated[dict[str, ColumnOverride], BeforeValidator(refuse_wrong_paths)] = (
        Field(
            default_factory=dict,
            description="Type, index or policy per column or nested field (address.zip)",
        )
    )
    sync: Sync = Field(default=Sync(), description="Batch sizes, phases, poll interval and start")

    @property
    def source(self) -> DeclaredSource:
        """Returns what is declared of the store that the rows come from."""
        return DeclaredSource(
            dataset=self.dataset,
            table=self.table,
            query=self.custom_query,
            row_filter=self.row_filter,
        )

    @property
    def target(self) -> DeclaredTarget:
        """Returns what is declared of the store that takes the rows."""
        return DeclaredTarget(
            table=self.target_table,
            is_adopted=self.manage == "adopt",
            max_request_bytes=self.max_request_bytes,
        )

    @model_validator(mode="after")
    def _says_nothing_against_itself(self) -> "TableContract":
        if faults := tuple(self._contradictions()):
            raise Wrong(*faults)
        return self

    def _contradictions(self) -> Iterator[FieldFault]:
        if self.custom_query is None:
            for name, value in (("dataset", self.dataset), ("table", self.table)):
                if value is None:
                    message = f"is missing: name the source's {name}, or give a customQuery"
                    yield FieldFault((name,), message, ("customQuery",))
        if missing := self._left_out(self.timestamp_column):
            message = f"leaves out {self.timestamp_column}, the timestamp column: {missing}"
            yield FieldFault(("columns",), message, ("timestampColumn",))
        for name in self.key or ():
            if missing := self._left_out(name):
                yield FieldFault(("key",), f"columns leaves out {name}: {missing}", ("columns",))
        for path in self.schema_overrides:
            if missing := self._left_out(path.split(".")[0]):
                message = f"columns leaves out {path.split('.')[0]}: {missing}"
                yield FieldFault(("schemaOverrides", path), message, ("columns",))
        for old, new in self.renames.items():
            if new in (self.timestamp_column, *(self.key or ())):
                message = (
                    f"{new} identifies rows or puts them into windows, so it keeps its name: call"
                    f" it {old} in customQuery (SELECT * EXCEPT ({new}), {new} AS {old})"
                )
                yield FieldFault(("renames", old), message, ("key", "timestampColumn"))
        if self.latest and not self.key:
            message = "keeps the newest row of each key: give key, or take latest out"
            yield FieldFault(("latest",), message, ("key",))

    def _left_out(self, name: str) -> str | None:
        if self.columns == ALL_COLUMNS or name in self.columns:
            return None
        for column in self.columns:
            if column.lower() == name.lower():
                return f"it is spelled {column} there; spell it alike"
        return "add it, or use ['*']"
