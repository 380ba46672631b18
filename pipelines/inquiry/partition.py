"""The history of a partition: its epochs, leaders and in-sync sets, truncations, and its unavailable time.

It also bounds the logs of its replicas at a time. A hot partition has millions of fetches and produces a day, so DuckDB
returns only each follower's last fetch of a leadership, and the newest acknowledged batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from highwater.pipelines.base.errors import InputError
from highwater.pipelines.base.plain import number
from highwater.pipelines.base.values import instant, iso_utc
from highwater.pipelines.inquiry import read_marks
from highwater.pipelines.inquiry.answer import (
    Answer,
    Lines,
    Point,
    Row,
    Rows,
    Table,
    join_values,
    name_partition,
    sort_steps,
)
from highwater.pipelines.inquiry.read_lines import FAR_US, LINE, OF_PARTITION
from highwater.pipelines.inquiry.read_marks import ACKED_MAX, count_unplaced, extend_last_batches, read_acked_batches
from highwater.pipelines.inquiry.replica_logs import (
    WATERMARK,
    KnownReplicaLog,
    LeaderTenure,
    build_row_history,
    fold_marks,
    tenures,
)
from highwater.pipelines.inquiry.survivors import PartitionFacts
from highwater.pipelines.kafka.controller_rows import COMMITTED
from highwater.pipelines.lake.reader import LakeReader
from highwater.schemas.package_data import read_toml

#: Steps that an answer shows; times narrow the question.
STEPS_MAX = 400

#: Delay of an election after the failure from which its time is shown.
_ELECTED_LATER_US = 1_000_000
_WORDS: Final = read_toml(__package__, "words.toml")["partition"]
_REASONS: Final[dict[str, str]] = _WORDS["reasons"]
_STRATEGIES: Final[dict[str, str]] = _WORDS["strategies"]


@dataclass(frozen=True)
class PartitionRows:
    """Rows of one partition."""

    cluster_id: str
    topic: str
    partition: int
    tenures: tuple[LeaderTenure, ...]  #: its epochs
    isr_changes: Rows  #: of ``gold.isr_timeline``, with a line where there is one
    #: failovers, truncations, availability, findings: rows of gold
    failovers: Rows
    truncations: Rows
    availability: Rows
    findings: Rows
    logs: tuple[KnownReplicaLog, ...]  #: what its replicas hold at the end
    #: since_us, until_us: what is asked for; None: no bound
    since_us: int | None = None
    until_us: int | None = None

    def holds(self, time_us: int) -> bool:
        """Return True if the answer covers a time."""
        return (self.since_us is None or time_us >= self.since_us) and (
            self.until_us is None or time_us < self.until_us
        )


def list_shown_rows(rows: PartitionRows) -> list[Row]:
    """Return the rows of the log lines that the answer shows."""
    return [step.row for step in _select_points(rows)[:STEPS_MAX] if step.row is not None]


def answer(rows: PartitionRows, lines: Lines) -> Answer:
    """Return an answer with the history of a partition.

    Args:
        lines: texts and files of the shown lines.
    """
    points = _select_points(rows)
    return Answer(
        title=f"{name_partition(rows.topic, rows.partition)} of cluster {rows.cluster_id}",
        is_shown=bool(points or rows.logs),
        sentences=tuple(_write_sentences(rows, len(points))),
        steps=sort_steps(points[:STEPS_MAX], lines),
        tables=tuple(_make_tables(rows)),
    )


def _write_sentences(rows: PartitionRows, steps: int) -> Iterator[str]:
    if not rows.tenures:
        yield "The logs do not show who led it."
    else:
        leaders = join_values(dict.fromkeys(tenure.leader for tenure in rows.tenures))
        yield f"{number(len(rows.tenures), 'leader epoch')} in the logs, led by broker {leaders}."
    unclean = [row for row in rows.failovers if row["strategy"] == "unclean"]
    if unclean:
        yield f"{number(len(unclean), 'leader')} elected uncleanly: out of sync, so that records may be lost."
    removed = [row for row in rows.truncations if row["records_removed"]]
    if removed:
        records = sum(row["records_removed"] for row in removed)
        yield f"Replicas truncated {number(records, 'offset')} of their logs, in {number(len(removed), 'truncation')}."
    for state in ("offline", "under_min_isr"):
        windows = [row for row in rows.availability if row["state"] == state]
        if windows:
            seconds = sum(row["duration_ms"] or 0 for row in windows) / 1000
            open_since = [iso_utc(row["started_time"])[11:19] for row in windows if not row["ended_time"]]
            open_ended = f", and from {open_since[0]} until the logs end" if open_since else ""
            named = "No leader" if state == "offline" else "Under min.insync.replicas"
            yield f"{named} {number(len(windows), 'time')}: {seconds:,.1f} s in total{open_ended}."
    violations = [row for row in rows.findings if row["severity"] == "violation"]
    yield f"{number(len(violations), 'violation')}, {number(len(rows.findings) - len(violations), 'other finding')}."
    if steps > STEPS_MAX:
        yield f"{steps - STEPS_MAX} later steps are left out; narrow the question with --from and --until."


def _describe_rule(row: Row) -> str:
    """Return a phrase: the truncation that the release's rule expected, and the class of the logged one."""
    rule = f"expected: {str(row['rule']).replace('_', ' ')}"
    return "as expected" if row["class"] in ("agrees", "predicted") else f"{rule}; {row['class']}"


def _describe_isr_change(row: Row) -> str:
    """Return a sentence about an ISR change. Without a commit it is a proposal."""
    before, after = join_values(row["isr_before"]), join_values(row["isr_after"])
    if row["committed_time"] is None:
        return f"The {row['made_by']} proposed ISR {after} instead of {before}; no line shows that it was committed."
    how = "left" if row["change"] == "shrink" else "joined"
    return (
        f"Broker {row['replica_id']} {how} the ISR: {before} became {after}, by the {row['made_by']} ({row['class']})."
    )


def _select_points(rows: PartitionRows) -> list[Point]:
    return sorted((step for step in _collect_points(rows) if rows.holds(step.time_us)), key=lambda step: step.time_us)


def _collect_points(rows: PartitionRows) -> Iterator[Point]:
    for tenure in rows.tenures:
        row = tenure.row
        start = "" if tenure.start_offset is None else f" from offset {tenure.start_offset}"
        watermark = "" if row["high_watermark"] is None else f", high watermark {row['high_watermark']}"
        isr = f", ISR {join_values(row['isr'])}" if row["isr"] else ""
        yield Point(row["time"], f"Broker {tenure.leader} takes up epoch {tenure.epoch}{start}{watermark}{isr}.", row)
    for row in rows.isr_changes:
        yield Point(row["change_time"], _describe_isr_change(row), row)
    for row in rows.failovers:
        time_us = next((row[name] for name in ("detected_time", "elected_time", "taken_up_time") if row[name]), None)
        if time_us is not None:
            why = _REASONS.get(row["reason"], row["reason"])
            yield Point(
                time_us, f"Broker {row['old_leader']} lost leadership ({why}); {_describe_election(row, time_us)}."
            )
    for row in rows.truncations:
        if row["logged_offset"] is not None and row["records_removed"]:
            below = ", below its high watermark" if row["below_high_watermark"] else ""
            what = (
                f"Broker {row['broker_id']} truncated its log from {row['log_end_offset']} to {row['logged_offset']}"
                f"{below} ({_describe_rule(row)})."
            )
            yield Point(row["logged_time"] or row["started_time"], what)
    for row in rows.availability:
        until = "the end of the logs" if row["ended_time"] is None else iso_utc(row["ended_time"])[11:-1]
        state = "It has no leader" if row["state"] == "offline" else "Its ISR is under min.insync.replicas"
        refused = f"; {number(row['produces_refused'], 'produce')} refused" if row["produces_refused"] else ""
        yield Point(row["started_time"], f"{state} until {until}{refused}.")
    for row in rows.findings:
        if row["time"] is not None and row["implied_by"] is None:
            command = f"highwater trace finding {row['finding_id'][:8]}"
            yield Point(row["time"], f"{row['severity']} {row['rule_id']} ({command}): {row['message']}")


def _describe_election(row: Row, since_us: int) -> str:
    """Return a phrase: the elected broker, the strategy, and how long a late election took."""
    if row["new_leader"] is None:
        return "no broker is elected"
    strategy = row["strategy"]
    how = f" {_STRATEGIES.get(strategy, strategy)}" if strategy else ""
    is_later = row["elected_time"] is not None and row["elected_time"] - since_us >= _ELECTED_LATER_US
    when = f", at {iso_utc(row['elected_time'])[11:-1]}" if is_later else ""
    return f"broker {row['new_leader']} is elected{how}{when}"


def _make_tables(rows: PartitionRows) -> Iterator[Table]:
    if rows.logs:
        yield Table(
            title="replicas at the end of the logs",
            rows=tuple(
                {
                    "replica": log.replica_id,
                    "log_end_min": log.end_min,
                    "log_end_max": log.end_max,
                    "last_epoch": log.last_epoch,
                    "high_watermark": log.high_watermark,
                }
                for log in rows.logs
            ),
        )


def find_cluster(reader: LakeReader, topic: str, partition: int, cluster_id: str | None) -> str:
    """Return the id of the cluster with the partition.

    Raises:
        InputError: no cluster has it, or several have and none was named.
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
        raise InputError(reader.root, f"has no partition {topic}-{partition}{where}", "name one that the logs contain")
    if len(clusters) > 1:
        raise InputError(reader.root, f"has {topic}-{partition} in clusters {', '.join(clusters)}", "give --cluster")
    return str(clusters[0])


def read_partition_facts(
    reader: LakeReader, cluster_id: str, topic: str, partition: int, before_us: int | None
) -> PartitionFacts:
    """Return all facts of a partition from lines before a time. Without a time, data files are included."""
    before = instant(FAR_US if before_us is None else before_us)
    place = {"cluster": cluster_id, "topic": topic, "partition": partition, "before": before}
    leaderships = reader.rows(
        f"""SELECT broker_id, epoch_us(time) AS time, role, leader_epoch, partition_epoch, start_offset, topic_id,
                   CASE WHEN role = 'leader_start' THEN coalesce(leader, broker_id) ELSE leader END AS leader,
                   controller_epoch, high_watermark, isr, replicas, {LINE}
            FROM silver_leader_and_isr WHERE {OF_PARTITION} AND role <> 'metadata' ORDER BY time""",
        **place,
    )
    changes = reader.rows(
        f"""SELECT broker_id, epoch_us(time) AS time, '{COMMITTED}' AS role, broker_id AS leader, leader_epoch,
                   partition_epoch, isr, {LINE}
            FROM silver_isr_changes WHERE {OF_PARTITION} AND change = 'committed' AND isr IS NOT NULL""",
        **place,
    )
    history = build_row_history(leaderships, changes)
    all_epochs = tenures(leaderships, history)
    # A topic that is created again begins again: what was before is of no replica's log.
    newest = history.newest()
    life = newest[0].incarnation if newest else 0
    leaderships = [row for row in leaderships if history.lives.at(row["time"], row["topic_id"]) == life]
    epochs = tuple(tenure for tenure in all_epochs if tenure.incarnation == life)
    acked = read_acked_batches(reader, place, epochs)
    lines = list(read_marks.mark_lines(reader, place, newest))
    seen = read_marks.read_request_logs(reader, place, epochs)
    traced = read_marks.traced(reader, place)
    fetched = list(read_marks.mark_fetches(reader, place, epochs, acked, seen))
    acked = list(extend_last_batches(acked, fetched))
    marks = [
        *read_marks.mark_leaderships(leaderships, epochs),
        *fetched,
        *lines,
        *read_marks.mark_appends(acked),
        *read_marks.mark_unseen(leaderships, fetched, lines, seen, traced),
    ]
    if before_us is None:
        marks += read_marks.mark_files(reader, place)
    metadata = _read_last_metadata(reader, place)
    isr = next((epoch.last_isr for epoch in newest if epoch.last_isr), ()) if metadata is None else metadata["isr"]
    marks += read_marks.mark_isr_members(epochs, marks, isr)
    committed = [mark for mark in marks if mark.kind == WATERMARK and mark.offset is not None]
    marks += read_marks.mark_leaders_watermarks(reader, place, epochs)
    return PartitionFacts(
        cluster_id=cluster_id,
        topic=topic,
        partition=partition,
        before_us=before_us,
        tenures=all_epochs,
        marks=tuple(marks),
        acked=tuple(acked[:ACKED_MAX]),
        is_whole=len(acked) <= ACKED_MAX,
        has_answers=bool(acked) or (bool(epochs) and all(tenure.leader in seen.last_line_us for tenure in epochs)),
        unplaced=count_unplaced(reader, place),
        replicas=tuple((metadata or {}).get("replicas") or next((e.replicas for e in newest if e.replicas), ())),
        isr=tuple(isr),
        eligible=tuple((metadata or {}).get("elr") or ()),
        leader=metadata["leader"] if metadata else next((e.leader for e in newest if e.leader is not None), None),
        committed=max(committed, key=lambda mark: (mark.offset or 0, -mark.time_us), default=None),
    )


def _read_last_metadata(reader: LakeReader, place: Mapping[str, Any]) -> Row | None:
    rows = reader.rows(
        f"""SELECT isr, elr, replicas, leader FROM silver_metadata_records
            WHERE {OF_PARTITION} AND leader IS NOT NULL AND isr IS NOT NULL AND applied
            ORDER BY "offset" DESC, change_no DESC LIMIT 1""",
        **place,
    )
    return rows[0] if rows else None


def read_partition_rows(
    reader: LakeReader, cluster_id: str, topic: str, partition: int, since_us: int | None, until_us: int | None
) -> PartitionRows:
    """Return the rows about a partition between two times. None for no bound."""
    place = {"cluster": cluster_id, "topic": topic, "partition": partition}
    facts = read_partition_facts(reader, cluster_id, topic, partition, None)
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
    logs = tuple(log for _, log in sorted(fold_marks(facts.marks).items()))
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


def list_leaderless(reader: LakeReader, cluster_id: str | None, at_us: int | None) -> list[tuple[str, str, int]]:
    """Return (cluster, topic, partition) of partitions without a leader at a time, or at the log end if None."""
    rows = reader.rows(
        """SELECT DISTINCT cluster_id, topic, partition FROM gold_availability
           WHERE state = 'offline' AND ($cluster IS NULL OR cluster_id = $cluster)
             AND ($at IS NULL OR started_time < $at) AND (ended_time IS NULL OR ended_time >= $at)
           ORDER BY cluster_id, topic, partition""",
        cluster=cluster_id,
        at=None if at_us is None else instant(at_us),
    )
    return [(row["cluster_id"], row["topic"], row["partition"]) for row in rows]
