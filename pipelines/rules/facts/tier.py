"""Facts of the remote tier (KIP-405): what was copied, what failed to be read, and what was read all the same. Pure.

Reads of consumers are as many as the traffic, and matter only where one failed. So first the failures are looked for
(`failures`), and only beside them reads become facts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.base.arrow_rows import both, exploded, first_of, micros, named
from pipelines.rules.facts.columns import TYPES, fact, line_fact, valid
from pipelines.rules.facts.reads import place_of
from pipelines.rules.facts.traffic import TopicNames
from schemas import audit_facts as a

#: Cluster, topic, partition.
Place = tuple[str, str, int]


def events(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Facts of ``silver.tier_events``; ``client`` is the id of the remote segment."""
    return line_fact(rows, a.TIER, "offset name=event client=segment_id detail=reason")


@dataclass(frozen=True)
class Failures:
    """Reads from the tier that failed, and where the logs of brokers begin: as few as failures and local starts are.

    Attributes:
        failed: by (cluster, broker), the partitions and from when until when, microseconds.
        starts: by partition and broker, from when its local log began where, in time order.
    """

    failed: Mapping[tuple[str, int], Mapping[Place, tuple[int, int]]]
    starts: Mapping[Place, Mapping[int, list[tuple[int, int]]]]

    def reads(self, rows: pa.RecordBatch, names: TopicNames) -> Iterator[pa.RecordBatch]:
        """Consumers' reads from the tier that were answered with records, of ``silver.fetch_requests``.

        Each is a fact of its own partition, if reads of that failed on any broker, and of the partitions of which reads
        failed on its broker about then.
        """
        partitions = {place for of_broker in self.failed.values() for place in of_broker}
        read = _answered(rows, names)
        facts: list[dict[str, Any]] = []
        for row in read.to_pylist():
            place = row["cluster_id"], row["topic"], row["partition"]
            if not self._is_remote(place, row):
                continue
            if place in partitions:
                facts.append(row | {"name": a.TIER_READ_OWN})
            for other, (first_us, last_us) in self.failed.get((row["cluster_id"], row["broker_id"]), {}).items():
                if other != place and first_us <= row["time_us"] <= last_us:
                    facts.append(row | {"topic": other[1], "partition": other[2], "name": a.TIER_READ_OTHER})
        if facts:
            made = pa.RecordBatch.from_pylist(facts, _READ)
            same = "broker_id file_id byte_offset line_no offset time_us connection correlation_id name size_bytes"
            yield fact(made, a.TIER_READ, same)

    def _is_remote(self, place: Place, row: Mapping[str, Any]) -> bool:
        begun = 0
        for time_us, offset in self.starts.get(place, {}).get(row["broker_id"], ()):
            if time_us <= row["time_us"]:
                begun = offset
        return bool(row["offset"] < begun)


_READ: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("cluster_id", "topic", "file_id", "connection", "name")),
        *((name, pa.int32()) for name in ("partition", "broker_id", "correlation_id")),
        *((name, pa.int64()) for name in ("byte_offset", "line_no", "offset", "time_us", "size_bytes")),
    ]
)
assert {"offset", "size_bytes"} < TYPES.keys()


def failures(rows: pa.RecordBatch | pa.Table) -> Failures:
    """Of rows of ``silver.tier_events``."""
    failed: dict[tuple[str, int], dict[Place, tuple[int, int]]] = {}
    starts: dict[Place, dict[int, list[tuple[int, int]]]] = {}
    columns = ("cluster_id", "broker_id", "topic", "partition", "event", "offset")
    values = zip(
        *(rows.column(name).to_pylist() for name in columns), micros(rows.column("time")).to_pylist(), strict=True
    )
    for cluster_id, broker_id, topic, partition, event, offset, time_us in sorted(values, key=lambda row: row[-1]):
        if broker_id is None:
            continue
        place = cluster_id, topic, partition
        if event == "read_failed":
            first_us, last_us = failed.setdefault((cluster_id, broker_id), {}).get(place, (time_us, time_us))
            failed[cluster_id, broker_id][place] = min(first_us, time_us), max(last_us, time_us)
        elif event == "local_start":
            starts.setdefault(place, {}).setdefault(broker_id, []).append((time_us, offset))
    return Failures(failed, starts)


def _answered(rows: pa.RecordBatch, names: TopicNames) -> pa.RecordBatch:
    """Offsets asked for of which records were answered."""
    rows = rows.filter(valid("broker_id") & (pc.field("replica_id") < 0))
    rows = rows.append_column("row", pa.array(range(len(rows)), pa.int64()))
    answers = exploded(rows.select(["row", "responses"]), "responses", "answer")
    answers = answers.filter(
        both(pc.equal(pc.fill_null(answers["answer.error_code"], 0), 0), pc.greater(answers["answer.size_bytes"], 0))
    )
    asked = exploded(rows.drop_columns(["responses"]), "partitions", "asked")
    at = pc.index_in(place_of(asked, "asked"), value_set=place_of(answers, "answer"))
    asked = asked.append_column("size_bytes", answers["answer.size_bytes"].take(at)).filter(pc.is_valid(at))
    by_id = pc.binary_join_element_wise("id:", asked["asked.topic_id"], "")
    columns = {
        **{name: asked[name] for name in ("cluster_id", "broker_id", "file_id", "byte_offset", "line_no")},
        **{name: asked[name] for name in ("connection", "correlation_id", "size_bytes")},
        "topic": first_of(asked["asked.topic"], by_id),
        "partition": asked["asked.partition"],
        "offset": asked["asked.fetch_offset"],
        "time_us": micros(asked["time"]),
    }
    return named(names, pa.RecordBatch.from_pydict(columns))
