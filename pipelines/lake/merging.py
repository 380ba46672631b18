"""Rows that take the place of those with their keys, found by DuckDB in the driver's process: no query of Spark's.

Delta's own MERGE is half a dozen queries, however few the rows, and writes them in no order.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import reduce
from operator import and_

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.lake.dated import Wanted
from pipelines.lake.table_queries import answer

#: By column, the instant from which on the rows of a table are looked at.
Since = Mapping[str, datetime]


def from_instants(since: Since) -> pc.Expression | None:
    """Rows that a merge looks at; None: all."""
    bounds = [pc.field(name) >= pa.scalar(time, pa.timestamp("us", "UTC")) for name, time in since.items()]
    return reduce(and_, bounds) if bounds else None


def but_for_keys(keys: pa.Table, since: Since) -> Wanted:
    """Rows of a table that stay beside new ones.

    Args:
        keys: of the new ones.
    """
    same = [f'old."{key}" IS NOT DISTINCT FROM new."{key}"' for key in keys.column_names]
    begun = [f"old.\"{name}\" >= TIMESTAMPTZ '{time:%Y-%m-%d %H:%M:%S.%f}+00'" for name, time in since.items()]
    query = f"SELECT old._number FROM old SEMI JOIN new ON {' AND '.join([*same, *begun])}"

    def stay(rows: pa.RecordBatch) -> pa.Array:
        numbers = pa.array(range(rows.num_rows), pa.int64())
        old = pa.Table.from_batches([rows.append_column("_number", numbers)])
        return pc.invert(pc.is_in(numbers, value_set=answer(query, old=old, new=keys).column("_number")))

    return Wanted(tuple(dict.fromkeys((*keys.column_names, *since))), stay)
