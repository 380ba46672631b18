"""Facts of clients' reads and of the remote tier: the requested offset of each partition, and the answered limit. Pure.

Reads are as many as the traffic. Few of them are at or past their limit, and the next answer of the connection can be
in any file. So first the connections are searched (`suspects`), and only their reads become facts. Reads from the tier
(KIP-405) matter only after a failed read, so first the failures are searched (`failures`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import both, explode, fill_topic_names, first_of, is_in, micros, when
from highwater.pipelines.rules.facts.columns import TYPES, fact, line_fact, valid
from highwater.pipelines.rules.facts.traffic import TopicNames
from highwater.schemas import audit_facts as a

#: Column of `suspects`: cluster, broker and connection as text.
SUSPECT: Final = "suspect"


def suspects(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the distinct connections that received records at or beyond the high watermark or last stable offset."""
    facts = _make_reads(rows, {})
    limit = when(pc.equal(facts["name"], a.READ_COMMITTED), facts["end_offset"], facts["high_watermark"])
    beyond = both(
        pc.greater_equal(limit, 0), pc.greater_equal(facts["offset"], limit), pc.greater(facts["size_bytes"], 0)
    )
    return pa.RecordBatch.from_arrays([_join_connections(facts.filter(beyond)).unique()], names=[SUSPECT])


def reads(rows: pa.RecordBatch, connections: Sequence[str], names: TopicNames) -> pa.RecordBatch:
    """Return the offset that clients requested from each partition, with the answer if it had no error.

    `pipelines.rules.facts.selection` keeps the reads at or beyond the high watermark or last stable offset.

    Args:
        connections: connections to read, from `suspects`.
        names: topic name by (cluster, topic id).
    """
    return _make_reads(rows.filter(is_in(_join_connections(rows), connections)), names)


def _join_connections(rows: pa.RecordBatch) -> pa.Array:
    texts = [pc.fill_null(rows[name].cast(pa.string()), "") for name in ("cluster_id", "broker_id", "connection")]
    return pc.binary_join_element_wise(*texts, "|")


def _make_reads(rows: pa.RecordBatch, names: TopicNames) -> pa.RecordBatch:
    rows = rows.filter(valid("broker_id") & (pc.field("replica_id") < 0))
    rows = rows.append_column("row", pa.array(range(len(rows)), pa.int64()))
    asked = explode(rows.drop_columns(["responses"]), "partitions", "asked")
    answers = explode(rows.select(["row", "responses"]), "responses", "answer")
    answers = answers.filter(pc.equal(pc.fill_null(answers["answer.error_code"], 0), 0))
    at = pc.index_in(_join_place(asked, "asked"), value_set=_join_place(answers, "answer"))
    by_id = pc.binary_join_element_wise("id:", asked["asked.topic_id"], "")
    asked = asked.append_column("topic", first_of(asked["asked.topic"], by_id))
    asked = asked.append_column("partition", asked["asked.partition"])
    return line_fact(
        fill_topic_names(names, asked),
        a.READ,
        "connection correlation_id client=client_id topic_id=asked.topic_id offset=asked.fetch_offset "
        "leader_epoch=asked.current_leader_epoch",
        name=when(pc.equal(asked["isolation_level"], 1), a.READ_COMMITTED, a.READ_UNCOMMITTED),
        high_watermark=answers["answer.high_watermark"].take(at),
        end_offset=answers["answer.last_stable_offset"].take(at),
        size_bytes=answers["answer.size_bytes"].take(at),
    )


def _join_place(parts: pa.RecordBatch, part: str) -> pa.Array:
    """Return request row, partition and topic joined as one text per part."""
    topic = first_of(parts[f"{part}.topic"], parts[f"{part}.topic_id"])
    return pc.binary_join_element_wise(
        *(parts[name].cast(pa.string()) for name in ("row", f"{part}.partition")), topic, " "
    )


#: Cluster, topic, partition.
Place = tuple[str, str, int]


def tier_events(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return facts of ``silver.tier_events``; ``client`` is the id of the remote segment."""
    return line_fact(rows, a.TIER, "offset name=event client=segment_id detail=reason")


@dataclass(frozen=True)
class Failures:
    """Failed reads of remote storage, and local log start offsets."""

    #: by (cluster, broker), the partitions and from when until when, microseconds
    failed: Mapping[tuple[str, int], Mapping[Place, tuple[int, int]]]
    #: by partition and broker, from when its local log began where, in time order
    starts: Mapping[Place, Mapping[int, list[tuple[int, int]]]]

    def reads(self, rows: pa.RecordBatch, names: TopicNames) -> Iterator[pa.RecordBatch]:
        """Yield consumers' reads from remote storage that returned records, from rows of ``silver.fetch_requests``.

        A read is a fact of its own partition if reads of that partition failed on any broker. It is also a fact of each
        other partition with failed reads on its broker at about that time.
        """
        partitions = {place for of_broker in self.failed.values() for place in of_broker}
        read = _make_reads(rows, names)
        read = read.filter(pc.greater(read["size_bytes"], 0))
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
    """Return failed reads of remote storage and local log start offsets, from rows of ``silver.tier_events``."""
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
