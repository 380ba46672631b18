"""Outcome of a client's writes: their offsets, and the replicas that still hold them.

The log of a replica, as in `pipelines.inquiry.replica_logs`, decides if it holds a record: yes, no, or open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from highwater.pipelines.base.plain import number, offsets
from highwater.pipelines.base.values import instant, iso_utc
from highwater.pipelines.inquiry.answer import (
    Answer,
    Lines,
    Point,
    Row,
    Rows,
    Table,
    format_window,
    join_values,
    name_partition,
    sort_steps,
)
from highwater.pipelines.inquiry.partition import read_partition_facts
from highwater.pipelines.inquiry.read_lines import FAR_US, require_one
from highwater.pipelines.inquiry.replica_logs import KnownReplicaLog, fold_marks
from highwater.pipelines.inquiry.survivors import Acked, PartitionFacts, mark_committed
from highwater.pipelines.kafka.errors import name_error
from highwater.pipelines.lake.reader import LakeReader
from highwater.pipelines.report.small_tables import OF_CLUSTER

#: Writes that are listed.
WRITES_MAX = 50

#: Rules about records that are lost, or that differ between replicas.
ABOUT_RECORDS = (
    "committed-data-lost",
    "tier-segment-lost",
    "acked-by-leader-only-lost",
    "acked-as-duplicate-of-another-batch",
    "replica-bytes-diverged",
)

Place = tuple[str, str, int]


@dataclass(frozen=True)
class WriteRows:
    """The writes that match a question."""

    asked: str  #: the question in words
    writes: Rows  #: partitions of produce requests, with their line: one row each, in the order of time
    writes_count: int  #: number of all writes, listed or not
    facts: Mapping[Place, PartitionFacts]  #: of their partitions
    findings: Rows  #: rows of ``gold.violations`` of these partitions, by the rules of `ABOUT_RECORDS`
    #: per broker the first and last line of its request log, and how many produces of the client are in it
    searched: Rows


@dataclass(frozen=True)
class Fate:
    """A written batch: replicas that have all of it, that lack a part, and that are undecided."""

    batch: Acked
    held: tuple[int, ...]
    lacking: tuple[int, ...]
    open: tuple[int, ...]


def answer(rows: WriteRows, lines: Lines) -> Answer:
    """Return an answer about each write: its offsets, and which replicas still have it."""
    if not rows.writes:
        return Answer(title=rows.asked, is_shown=False, sentences=tuple(_explain_nothing(rows)))
    logs = {place: fold_marks(facts.marks) for place, facts in rows.facts.items()}
    acked = {place: mark_committed(facts) for place, facts in rows.facts.items()}
    fates = [(row, _find_fate(row, rows, logs, acked)) for row in rows.writes]
    return Answer(
        title=rows.asked,
        sentences=tuple(_write_sentences(rows, [fate for _, fate in fates if fate is not None])),
        steps=sort_steps(
            (Point(row["time"], _describe_fate(row, fate, rows.findings), row) for row, fate in fates), lines
        ),
        tables=tuple(_make_tables(fates)),
    )


def _explain_nothing(rows: WriteRows) -> Iterator[str]:
    if not rows.searched:
        yield "No request log of this time is in the lake: whether such a produce was answered cannot be shown."
        return
    yield "No such produce was answered: a broker with a request log logs every request that it answers."
    yield "What was sent and never answered (the broker died, the client gave up) is in no line."
    for row in rows.searched:
        of_client = "none of this client" if not row["of_client"] else f"{row['of_client']:,} of this client"
        yield (
            f"Searched: broker {row['broker_id']}, {number(row['produces'], 'produce')} from "
            f"{iso_utc(row['first_time'])} to {iso_utc(row['last_time'])}, {of_client}."
        )


def _locate(row: Row) -> Place:
    return row["cluster_id"], row["topic"], row["partition"]


def _find_fate(
    row: Row,
    rows: WriteRows,
    logs: Mapping[Place, Mapping[int, KnownReplicaLog]],
    acked: Mapping[Place, Sequence[Acked]],
) -> Fate | None:
    """Return which replicas have a write. None if it failed or no answer is logged."""
    facts = rows.facts.get(_locate(row))
    if facts is None:
        return None
    batch = next((batch for batch in acked[_locate(row)] if _is_same_request(batch, row)), None)
    if batch is None:
        return None
    replicas: dict[str, list[int]] = {"held": [], "lacking": [], "open": []}
    for replica, log in sorted(logs[_locate(row)].items()):
        if facts.replicas and replica not in facts.replicas:
            continue
        whole = (batch.start, batch.end)
        if log.find_certain(*batch[:3]) == whole:
            replicas["held"].append(replica)
        elif log.find_possible(*batch[:3]) != whole:
            replicas["lacking"].append(replica)
        else:
            replicas["open"].append(replica)
    return Fate(batch, tuple(replicas["held"]), tuple(replicas["lacking"]), tuple(replicas["open"]))


def _is_same_request(batch: Acked, row: Row) -> bool:
    same = ("broker_id", "connection", "correlation_id")
    return batch.row["time"] == row["time"] and all(batch.row[name] == row[name] for name in same)


def _write_sentences(rows: WriteRows, fates: list[Fate]) -> Iterator[str]:
    left_out = rows.writes_count - len(rows.writes)
    more = f"; the first {len(rows.writes)} are shown" if left_out else ""
    verb = "was" if rows.writes_count == 1 else "were"
    yield f"{number(rows.writes_count, 'write')} of this kind {verb} answered{more}."
    refused = [row for row in rows.writes if row["error_code"]]
    if refused:
        errors = join_values(sorted({name_error(row["error_code"]) for row in refused}))
        yield f"{len(refused)} of them were answered with an error: {errors}."
    unsure = [fate for fate in fates if not fate.batch.is_sure]
    fates = [fate for fate in fates if fate.batch.is_sure]
    lost = [fate for fate in fates if fate.lacking and not fate.held]
    partly = [fate for fate in fates if fate.lacking and fate.held]
    unknown = [fate for fate in fates if not fate.lacking and fate.open]
    whole = len(fates) - len(lost) - len(partly) - len(unknown)
    if whole:
        yield f"{whole} of {len(fates)} acknowledged ones are in the log of every replica, as lines show."
    if unknown:
        yield f"{len(unknown)} are in each known log; the lines of some replica end before."
    if partly:
        yield f"{len(partly)} are not in the logs of all replicas: one that lacks them loses them if it is elected now."
    if lost:
        which = ("is", "it") if len(lost) == 1 else ("are", "them")
        yield f"{len(lost)} {which[0]} lost: no replica is known to hold {which[1]}, and some are known not to."
    if unsure:
        yield (
            f"Of {len(unsure)} no line shows whether the answer was an error: this release logs no answers, and no "
            "high watermark of that epoch passed them."
        )


def _describe_fate(row: Row, fate: Fate | None, findings: Rows) -> str:
    where = name_partition(row["topic"], row["partition"])
    acks = "all" if row["acks"] == -1 else row["acks"]
    if row["error_code"]:
        return f"A produce to {where} (acks={acks}) was answered with {name_error(row['error_code'])}."
    if fate is None:
        return f"A produce to {where} (acks={acks}) was answered; the logs do not show at which offset."
    batch = fate.batch
    parts = [f"Written to {where} at {offsets(batch.start, batch.end)}, epoch {batch.epoch}, acks={acks}"]
    if not batch.is_sure:
        parts.append("answered, perhaps with an error")
    for replicas, how in ((fate.held, "in the log of"), (fate.lacking, "not in the log of"), (fate.open, "open for")):
        if replicas:
            parts.append(f"{how} broker {join_values(replicas)}")
    for finding in findings:
        end = finding["offset_end"] or (finding["offset_start"] or 0) + 1
        about = finding["offset_start"] is not None and finding["offset_start"] < batch.end and batch.start < end
        if about and (finding["cluster_id"], finding["topic"], finding["partition"]) == _locate(row):
            parts.append(f"see {finding['rule_id']} (highwater trace finding {finding['finding_id'][:8]})")
    return "; ".join(parts) + "."


def _make_tables(fates: list[tuple[Row, Fate | None]]) -> Iterator[Table]:
    rows: tuple[dict[str, Any], ...] = tuple(
        {
            "answered": iso_utc(row["time"]),
            "acknowledged": True if fate.batch.is_sure else None,
            "partition": name_partition(row["topic"], row["partition"]),
            "epoch": fate.batch.epoch,
            "offset_start": fate.batch.start,
            "offset_end": fate.batch.end,
            "held_by": list(fate.held),
            "not_held_by": list(fate.lacking),
            "open": list(fate.open),
        }
        for row, fate in fates
        if fate is not None
    )
    if rows:
        yield Table(title="writes", rows=rows)


def read_writes(
    reader: LakeReader,
    client_id: str | None,
    topic: str | None,
    partition: int | None,
    since_us: int | None,
    until_us: int | None,
    cluster_id: str | None,
) -> WriteRows:
    """Return the writes that were in progress between two times, by client, topic and partition. None matches any.

    Raises:
        InputError: the writes are of several clusters.
    """
    parameters = {
        "client": client_id,
        "topic": topic,
        "partition": partition,
        "cluster": cluster_id,
        "since": instant(since_us or 0),
        "until": instant(FAR_US if until_us is None else until_us),
    }
    of_time = f"time >= $since AND arrival_time < $until AND {OF_CLUSTER}"
    matching = f"""
        FROM (SELECT *, unnest(partitions) AS p FROM silver_produce_requests
              WHERE {of_time} AND ($client IS NULL OR client_id = $client))
        WHERE ($topic IS NULL OR p.topic = $topic) AND ($partition IS NULL OR p.partition = $partition)"""
    clusters = reader.rows(f"SELECT DISTINCT cluster_id {matching}", **parameters)
    require_one(reader, {row["cluster_id"] for row in clusters})
    writes = reader.rows(
        f"""SELECT cluster_id, broker_id, epoch_us(time) AS time, client_id, connection, correlation_id, acks,
                   p.topic AS topic, p.partition AS partition, p.error_code AS error_code, file_id, byte_offset, line_no
            {matching} ORDER BY time, broker_id, byte_offset LIMIT {WRITES_MAX}""",
        **parameters,
    )
    (counted,) = reader.rows(f"SELECT count(*) AS writes {matching}", **parameters)
    searched = reader.rows(
        f"""SELECT broker_id, count(*) AS produces, epoch_us(min(time)) AS first_time, epoch_us(max(time)) AS last_time,
                   count(*) FILTER ($client IS NOT NULL AND client_id = $client) AS of_client
            FROM silver_produce_requests WHERE {of_time} GROUP BY broker_id ORDER BY broker_id""",
        **{name: parameters[name] for name in ("since", "until", "cluster", "client")},
    )
    places = sorted({(row["cluster_id"], row["topic"], row["partition"]) for row in writes})
    findings = [
        row
        for row in reader.rows(
            """SELECT finding_id, rule_id, cluster_id, topic, partition, offset_start, offset_end FROM gold_violations
               WHERE topic IN (SELECT unnest($topics)) AND rule_id IN (SELECT unnest($rules)) AND severity <> 'open'""",
            topics=sorted({name for _, name, _ in places}),
            rules=list(ABOUT_RECORDS),
        )
        if (row["cluster_id"], row["topic"], row["partition"]) in places
    ]
    return WriteRows(
        asked=_format_question(client_id, topic, partition, since_us, until_us),
        writes=writes,
        writes_count=counted["writes"],
        facts={place: read_partition_facts(reader, *place, None) for place in places},
        findings=findings,
        searched=searched,
    )


def _format_question(
    client_id: str | None, topic: str | None, partition: int | None, since_us: int | None, until_us: int | None
) -> str:
    place = "any topic" if topic is None else topic if partition is None else f"{topic}-{partition}"
    who = f"client {client_id}" if client_id else "any client"
    return f"writes of {who} to {place}{format_window(since_us, until_us)}"
