"""Facts of clients' reads: what was asked of each partition, and the limit that its answer gives. Pure.

What was read at or past its limit is rare, and what the next answer of its connection says stands in whatever file. So
first the connections are looked for (`suspects`), and only their reads become facts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.base.arrow_rows import both, exploded, first_of, is_in, named, when
from pipelines.rules.facts.columns import line_fact, valid
from pipelines.rules.facts.traffic import TopicNames
from schemas import audit_facts as a

#: The column that `suspects` gives: cluster, broker and connection as text.
SUSPECT: Final = "suspect"


def suspects(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Connections whose answers have records at or past the limit that they give, each once."""
    facts = _reads(rows, {})
    limit = when(pc.equal(facts["name"], a.READ_COMMITTED), facts["end_offset"], facts["high_watermark"])
    beyond = both(
        pc.greater_equal(limit, 0), pc.greater_equal(facts["offset"], limit), pc.greater(facts["size_bytes"], 0)
    )
    return pa.RecordBatch.from_arrays([_connections(facts.filter(beyond)).unique()], names=[SUSPECT])


def reads(rows: pa.RecordBatch, connections: Sequence[str], names: TopicNames) -> pa.RecordBatch:
    """What clients asked of each partition, with what was answered without an error, if anything.

    `pipelines.rules.facts.selection` takes from them those at or past their limit.

    Args:
        connections: whose reads, as `suspects` gives them.
    """
    return _reads(rows.filter(is_in(_connections(rows), connections)), names)


def _connections(rows: pa.RecordBatch) -> pa.Array:
    texts = [pc.fill_null(rows[name].cast(pa.string()), "") for name in ("cluster_id", "broker_id", "connection")]
    return pc.binary_join_element_wise(*texts, "|")


def _reads(rows: pa.RecordBatch, names: TopicNames) -> pa.RecordBatch:
    rows = rows.filter(valid("broker_id") & (pc.field("replica_id") < 0))
    rows = rows.append_column("row", pa.array(range(len(rows)), pa.int64()))
    asked = exploded(rows.drop_columns(["responses"]), "partitions", "asked")
    answers = exploded(rows.select(["row", "responses"]), "responses", "answer")
    answers = answers.filter(pc.equal(pc.fill_null(answers["answer.error_code"], 0), 0))
    at = pc.index_in(place_of(asked, "asked"), value_set=place_of(answers, "answer"))
    by_id = pc.binary_join_element_wise("id:", asked["asked.topic_id"], "")
    asked = asked.append_column("topic", first_of(asked["asked.topic"], by_id))
    asked = asked.append_column("partition", asked["asked.partition"])
    return line_fact(
        named(names, asked),
        a.READ,
        "connection correlation_id client=client_id topic_id=asked.topic_id offset=asked.fetch_offset "
        "leader_epoch=asked.current_leader_epoch",
        name=when(pc.equal(asked["isolation_level"], 1), a.READ_COMMITTED, a.READ_UNCOMMITTED),
        high_watermark=answers["answer.high_watermark"].take(at),
        end_offset=answers["answer.last_stable_offset"].take(at),
        size_bytes=answers["answer.size_bytes"].take(at),
    )


def place_of(parts: pa.RecordBatch, part: str) -> pa.Array:
    """Which partition of which request it is, as text."""
    topic = first_of(parts[f"{part}.topic"], parts[f"{part}.topic_id"])
    return pc.binary_join_element_wise(
        *(parts[name].cast(pa.string()) for name in ("row", f"{part}.partition")), topic, " "
    )
