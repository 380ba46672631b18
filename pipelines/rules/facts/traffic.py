"""Facts as large as the traffic: fetches, high watermarks, appends, answers. They stream through the rules. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import or_

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import both, explode, fill_topic_names, is_in, micros, when
from highwater.pipelines.kafka.versions import rule_of
from highwater.pipelines.replay.judge import LATE
from highwater.pipelines.rules.facts.columns import fact, line_fact, valid
from highwater.schemas import audit_facts as a

#: Kafka version by (cluster, broker).
Versions = Mapping[tuple[str, int], str]
#: Name by (cluster, topic id).
TopicNames = Mapping[tuple[str, str], str]


def fetches(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return followers' fetches with their answers."""
    rows = rows.filter(valid("broker_id") & (valid("fetch_offset") | valid("response_high_watermark")))
    return line_fact(
        rows,
        a.FETCH,
        "topic_id replica_id connection correlation_id name=source offset=fetch_offset previous=last_fetched_epoch "
        "error_code=response_error_code size_bytes=response_bytes end_offset=diverging_end_offset",
        leader_epoch=_drop_negative(rows.column("leader_epoch")),
        high_watermark=_drop_negative(rows.column("response_high_watermark")),
        earliest_us=micros(rows.column("arrival_time")),
        latest_us=micros(rows.column("completed_time")),
    )


def high_watermarks(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield high watermark lines: logs loaded at start, and changes on leaders and followers."""
    loaded = rows.filter(is_in(rows.column("source"), ("loaded",)))
    yield line_fact(loaded, a.LOADED, "high_watermark offset=log_end_offset")
    moved = is_in(rows.column("source"), ("updated", "non_monotonic", "follower"))
    same = "name=source previous=previous_high_watermark offset=leader_high_watermark end_offset=log_end_offset"
    rows = rows.filter(both(moved, rows.column("high_watermark").is_valid()))
    yield line_fact(rows, a.HIGH_WATERMARK, f"high_watermark {same}")


def without_retries(versions: Versions) -> list[tuple[str, int]]:
    """Return the (cluster, broker) before 0.11, which do not recognise producers' retries."""
    return [node for node, version in versions.items() if rule_of(version, lambda rules: rules.knows_retries) is False]


def appends(rows: pa.RecordBatch, old: Sequence[tuple[str, int]]) -> pa.RecordBatch:
    """Return the appends of leaders before 0.11. Later leaders log the same line for a recognised retry.

    Args:
        old: (cluster, broker) before 0.11, at least one.
    """
    nodes = [(pc.field("cluster_id") == cluster) & (pc.field("broker_id") == broker) for cluster, broker in old]
    # A leader's own: followers append through another path.
    by_leader = (pc.field("source") == "replica_manager") & (pc.field("first_offset") >= 0)
    rows = rows.filter(by_leader & reduce(or_, nodes))
    first, last = rows.column("first_offset"), rows.column("last_offset")
    end = when(pc.greater_equal(last, first), pc.add(last, 1))
    return line_fact(rows, a.APPEND, "size_bytes name=source offset=first_offset", end_offset=end)


def operations(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Convert acks=all produces in gold to one fact per partition, for rules.

    ``latest_us`` is when the request was handled, ``log_append_time_us`` when it was answered. ``end_offset`` is the
    required offset only if the broker logged it: a derived one proves nothing. ``isr`` is null if no line showed it;
    the replay then assumed that all fetching replicas are members. ``derived`` is how partition or offset is known if
    no answer shows it.
    """
    rows = _split_partitions(rows.filter(pc.field("operation") == "produce"))
    api, late = rows.column("api"), pc.equal(rows.column("class"), LATE)
    reasons = [pc.fill_null(rows.column(name), "") for name in ("class_reason", "known_bug")]
    counted = when(rows.column("part.error_code").is_null(), a.MATCHED_APPEND)
    counted = when(pc.not_equal(api, "PRODUCE"), a.COMPUTED_PARTITION, counted)
    return fact(
        rows,
        a.OPERATION,
        "broker_id connection correlation_id name=class leader_epoch=part.leader_epoch client=client_id "
        "end_offset=part.required_offset_logged replica_id=closing_replica error_code=part.error_code",
        time_us=micros(rows.column("line_time")),
        offset=_drop_negative(rows.column("part.base_offset")),
        isr=when(pc.invert(rows.column("part.isr_inferred")), rows.column("part.isr")),
        earliest_us=micros(rows.column("part.lowest_time")),
        latest_us=micros(rows.column("handled_time")),
        log_append_time_us=micros(rows.column("completed_time")),
        previous=when(late, pc.trunc(rows.column("residual_ms"))),
        detail=pc.binary_join_element_wise(*reasons, api, "|"),
        derived=when(pc.equal(api, "WRITE_TXN_MARKERS"), a.COUNTED_OFFSET, counted),
    )


def answers(rows: pa.RecordBatch, names: TopicNames) -> pa.RecordBatch:
    """Return all produce answers with an offset, as facts."""
    rows = fill_topic_names(names, _split_partitions(rows))
    rows = rows.filter(pc.field("part.base_offset") >= 0)
    acks = rows.column("acks")
    return line_fact(
        rows,
        a.ANSWER,
        "connection correlation_id offset=part.base_offset error_code=part.error_code size_bytes=part.size_bytes "
        "client=client_id detail=transactional_id",
        name=when(pc.equal(acks, -1), "all", acks.cast(pa.string())),
        earliest_us=micros(rows.column("dequeued_time")),
        latest_us=micros(rows.column("handled_time")),
        log_append_time_us=pc.multiply(_drop_negative(rows.column("part.log_append_time_ms")), 1000),
    )


def _drop_negative(column: pa.Array) -> pa.Array:
    return when(pc.greater_equal(column, 0), column)


def _split_partitions(requests: pa.RecordBatch) -> pa.RecordBatch:
    """Return requests with one row per partition, ``part.*``, and its ``topic`` and ``partition``."""
    parts = explode(requests, "partitions", "part")
    return parts.append_column("topic", parts.column("part.topic")).append_column(
        "partition", parts.column("part.partition")
    )
