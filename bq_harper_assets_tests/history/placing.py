"""To which slice a row belongs: the one thing that the watch asks of the code it watches."""

from typing import Any

import pyarrow as pa

from bq_harper_assets.schema.logical import Kind
from bq_harper_assets.stores.harper.encoding.row_plan import RowPlan
from bq_harper_assets.stores.harper.types import HARPER_KINDS, HarperColumn
from bq_harper_assets.sync.cells.slicing import id_hashes, slice_of
from bq_harper_assets.sync.identity.row_id import identify
from bq_harper_assets_tests.history.source import Row

_KINDS = {"ts": Kind.TIMESTAMP, "v": Kind.FLOAT64, "c": Kind.STRING}
_PLAN = RowPlan(
    columns=tuple(
        HarperColumn(name=name, kind=kind, form=HARPER_KINDS[kind].form)
        for name, kind in _KINDS.items()
    ),
    timestamp="ts",
)
_SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("v", pa.float64()), ("c", pa.string())])


class Placing:
    """Of one table; a row without a key is placed by what it says."""

    def __init__(self, keyed: bool, slices: int) -> None:
        self._keyed, self._slices = keyed, slices
        self._known: dict[Any, int] = {}

    def of_id(self, row_id: Any) -> int:
        """Of a row that Harper holds."""
        if self._slices == 1:
            return 0
        if row_id not in self._known:
            hashes = id_hashes(pa.array([row_id]), keyless=not self._keyed)
            self._known[row_id] = int(slice_of(hashes, self._slices)[0])
        return self._known[row_id]

    def of_row(self, row: Row) -> int:
        """Of a row of the source."""
        if self._keyed or self._slices == 1:
            return self.of_id(row.n)
        told = row.content(False)
        if told not in self._known:
            one = {"ts": row.ts, "v": row.v, "c": row.c}
            batch = pa.RecordBatch.from_pylist([one], _SCHEMA)
            hashes = identify(batch, _PLAN).id_hashes
            self._known[told] = int(slice_of(hashes, self._slices)[0])
        return self._known[told]
