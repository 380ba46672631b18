"""Reads what is known of one partition's replicas, up to a time.

A hot partition has millions of fetches and produces a day: DuckDB gives of a leadership's fetches each follower's last
one, and of the acknowledged batches the newest ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.base.errors import InputError
from pipelines.inquiry import read_marks as of
from pipelines.inquiry.answer import Row
from pipelines.inquiry.partition import PartitionRows
from pipelines.inquiry.read_acked import ACKED_MAX, acked_batches, unplaced, with_ends
from pipelines.inquiry.read_lines import FAR_US, LINE, OF_PARTITION, instant
from pipelines.inquiry.replica_logs import WATERMARK, replica_logs, tenures
from pipelines.inquiry.survivors import PartitionFacts
from pipelines.lake.reader import LakeReader, Rows


def cluster_of(reader: LakeReader, topic: str, partition: int, cluster_id: str | None) -> str:
    """The cluster that has a partition.

    Raises:
        InputError: none has it, or several do and none was named.
    """
    clusters = [
        row["cluster_id"]
        for row in reader.rows(
            """SELECT DISTINCT cluster_id FROM (
                 SELECT cluster_id FROM silver_leader_and_isr WHERE topic = $topic AND partition = $partition
                 UNION ALL
                 SELECT cluster_id FROM silver_replica_fetches WHERE topic = $topic AND partition = $partition)
               WHERE $cluster IS NULL OR cluster_id = $cluster ORDER BY 1""",
            topic=topic,
            partition=partition,
            cluster=cluster_id,
        )
    ]
    if not clusters:
        where = f" in cluster {cluster_id}" if cluster_id else ""
        raise InputError(reader.root, f"tells nothing of {topic}-{partition}{where}", "look at `highwater tables`")
    if len(clusters) > 1:
        raise InputError(reader.root, f"has {topic}-{partition} in clusters {', '.join(clusters)}", "give --cluster")
    return str(clusters[0])


def partition_facts(
    reader: LakeReader, cluster_id: str, topic: str, partition: int, before_us: int | None
) -> PartitionFacts:
    """All that is known of a partition from lines before a time; without one, from its files, too."""
    before = instant(FAR_US if before_us is None else before_us)
    place = {"cluster": cluster_id, "topic": topic, "partition": partition, "before": before}
    leaderships = reader.rows(
        f"""SELECT broker_id, epoch_us(time) AS time, role, leader, leader_epoch, partition_epoch, start_offset,
                   high_watermark, isr, replicas, {LINE}
            FROM silver_leader_and_isr WHERE {OF_PARTITION} AND role <> 'metadata' ORDER BY time""",
        **place,
    )
    epochs = tenures([_with_own_leader(row) for row in leaderships])
    acked = acked_batches(reader, place, epochs)
    lines = list(of.of_lines(reader, place, leaderships))
    seen = of.request_logs(reader, place, epochs)
    traced = of.traced(reader, place)
    fetched = list(of.of_fetches(reader, place, epochs, acked, seen))
    acked = list(with_ends(acked, fetched))
    marks = [
        *of.of_leaderships(leaderships, epochs),
        *fetched,
        *lines,
        *of.of_appends(acked),
        *of.unseen(leaderships, fetched, lines, seen, traced),
    ]
    if before_us is None:
        marks += of.of_files(reader, place)
    metadata = _last_metadata(reader, place)
    isr = _last_isr(reader, place, leaderships) if metadata is None else metadata["isr"]
    marks += of.isr_members(epochs, marks, isr or ())
    committed = [mark for mark in marks if mark.kind == WATERMARK and mark.offset is not None]
    marks += of.of_leaders_watermarks(reader, place, epochs)
    return PartitionFacts(
        cluster_id=cluster_id,
        topic=topic,
        partition=partition,
        before_us=before_us,
        tenures=epochs,
        marks=tuple(marks),
        acked=tuple(acked[:ACKED_MAX]),
        is_whole=len(acked) <= ACKED_MAX,
        has_answers=bool(acked) or (bool(epochs) and all(tenure.leader in seen.last_line_us for tenure in epochs)),
        unplaced=unplaced(reader, place),
        replicas=tuple((metadata or {}).get("replicas") or _last(leaderships, "replicas") or ()),
        isr=tuple(isr or ()),
        eligible=tuple((metadata or {}).get("elr") or ()),
        leader=metadata["leader"] if metadata else _last_leader(leaderships),
        committed=max(committed, key=lambda mark: mark.offset or 0, default=None),
    )


def _with_own_leader(row: Row) -> dict[str, Any]:
    """A broker that starts as leader need not name itself."""
    leads = row["role"] == "leader_start" and row["leader"] is None
    return {**row, "leader": row["broker_id"]} if leads else dict(row)


def _last(rows: Rows, name: str) -> Any:
    return next((row[name] for row in reversed(rows) if row[name]), None)


def _last_leader(rows: Rows) -> int | None:
    known = [row for row in rows if row["leader"] is not None and row["leader_epoch"] is not None]
    newest = max(known, key=lambda row: (row["leader_epoch"], row["time"]), default=None)
    return None if newest is None else int(newest["leader"])


def _last_isr(reader: LakeReader, place: Mapping[str, Any], leaderships: Rows) -> list[int] | None:
    rows = reader.rows(
        f"""SELECT epoch_us(time) AS time, isr FROM silver_isr_changes
            WHERE {OF_PARTITION} AND change = 'committed' AND isr IS NOT NULL ORDER BY time DESC LIMIT 1""",
        **place,
    )
    sets = [*((row["time"], row["isr"]) for row in rows), *((r["time"], r["isr"]) for r in leaderships if r["isr"])]
    return max(sets, default=(0, None), key=lambda item: item[0])[1]


def _last_metadata(reader: LakeReader, place: Mapping[str, Any]) -> Row | None:
    rows = reader.rows(
        f"""SELECT isr, elr, replicas, leader FROM silver_metadata_records
            WHERE {OF_PARTITION} AND leader IS NOT NULL AND isr IS NOT NULL AND applied
            ORDER BY "offset" DESC, change_no DESC LIMIT 1""",
        **place,
    )
    return rows[0] if rows else None


def partition_rows(
    reader: LakeReader, cluster_id: str, topic: str, partition: int, since_us: int | None, until_us: int | None
) -> PartitionRows:
    """What tells a partition's life."""
    place = {"cluster": cluster_id, "topic": topic, "partition": partition}
    facts = partition_facts(reader, cluster_id, topic, partition, None)
    where = "cluster_id = $cluster AND topic = $topic AND partition = $partition"
    lines = reader.rows(
        f"""SELECT broker_id, epoch_us(time) AS time, {LINE} FROM silver_isr_changes WHERE {where}
            UNION ALL SELECT broker_id, epoch_us(time), {LINE} FROM silver_leader_and_isr
            WHERE {where} AND role = 'leader_update'""",
        **place,
    )
    of_time = {(row["broker_id"], row["time"]): row for row in lines}
    changes = [
        row | of_time.get((row["broker_id"], row["change_time"]), {"file_id": None})
        for row in reader.rows(f"SELECT * FROM gold_isr_timeline WHERE {where} AND class <> 'not_observed'", **place)
    ]
    tables = ("failovers", "replica_truncations", "availability", "violations")
    failovers, truncations, availability, findings = (
        reader.rows(f"SELECT * FROM gold_{table} WHERE {where}", **place) for table in tables
    )
    logs = tuple(log for _, log in sorted(replica_logs(facts.marks).items()))
    return PartitionRows(
        cluster_id=cluster_id,
        topic=topic,
        partition=partition,
        tenures=facts.tenures,
        isr_changes=changes,
        failovers=failovers,
        truncations=truncations,
        availability=availability,
        findings=findings,
        logs=logs,
        since_us=since_us,
        until_us=until_us,
    )


def without_leader(reader: LakeReader, cluster_id: str | None, at_us: int | None) -> list[tuple[str, str, int]]:
    """Partitions that nobody led at a time; without one, at the end of the logs."""
    rows = reader.rows(
        """SELECT DISTINCT cluster_id, topic, partition FROM gold_availability
           WHERE state = 'offline' AND ($cluster IS NULL OR cluster_id = $cluster)
             AND ($at IS NULL OR started_time < $at) AND (ended_time IS NULL OR ended_time >= $at)
           ORDER BY cluster_id, topic, partition""",
        cluster=cluster_id,
        at=None if at_us is None else instant(at_us),
    )
    return [(row["cluster_id"], row["topic"], row["partition"]) for row in rows]
