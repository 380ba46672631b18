"""Start time per broker of the rows to read, applied to Arrow rows. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import or_

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import look_up
from highwater.pipelines.base.values import instant
from highwater.pipelines.kafka.seals import Broker

#: A log's last line may not be its newest: clocks are set back.
_DISORDER_US = 3_600_000_000


@dataclass(frozen=True)
class Bounds:
    """Start time per broker, microseconds since the epoch. All rows of a broker without a start time are read."""

    instants: Mapping[Broker, int]
    #: When the log of each broker of the lake ends.
    last_us: Mapping[Broker, int] = field(default_factory=dict)

    def spans(self) -> list[tuple[int, int]]:
        """Return disjoint (from, until) times in us that contain all rows to read of brokers with a start time.

        A range ends with the log of its broker, so that later lines of other brokers are not read.
        """
        spans: list[tuple[int, int]] = []
        logs = (
            (since_us, self.last_us[broker] + _DISORDER_US)
            for broker, since_us in self.instants.items()
            if broker in self.last_us
        )
        for since_us, until_us in sorted(logs):
            if spans and since_us <= spans[-1][1]:
                since_us, before_us = spans.pop()
                until_us = max(until_us, before_us)
            spans.append((since_us, until_us))
        return spans

    def where(self, time: str) -> pc.Expression | None:
        """Return a filter for rows to read, over a timestamp column. Readers use it to skip files and row groups.

        Brokers without a start time are selected by their ids. None if no broker has one.
        """
        spans = self.spans()
        if not spans:
            return None
        at = pc.field(time)
        within = [(at >= instant(since_us)) & (at <= instant(until_us)) for since_us, until_us in spans[:-1]]
        whole: dict[str, list[int]] = defaultdict(list)
        for cluster_id, broker_id in self.last_us.keys() - self.instants.keys():
            whole[cluster_id].append(broker_id)
        for cluster_id, broker_ids in sorted(whole.items()):
            brokers = pa.array(sorted(broker_ids), pa.int32())
            within.append((pc.field("cluster_id") == cluster_id) & pc.field("broker_id").isin(brokers))
        return reduce(or_, within, at >= instant(spans[-1][0]))

    def filter_rows(self, rows: pa.RecordBatch, time_us: pa.Array) -> pa.RecordBatch:
        """Return the rows at or after the start time of their broker.

        Args:
            rows: with columns ``cluster_id`` and ``broker_id``.
            time_us: their times.
        """
        return rows.filter(self.mask_rows(rows, time_us)) if self.instants else rows

    def mask_rows(self, rows: pa.RecordBatch, time_us: pa.Array) -> pa.Array:
        """Return a mask of rows at or after the start time of their broker, or of brokers without one."""
        texts = {f"{cluster_id}|{broker_id}": time_us for (cluster_id, broker_id), time_us in self.instants.items()}
        broker = pc.coalesce(rows.column("broker_id"), pa.scalar(-1, pa.int32())).cast(pa.string())
        keys = pc.binary_join_element_wise(rows.column("cluster_id"), broker, "|")
        bounds = look_up(texts, keys, pa.int64())
        return pc.fill_null(pc.greater_equal(time_us, bounds), True)
