"""A BigQuery table's schema, read from the emulator."""

import pytest
from google.cloud import bigquery
from google.cloud.bigquery.table import PrimaryKey, TableConstraints

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.schema.logical import Column, Kind, TableSchema
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.client import connect
from bq_harper_assets.stores.bigquery.errors import BigQueryMissing
from bq_harper_assets.stores.bigquery.schema import columns_of, read_schema
from bq_harper_assets_tests.stores.small_tables import DATASET, SmallTables

ALIASES = {
    "INTEGER": Kind.INT64,
    "INT64": Kind.INT64,
    "FLOAT": Kind.FLOAT64,
    "FLOAT64": Kind.FLOAT64,
    "BOOLEAN": Kind.BOOL,
    "BOOL": Kind.BOOL,
    "NUMERIC": Kind.NUMERIC,
    "DECIMAL": Kind.NUMERIC,
    "BIGNUMERIC": Kind.BIGNUMERIC,
    "BIGDECIMAL": Kind.BIGNUMERIC,
    "RECORD": Kind.STRUCT,
    "STRUCT": Kind.STRUCT,
    "geography": Kind.GEOGRAPHY,
}


@pytest.mark.promise("A5")
@pytest.mark.parametrize("name", ALIASES)
def test_all_names_of_a_type_are_the_same_kind(name: str) -> None:
    (column,) = columns_of([bigquery.SchemaField("c", name)])
    assert column == Column(name="c", kind=ALIASES[name])


@pytest.mark.promise("B9")
def test_a_type_that_we_do_not_know_keeps_its_name() -> None:
    (column,) = columns_of([bigquery.SchemaField("c", "VECTOR", mode="REPEATED")])
    assert column == Column(name="c", kind=Kind.UNKNOWN, repeated=True, spelling="VECTOR")


def test_what_the_emulator_drops_is_read_where_a_service_tells_it() -> None:
    (column,) = columns_of(
        [bigquery.SchemaField("c", "STRING", mode="REQUIRED", description="d", max_length=9)]
    )
    assert column == Column(
        name="c", kind=Kind.STRING, required=True, description="d", max_length=9
    )


@pytest.mark.bigquery
@pytest.mark.promise("A5")
def test_types_modes_nesting_partitioning_and_clustering_are_read(
    bigquery_connection: BigQueryConnection,
) -> None:
    ref = SmallTables.at(bigquery_connection).new_name()
    field = bigquery.SchemaField
    table = bigquery.Table(
        str(ref),
        schema=[
            field("at", "TIMESTAMP", mode="REQUIRED"),
            field("mmsi", "INTEGER", description="ship"),
            field("speed", "FLOAT"),
            field("docked", "BOOL"),
            field("tags", "STRING", mode="REPEATED"),
            field("stay", "RANGE", range_element_type="DATE"),
            field(
                "port",
                "RECORD",
                fields=[
                    field("name", "STRING"),
                    field("berths", "STRUCT", mode="REPEATED", fields=[field("n", "INT64")]),
                ],
            ),
        ],
    )
    table.time_partitioning = bigquery.TimePartitioning(field="at")
    table.clustering_fields = ["mmsi", "docked"]
    client = connect(bigquery_connection)
    client.create_table(table)
    read = read_schema(
        client, ref.project, ref.dataset, ref.table, calls=BigQueryCalls(bigquery_connection)
    )
    berths = Column(
        name="berths", kind=Kind.STRUCT, repeated=True, fields=(Column(name="n", kind=Kind.INT64),)
    )
    assert read == TableSchema(
        columns=(
            Column(name="at", kind=Kind.TIMESTAMP, required=True),
            Column(name="mmsi", kind=Kind.INT64, description="ship"),
            Column(name="speed", kind=Kind.FLOAT64),
            Column(name="docked", kind=Kind.BOOL),
            Column(name="tags", kind=Kind.STRING, repeated=True),
            Column(name="stay", kind=Kind.RANGE, spelling="RANGE<DATE>"),
            Column(
                name="port",
                kind=Kind.STRUCT,
                fields=(Column(name="name", kind=Kind.STRING), berths),
            ),
        ),
        partition_field="at",
        clustering=("mmsi", "docked"),
    )


@pytest.mark.bigquery
@pytest.mark.promise("A5")
def test_a_view_has_columns_and_no_layout(bigquery_connection: BigQueryConnection) -> None:
    tables = SmallTables.at(bigquery_connection)
    table, view = tables.make("n INT64, s STRING"), tables.new_name()
    tables.run(f"CREATE VIEW {view.sql} AS SELECT n, s FROM {table.sql}")
    read = read_schema(
        tables.queries.client,
        view.project,
        view.dataset,
        view.table,
        calls=BigQueryCalls(bigquery_connection),
    )
    columns = (Column(name="n", kind=Kind.INT64), Column(name="s", kind=Kind.STRING))
    assert read == TableSchema(columns=columns, is_table=False)


@pytest.mark.bigquery
def test_a_missing_table_is_told_by_name_and_not_tried_again(
    bigquery_connection: BigQueryConnection,
) -> None:
    tables = SmallTables.at(bigquery_connection)
    retries: list[object] = []
    calls = BigQueryCalls(bigquery_connection, on_retry=retries.append)
    with pytest.raises(BigQueryMissing, match="no_such_table"):
        read_schema(
            tables.queries.client,
            bigquery_connection.project,
            DATASET,
            "no_such_table",
            calls=calls,
        )
    assert retries == []


class Answering:
    """Tells of constraints and integer ranges as the service does; the emulator drops them."""

    def __init__(self, table: bigquery.Table) -> None:
        self.table = table

    def get_table(self, *_: object, **__: object) -> bigquery.Table:
        return self.table


@pytest.mark.parametrize(
    ("columns", "field"), [(("a", "b"), "n"), ((), None)], ids=["declared", "none"]
)
def test_the_primary_key_and_integer_partitions_are_read(
    columns: tuple[str, ...], field: str | None, nowhere: str
) -> None:
    table = bigquery.Table("p.d.t", schema=[bigquery.SchemaField("a", "INT64")])
    if columns:
        table.table_constraints = TableConstraints(PrimaryKey(list(columns)), None)
        table.range_partitioning = bigquery.RangePartitioning(
            field="n", range_=bigquery.PartitionRange(start=0, end=10, interval=1)
        )
    connection = BigQueryConnection(project="p", endpoint=nowhere)
    read = read_schema(
        Answering(table),  # type: ignore[arg-type]
        "p",
        "d",
        "t",
        calls=BigQueryCalls(connection),
    )
    assert (read.primary_key, read.partition_field) == (columns, field)


@pytest.mark.parametrize("kind", ["TABLE", "VIEW", "MATERIALIZED_VIEW", "EXTERNAL"])
def test_only_a_table_is_called_one(kind: str, nowhere: str) -> None:
    table = bigquery.Table.from_api_repr(
        {
            "tableReference": {"projectId": "p", "datasetId": "d", "tableId": "t"},
            "type": kind,
            "clustering": {"fields": ["b", "a"]},
            "timePartitioning": {"type": "DAY", "field": "at"},
        }
    )
    calls = BigQueryCalls(BigQueryConnection(project="p", endpoint=nowhere))
    read = read_schema(Answering(table), "p", "d", "t", calls=calls)  # type: ignore[arg-type]
    assert read.is_table is (kind == "TABLE")
    assert (read.clustering, read.partition_field) == (("b", "a"), "at")


def test_the_fields_of_a_struct_are_columns_of_their_own() -> None:
    field = bigquery.SchemaField
    inner = field("n", "INTEGER", mode="REPEATED")
    (column,) = columns_of([field("s", "RECORD", fields=[field("t", "STRUCT", fields=[inner])])])
    assert [each.name for each in column.fields] == ["t"]
    [deep] = column.fields[0].fields
    assert (deep.name, deep.kind, deep.repeated) == ("n", Kind.INT64, True)
