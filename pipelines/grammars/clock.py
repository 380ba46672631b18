"""Clocks of brokers that were set back, as their logs show. No Spark session here.

Lines of one file come in the order in which they were written. Their times may be out of order by a little, since a
thread reads the clock before it writes; and by the length of a pause of the process in between. These are single lines:
a clock that was set back leaves all later lines behind.

Every other fact of a line needs that line only, so lines are parsed in the task that stores them. This module needs the
order of a whole file, which several tasks may have stored, or an upgrade may find compacted. So the times of a file's
lines, which are small, are first collected and sorted.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.blobs import pack, unpack
from highwater.pipelines.kafka.raw_record import DOUBTFUL
from highwater.pipelines.kafka.strays import END_US
from highwater.schemas.silver import BROKER_LIFECYCLE

#: Columns of ``bronze.log_lines`` that are read; lines with a doubtful problem are skipped.
CLOCK_COLUMNS = ("file_id", "byte_offset", "line_no", "cluster_id", "broker_id", "time", "problem")
#: Digits of a file's id, which is a hash, that select its group: 256 groups.
_GROUP_DIGITS = 2
#: Fact number beyond the facts of any record.
CLOCK_FACT_NO = 1_000_000

#: Lines may be out of order by this much.
STEP_MIN_US = 1_000_000
#: Minimum number of late lines in a row.
LINES_MIN = 20


class ClockWatch:
    """Finds steps of the clock in the times of one file's lines, which come in their order."""

    def __init__(self) -> None:
        self._highest_us: int | None = None
        self._behind = 0
        self._behind_highest_us = 0

    def see(self, time_us: int) -> int | None:
        """Add the time of the next line, us. Return by how much the clock was set back at least, us, once it is
        certain.

        None if it was not set back, or is not yet certain.
        """
        if self._highest_us is None:
            self._highest_us = time_us
        if time_us > self._highest_us - STEP_MIN_US:
            self._highest_us, self._behind = max(self._highest_us, time_us), 0
            return None
        self._behind += 1
        self._behind_highest_us = time_us if self._behind == 1 else max(self._behind_highest_us, time_us)
        if self._behind < LINES_MIN:
            return None
        back_us = self._highest_us - self._behind_highest_us
        self._highest_us, self._behind = self._behind_highest_us, 0
        return back_us


def pack_groups(lines: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield lines (`CLOCK_COLUMNS`) as serialized tables, each with the lines of a group of files.

    All lines of a file are in one group. Many small files share a group, so that the tables are large.
    """
    is_doubtful = pc.fill_null(pc.equal(lines.column("problem"), DOUBTFUL), False)
    lines = lines.drop_columns("problem").filter(pc.invert(is_doubtful))
    group = pc.utf8_slice_codeunits(lines.column("file_id"), 0, _GROUP_DIGITS)
    order = pc.sort_indices(group)
    lines = lines.take(order)
    for name, start, size in _find_runs(group.take(order)):
        yield pack(name, lines.slice(start, size))


def find_set_backs(blobs: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rows of ``broker_lifecycle`` for clocks that were set back, as serialized tables.

    Args:
        blobs: output of `pack_groups`, sorted by group.
    """
    each = (batch.slice(number, 1) for batch in blobs for number in range(batch.num_rows))
    for _, of_group in groupby(each, key=lambda blob: blob.column("table")[0].as_py()):
        lines = pa.Table.from_batches(unpack(of_group))
        file = pc.dictionary_encode(lines["file_id"].combine_chunks()).indices
        lines = lines.append_column("file", file).filter(pc.less(lines["time"].cast(pa.int64()), END_US))
        lines = lines.sort_by([("file", "ascending"), ("byte_offset", "ascending")]).select(CLOCK_COLUMNS[:-1])
        rows = []
        for _, start, size in _find_runs(lines["file_id"].combine_chunks()):
            rows += _watch_file(lines.slice(start, size))
        if rows:
            yield pack(BROKER_LIFECYCLE.name, pa.RecordBatch.from_pylist(rows, BROKER_LIFECYCLE.arrow_schema))


def _find_runs(values: pa.Array) -> Iterator[tuple[str, int, int]]:
    """Yield (value, index of the first, length) of each run of equal values."""
    start = 0
    runs = pc.run_end_encode(values)
    for value, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield value, start, end - start
        start = end


def _watch_file(lines: pa.Table) -> list[dict[str, Any]]:
    """Return a row for each step back of the clock.

    Args:
        lines: lines of one file with a time, in their order.
    """
    if lines.num_rows <= LINES_MIN:
        return []
    time_us = lines["time"].cast(pa.int64())
    behind = pc.less_equal(time_us, pc.subtract(pc.cumulative_max(time_us), STEP_MIN_US))
    if pc.sum(behind).as_py() < LINES_MIN:
        return []  # the usual case, found a hundred times faster
    watch = ClockWatch()
    steps = ((place, watch.see(at)) for place, at in enumerate(time_us.to_pylist()))
    return [
        {**lines.slice(place, 1).to_pylist()[0], **_make_set_back(back_us)}
        for place, back_us in steps
        if back_us is not None
    ]


def _make_set_back(back_us: int) -> dict[str, Any]:
    """Return the columns of a clock step. The row points at the first line that proves it."""
    return {
        "fact_no": CLOCK_FACT_NO,
        "event": "clock_set_back",
        "kafka_version": None,
        "mode": None,
        "detail": f"{back_us / 1e6:.3f}",
    }
