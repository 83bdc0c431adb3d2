"""Source rows are turned into Harper records, which are still in Arrow."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from bq_harper_assets.contract.identifiers import BATCH, DELETED_AT, HASH, SYNCED_AT
from bq_harper_assets.stores.harper.encoding.column_values import stored_values
from bq_harper_assets.stores.harper.encoding.row_plan import RowPlan
from bq_harper_assets.stores.harper.encoding.times import timestamp_texts
from bq_harper_assets.sync.identity.faults import reasons_of
from bq_harper_assets.sync.identity.row_id import Identity, hash_text

IS_JSON = {b"json": b"true"}  # the metadata of a field whose texts are JSON already


@dataclass(frozen=True, eq=False)
class Encoded:
    """An encoded batch has all rows as records, and the reasons why some must not be sent."""

    rows: pa.RecordBatch
    reasons: pa.StringArray  # NULL for a row that is fine

    @property
    def accepted(self) -> pa.RecordBatch:
        """Returns the records that may be sent."""
        if self.reasons.null_count == len(self.reasons):
            return self.rows
        return self.rows.filter(self.reasons.is_null())


def encode_batch(
    batch: pa.RecordBatch,
    plan: RowPlan,
    identity: Identity,
    *,
    synced_at: datetime,
    batch_number: int | pa.Int64Array,
    clears: Sequence[str] = (),
) -> Encoded:
    """Makes a record of each row, with its id, columns and metadata.

    NULLs are sent too, because Harper keeps the old value of an attribute that is left out.
    `clears` are attributes that are set to NULL.
    """
    arrays = [identity.ids]
    fields = [pa.field(plan.primary_key, identity.ids.type)]
    faults = list(identity.faults)
    for column in plan.columns:
        stored = stored_values(batch.column(column.name), column, plan.geojson)
        faults += stored.faults
        if column.name != plan.primary_key:
            metadata = IS_JSON if stored.is_json else None
            arrays.append(stored.array)
            fields.append(pa.field(column.name, stored.array.type, metadata=metadata))
    moment = timestamp_texts(pa.array([synced_at], pa.timestamp("us", "UTC")))[0]
    numbers = (
        pa.repeat(pa.scalar(batch_number, pa.int64()), batch.num_rows)
        if isinstance(batch_number, int)
        else batch_number
    )
    metadata_columns = {
        SYNCED_AT: pa.repeat(moment, batch.num_rows),
        BATCH: numbers,
        HASH: hash_text(identity.row_hashes),
    }
    metadata_columns |= {name: pa.nulls(batch.num_rows, pa.string()) for name in clears}
    if plan.flags_deletes:
        metadata_columns[DELETED_AT] = pa.nulls(batch.num_rows, pa.string())
    for name, array in metadata_columns.items():
        arrays.append(array)
        fields.append(pa.field(name, array.type))
    rows = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
    return Encoded(rows, reasons_of(faults, batch.num_rows))
