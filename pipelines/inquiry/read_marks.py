"""Marks of a partition's replicas and its acknowledged records, from lines, requests and files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from highwater.pipelines.inquiry.answer import Row
from highwater.pipelines.inquiry.read_lines import LINE, OF_PARTITION
from highwater.pipelines.inquiry.replica_logs import (
    APPENDED,
    FETCHED,
    FOLLOWS,
    LEADS,
    LOADED,
    OWN_ROLES,
    STORED,
    TRUNCATED,
    UNSEEN,
    WATERMARK,
    LeaderTenure,
    LogMark,
    find_epoch,
)
from highwater.pipelines.inquiry.survivors import ALL, ONE, Acked
from highwater.pipelines.kafka.future_logs import DELETED, FutureLogLine, find_future_logs
from highwater.pipelines.kafka.partition_history import LeaderEpoch
from highwater.pipelines.lake.reader import LakeReader, Rows

#: A parked fetch is answered within replica.fetch.wait.max.ms (500 ms unless configured), and logged right after it.
ANSWERED_WITHIN_US = 2_000_000

_FOR_GOOD_US = 1 << 62


class RequestLogs(NamedTuple):
    """When leaders' request logs end, and when followers last fetched."""

    last_line_us: Mapping[int, int]  #: by leader, time of the last request that it logged
    #: by leader and follower, when the last fetch was answered that it logged, of any partition
    last_fetch_us: Mapping[tuple[int, int], int]

    def is_over(self, leader: int, follower: int, since_us: int) -> bool:
        """Return True if the leader's request log is long enough to contain all answers to the follower."""
        last_line_us = self.last_line_us.get(leader)
        answered_us = max(since_us, self.last_fetch_us.get((leader, follower), since_us))
        return last_line_us is not None and last_line_us - answered_us > ANSWERED_WITHIN_US


def mark_leaderships(rows: Rows, epochs: Iterable[LeaderTenure]) -> Iterator[LogMark]:
    for tenure in epochs:
        time_us = tenure.row["time"] if tenure.from_us is None else tenure.from_us
        yield LogMark(tenure.epoch, time_us, LEADS, tenure.leader, tenure.start_offset, tenure.row)
    for row in rows:
        if row["leader_epoch"] is None or row["role"] not in OWN_ROLES:
            continue
        if row["role"] == "follower_start" and row["start_offset"] is not None:
            yield LogMark(row["leader_epoch"], row["time"], FOLLOWS, row["broker_id"], row["start_offset"], row)
        if row["high_watermark"] is not None:
            yield LogMark(row["leader_epoch"], row["time"], WATERMARK, row["broker_id"], row["high_watermark"], row)


#: Condition: a broker's line is within a tenure of this broker.
_IN_TENURE = """broker_id = leader
              AND (from_us IS NULL OR at_us >= from_us) AND (until_us IS NULL OR at_us < until_us)"""


def _format_tenures(epochs: tuple[LeaderTenure, ...]) -> str:
    """Return SQL with leader epochs as a table. Expects at least one."""
    values = ", ".join(
        f"({tenure.epoch}, {tenure.leader}, {tenure.from_us if tenure.from_us is not None else 'NULL::bigint'}, "
        f"{tenure.until_us if tenure.until_us is not None else 'NULL::bigint'})"
        for tenure in epochs
    )
    return f"tenure(epoch, leader, from_us, until_us) AS (VALUES {values})"


def mark_leaders_watermarks(
    reader: LakeReader, place: Mapping[str, Any], epochs: tuple[LeaderTenure, ...]
) -> Iterator[LogMark]:
    """Yield the last high watermark that each leader logged in its epoch. Records below it were committed."""
    if not epochs:
        return
    for row in reader.rows(
        f"""WITH {_format_tenures(epochs)},
                 logged AS (SELECT *, epoch_us(time) AS at_us FROM silver_high_watermarks
                            WHERE {OF_PARTITION} AND high_watermark IS NOT NULL AND source = 'updated')
            SELECT epoch, broker_id, max(high_watermark) AS high_watermark,
                   max_by({{'time': at_us, 'file_id': file_id, 'byte_offset': byte_offset, 'line_no': line_no}},
                          high_watermark) AS line
            FROM logged JOIN tenure ON {_IN_TENURE} GROUP BY epoch, broker_id""",
        **place,
    ):
        line = row["line"]
        yield LogMark(row["epoch"], line["time"], WATERMARK, row["broker_id"], row["high_watermark"], line)


def mark_fetches(
    reader: LakeReader,
    place: Mapping[str, Any],
    epochs: tuple[LeaderTenure, ...],
    acked: list[Acked],
    seen: RequestLogs,
) -> Iterator[LogMark]:
    """Yield the last fetch of each follower in each leader epoch, with the most records that the answer can have.

    Args:
        place: SQL parameters of the partition.
        acked: acknowledged batches.
    """
    if not epochs:
        return
    rows = reader.rows(
        f"""WITH {_format_tenures(epochs)},
                 taken AS (
                   SELECT *, epoch_us(coalesce(dequeued_time, time)) AS at_us FROM silver_replica_fetches
                   WHERE {OF_PARTITION} AND coalesce(response_error_code, 0) = 0),
                 of_tenure AS (
                   SELECT *, max(at_us) FILTER (fetch_offset IS NOT NULL)
                               OVER (PARTITION BY epoch, broker_id, replica_id) AS last_us
                   FROM taken JOIN tenure ON {_IN_TENURE})
            SELECT epoch, broker_id, replica_id,
                   max_by({{'fetch_offset': fetch_offset, 'time': at_us, 'file_id': file_id,
                            'byte_offset': byte_offset, 'line_no': line_no}}, at_us)
                     FILTER (fetch_offset IS NOT NULL) AS last,
                   max(response_high_watermark) AS high_watermark,
                   max(response_high_watermark) FILTER (at_us < last_us) AS taken_high_watermark,
                   max(epoch_us(completed_time)) FILTER (response_bytes IS NULL OR response_bytes > 0) AS carried_us
            FROM of_tenure GROUP BY epoch, broker_id, replica_id""",
        **place,
    )
    for row in rows:
        if row["last"] is None:
            continue
        if row["high_watermark"] is not None and row["high_watermark"] >= 0:
            at_us, watermark = row["last"]["time"], row["high_watermark"]
            yield LogMark(row["epoch"], at_us, WATERMARK, row["broker_id"], watermark, row["last"])
        if row["taken_high_watermark"] is not None and row["taken_high_watermark"] >= 0:
            # A follower that asks again has taken the answer before: its high watermark is the leader's, or its end.
            end = min(row["taken_high_watermark"], row["last"]["fetch_offset"])
            yield LogMark(row["epoch"], row["last"]["time"], WATERMARK, row["replica_id"], end, row["last"])
        is_over = seen.is_over(row["broker_id"], row["replica_id"], row["last"]["time"])
        offset_max = _find_end(acked, row["epoch"], row["carried_us"]) if is_over else None
        yield LogMark(
            row["epoch"],
            row["last"]["time"],
            FETCHED,
            row["replica_id"],
            row["last"]["fetch_offset"],
            row["last"],
            leader=row["broker_id"],
            offset_max=offset_max,
        )


def read_request_logs(reader: LakeReader, place: Mapping[str, Any], epochs: tuple[LeaderTenure, ...]) -> RequestLogs:
    """Return how long the leaders' request logs last, and when each follower last fetched."""
    if not epochs:
        return RequestLogs({}, {})
    leaders = ", ".join(str(leader) for leader in sorted({tenure.leader for tenure in epochs}))
    where = f"cluster_id = $cluster AND time < $before AND broker_id IN ({leaders})"
    rows = reader.rows(
        f"""SELECT broker_id, NULL AS replica_id, epoch_us(max(time)) AS last_us
            FROM (SELECT broker_id, time FROM silver_produce_requests WHERE {where}
                  UNION ALL SELECT broker_id, time FROM silver_fetch_requests WHERE {where}) GROUP BY broker_id
            UNION ALL
            SELECT broker_id, replica_id, epoch_us(max(completed_time)) FROM silver_fetch_requests
            WHERE {where} AND replica_id >= 0 GROUP BY broker_id, replica_id""",
        cluster=place["cluster"],
        before=place["before"],
    )
    return RequestLogs(
        last_line_us={row["broker_id"]: row["last_us"] for row in rows if row["replica_id"] is None},
        last_fetch_us={(r["broker_id"], r["replica_id"]): r["last_us"] for r in rows if r["replica_id"] is not None},
    )


def traced(reader: LakeReader, place: Mapping[str, Any]) -> set[int]:
    """Return the ids of brokers that log each append as followers (TRACE). They appended nothing else."""
    rows = reader.rows(
        f"SELECT DISTINCT broker_id FROM silver_appends WHERE {OF_PARTITION} AND source = 'follower'", **place
    )
    return {row["broker_id"] for row in rows}


def mark_unseen(
    rows: Rows, fetched: list[LogMark], lines: list[LogMark], seen: RequestLogs, traced: set[int]
) -> Iterator[LogMark]:
    """Yield a mark for each follower that may have fetched from a leader without a logged fetch."""
    for row in rows:
        follower, leader, epoch = row["broker_id"], row["leader"], row["leader_epoch"]
        follows = row["role"] in OWN_ROLES and leader is not None and leader >= 0 and leader != follower
        if epoch is None or not follows or follower in traced or seen.is_over(leader, follower, row["time"]):
            continue
        of_it = (mark for mark in fetched if (mark.kind, mark.epoch, mark.replica_id) == (FETCHED, epoch, follower))
        if not any(mark.time_us >= row["time"] for mark in of_it):
            # It may have fetched until its next start, which logs the end of its log.
            restarts = (m.time_us for m in lines if m.kind == LOADED and m.replica_id == follower)
            until_us = min((time_us for time_us in restarts if time_us > row["time"]), default=_FOR_GOOD_US) - 1
            yield LogMark(epoch, until_us, UNSEEN, follower, None, row, leader=leader)


def _find_end(acked: list[Acked], epoch: int, time_us: int | None) -> int | None:
    """Return an upper bound of a leader's log end at a time: the lowest offset appended later. None if unknown."""
    later = [batch.start for batch in acked if batch.epoch == epoch and batch.row["dequeued"] > (time_us or 0)]
    return min(later, default=None)


def mark_lines(reader: LakeReader, place: Mapping[str, Any], epochs: Sequence[LeaderEpoch]) -> Iterator[LogMark]:
    """Yield lines of brokers about their own log (loaded, truncated, high watermark), and of leaders about laggards."""
    of_replicas, directories = _skip_future_logs(reader, place)
    rows = reader.rows(
        f"""SELECT broker_id, epoch_us(time) AS time, '{TRUNCATED}' AS kind, "offset" AS at, {LINE}
            FROM silver_truncations WHERE {OF_PARTITION} AND source IN ('log', 'fetcher') AND "offset" IS NOT NULL
                 {of_replicas}
            UNION ALL
            SELECT broker_id, epoch_us(time), '{LOADED}', log_end_offset, {LINE}
            FROM silver_high_watermarks WHERE {OF_PARTITION} AND source = 'loaded' AND log_end_offset IS NOT NULL
            UNION ALL
            SELECT broker_id, epoch_us(last.time), '{WATERMARK}', last.hw, last.file_id, last.byte_offset, last.line_no
            FROM (SELECT broker_id, max_by({{'time': time, 'hw': high_watermark, 'file_id': file_id,
                                            'byte_offset': byte_offset, 'line_no': line_no}}, time) AS last
                  FROM silver_high_watermarks
                  WHERE {OF_PARTITION} AND high_watermark IS NOT NULL
                    AND source IN ('updated', 'set', 'follower', 'non_monotonic') {of_replicas}
                  GROUP BY broker_id)""",
        **place,
        **directories,
    )
    for row in rows:
        epoch = find_epoch(epochs, row["broker_id"], row["time"])
        yield LogMark(epoch, row["time"], row["kind"], row["broker_id"], row["at"], row)
    laggards = reader.rows(
        f"""SELECT broker_id, epoch_us(time) AS time, out.replica_id, out.end_offset AS at, {LINE}
            FROM (SELECT *, unnest(out_of_sync) AS out FROM silver_isr_changes WHERE {OF_PARTITION})
            WHERE out.end_offset >= 0""",
        **place,
    )
    for row in laggards:
        epoch = find_epoch(epochs, row["broker_id"], row["time"])
        yield LogMark(epoch, row["time"], FETCHED, row["replica_id"], row["at"], row, leader=row["broker_id"])


def _skip_future_logs(reader: LakeReader, place: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """Return (SQL condition that excludes lines about future logs, its parameters)."""
    if not reader.has("silver.future_logs"):  # a lake of an earlier version
        return "", {}
    columns = "cluster_id, broker_id, topic, partition, epoch_us(time) AS time"
    rows = reader.rows(
        f"""SELECT {columns}, event, log_dir FROM silver_future_logs WHERE {OF_PARTITION} AND broker_id IS NOT NULL
            UNION ALL
            SELECT {columns}, role, log_dir FROM silver_leader_and_isr
            WHERE {OF_PARTITION} AND broker_id IS NOT NULL AND role = '{DELETED}' AND log_dir IS NOT NULL""",
        **place,
    )
    events = (
        FutureLogLine((row["cluster_id"], row["broker_id"], row["topic"], row["partition"]), *list(row.values())[4:])
        for row in rows
    )
    conditions: list[str] = []
    directories: dict[str, str] = {}
    for (_, broker_id, *_), logs in find_future_logs(events).items():
        for log in logs:
            is_meant = "log_dir IS NOT NULL"
            if log.log_dir is not None:
                name = f"log_dir_{len(directories)}"
                directories[name], is_meant = log.log_dir, f"coalesce(log_dir, '') = ${name}"
            span = f"epoch_us(time) >= {log.since_us} AND epoch_us(time) < {log.until_us}"
            conditions.append(f"AND NOT (broker_id = {broker_id} AND {span} AND {is_meant})")
    return " ".join(conditions), directories


def mark_appends(acked: list[Acked]) -> Iterator[LogMark]:
    """Yield the end of the last acknowledged batch of each leader epoch."""
    newest: dict[tuple[int, int], Acked] = {}
    for batch in acked:
        key = batch.epoch, batch.row["broker_id"]
        if key not in newest or batch.end > newest[key].end:
            newest[key] = batch
    for (epoch, broker_id), batch in newest.items():
        yield LogMark(epoch, batch.row["time"], APPENDED, broker_id, batch.end, batch.row)


def mark_isr_members(epochs: tuple[LeaderTenure, ...], marks: list[LogMark], isr: Iterable[int]) -> Iterator[LogMark]:
    """Yield the high watermark as a lower bound of the log end of each member of the last in-sync set."""
    last = epochs[-1:]
    watermarks = [
        mark
        for mark in marks
        for tenure in last
        if (mark.kind, mark.epoch, mark.replica_id) == (WATERMARK, tenure.epoch, tenure.leader)
    ]
    if watermarks:
        # The first of equal lines is the evidence.
        highest = max(watermarks, key=lambda mark: (mark.offset or 0, -mark.time_us))
        for member in isr:
            if member != highest.replica_id:
                yield highest._replace(kind=APPENDED, replica_id=member)


def mark_files(reader: LakeReader, place: Mapping[str, Any]) -> Iterator[LogMark]:
    """Yield log ends, epochs and high watermarks in data directories. The time of their copy is unknown."""
    parameters = {name: value for name, value in place.items() if name != "before"}
    where = "cluster_id = $cluster AND topic = $topic AND partition = $partition AND broker_id IS NOT NULL"
    epochs: dict[int, list[tuple[int, int]]] = {}
    for row in reader.rows(
        f"""SELECT broker_id, leader_epoch, "offset" AS at FROM silver_checkpoints
            WHERE {where} AND kind = 'leader-epoch-checkpoint' AND replica_state = 'current' AND problem IS NULL
            ORDER BY broker_id, leader_epoch""",
        **parameters,
    ):
        epochs.setdefault(row["broker_id"], []).append((row["leader_epoch"], row["at"]))
    ends = reader.rows(
        f"""SELECT broker_id, max(last_offset) + 1 AS at FROM silver_log_batches
            WHERE {where} AND replica_state = 'current' AND crc_ok GROUP BY broker_id""",
        **parameters,
    )
    for row in ends:
        no_line = {"time": 0, "file_id": None}
        stored = tuple(epochs.get(row["broker_id"], ()))
        yield LogMark(0, 0, STORED, row["broker_id"], row["at"], no_line, epochs=stored)


#: Acknowledged batches that are looked at: the newest ones.
ACKED_MAX = 100_000


def read_acked_batches(reader: LakeReader, place: Mapping[str, Any], epochs: tuple[LeaderTenure, ...]) -> list[Acked]:
    """Return acknowledged batches, newest first, at most `ACKED_MAX` + 1. One more means that there are others."""
    rows = reader.rows(
        f"""WITH answered AS (
              SELECT broker_id, acks, true AS is_sure, p.base_offset AS base, handled_time, dequeued_time, time,
                     client_id, connection, correlation_id, {LINE}
              FROM (SELECT *, unnest(partitions) AS p FROM silver_produce_requests
                    WHERE cluster_id = $cluster AND time < $before AND acks <> 0)
              WHERE p.topic = $topic AND p.partition = $partition AND p.error_code = 0 AND p.base_offset >= 0
              UNION ALL
              SELECT broker_id, -1, succeeded AND api = 'PRODUCE', p.base_offset, handled_time, arrival_time, line_time,
                     client_id, connection, correlation_id, NULL, NULL, NULL
              FROM (SELECT *, unnest(partitions) AS p FROM gold_delayed_operations
                    WHERE cluster_id = $cluster AND line_time < $before AND operation = 'produce')
              WHERE p.topic = $topic AND p.partition = $partition AND p.base_offset >= 0
                AND (p.error_code IS NULL OR (api <> 'PRODUCE' AND succeeded)))
            SELECT * EXCLUDE (handled_time, dequeued_time, time), epoch_us(handled_time) AS handled,
                   epoch_us(dequeued_time) AS dequeued, epoch_us(time) AS time
            FROM answered ORDER BY base DESC, handled DESC LIMIT {ACKED_MAX + 1}""",
        **place,
    )
    placed = [(tenure, row) for row in rows if (tenure := _find_tenure(epochs, row)) is not None]
    batches: list[Acked] = []
    next_base: dict[int, int] = {}
    for tenure, row in placed:
        following = next_base.get(tenure.epoch)
        # A retry is answered with the offset of the batch that it repeats.
        start, end = row["base"], max(following or 0, row["base"] + 1)
        acks = ALL if row["acks"] == -1 else ONE
        batches.append(Acked(tenure.epoch, start, end, acks, row["is_sure"], following is not None, row))
        next_base[tenure.epoch] = start
    return batches


def extend_last_batches(acked: list[Acked], fetched: Iterable[LogMark]) -> Iterator[Acked]:
    """Yield batches. The last one of each epoch ends at the next fetch of a follower that has it."""
    reached: dict[int, int] = {}
    for mark in fetched:
        if mark.kind == FETCHED and mark.offset is not None:
            reached[mark.epoch] = max(reached.get(mark.epoch, 0), mark.offset)
    for batch in acked:
        end = reached.get(batch.epoch, 0)
        yield batch if batch.is_whole or end <= batch.start else batch._replace(end=end, is_whole=True)


def count_unplaced(reader: LakeReader, place: Mapping[str, Any]) -> int:
    (row,) = reader.rows(
        """SELECT count(*) AS produces
           FROM (SELECT unnest(partitions) AS p FROM silver_produce_requests
                 WHERE cluster_id = $cluster AND time < $before AND acks = 1)
           WHERE p.topic = $topic AND p.partition = $partition AND p.base_offset IS NULL AND p.error_code IS NULL""",
        **place,
    )
    return int(row["produces"])


def _find_tenure(epochs: tuple[LeaderTenure, ...], row: Row) -> LeaderTenure | None:
    of_it = [tenure for tenure in epochs if tenure.holds(row["broker_id"], row["handled"])]
    return of_it[-1] if of_it else None
