"""Reads what is known of one partition's replicas, up to a time.

A hot partition has millions of fetches and produces a day: DuckDB gives of a leadership's fetches each follower's last
one, and of the acknowledged batches the newest ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from pipelines.errors import InputError
from pipelines.inquiry.answer import Lines, Row
from pipelines.inquiry.partition import PartitionRows
from pipelines.inquiry.replica_logs import (
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
    Mark,
    Tenure,
    epoch_at,
    replica_logs,
    tenures,
)
from pipelines.inquiry.survivors import ALL, ONE, Acked, PartitionFacts
from pipelines.lake_reader import LakeReader, Rows

#: Acknowledged batches that are looked at: the newest ones.
ACKED_MAX = 500_000
#: A parked fetch is answered within replica.fetch.wait.max.ms (500 ms unless configured), and logged right after it.
ANSWERED_WITHIN_US = 2_000_000

_FOR_GOOD_US = 1 << 62
_FAR = datetime(9999, 1, 1, tzinfo=UTC)
_LINE = "file_id, byte_offset, line_no"
_OF_PARTITION = "cluster_id = $cluster AND topic = $topic AND partition = $partition AND time < $before"


class RequestLogs(NamedTuple):
    """Request logs of leaders.

    Attributes:
        last_line_us: by leader, time of the last request that it logged.
        last_fetch_us: by leader and follower, when the last fetch was answered that it logged, of any partition.
    """

    last_line_us: Mapping[int, int]
    last_fetch_us: Mapping[tuple[int, int], int]

    def is_over(self, leader: int, follower: int, since_us: int) -> bool:
        """Whether the leader's log goes on for so long that all of what it answered to the follower is in it."""
        last_line_us = self.last_line_us.get(leader)
        answered_us = max(since_us, self.last_fetch_us.get((leader, follower), since_us))
        return last_line_us is not None and last_line_us - answered_us > ANSWERED_WITHIN_US


def instant(time_us: int) -> datetime:
    """Microseconds since the epoch as DuckDB takes a time."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time_us)


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
                 SELECT cluster_id FROM silver_replica_fetches WHERE topic = $topic AND partition = $partition
                 UNION ALL
                 SELECT cluster_id FROM (
                   SELECT cluster_id, unnest(partitions) AS p FROM gold_delayed_operations WHERE operation = 'produce')
                 WHERE p.topic = $topic AND p.partition = $partition)
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
    before = _FAR if before_us is None else instant(before_us)
    place = {"cluster": cluster_id, "topic": topic, "partition": partition, "before": before}
    leaderships = reader.rows(
        f"""SELECT broker_id, epoch_us(time) AS time, role, leader, leader_epoch, partition_epoch, start_offset,
                   high_watermark, isr, replicas, {_LINE}
            FROM silver_leader_and_isr WHERE {_OF_PARTITION} AND role <> 'metadata' ORDER BY time""",
        **place,
    )
    epochs = tenures([_with_own_leader(row) for row in leaderships])
    acked = _acked(reader, place, epochs)
    lines = list(_of_lines(reader, place, leaderships))
    seen = _request_logs(reader, place, epochs)
    traced = _traced(reader, place)
    fetched = list(_of_fetches(reader, place, epochs, acked, seen))
    acked = list(_with_ends(acked, fetched))
    marks = [
        *_of_leaderships(leaderships, epochs),
        *fetched,
        *lines,
        *_of_appends(acked),
        *_unseen(leaderships, fetched, lines, seen, traced),
    ]
    if before_us is None:
        marks += _of_files(reader, place)
    committed = [mark for mark in marks if mark.kind == WATERMARK and mark.offset is not None]
    metadata = _last_metadata(reader, place)
    isr = _last_isr(reader, place, leaderships) if metadata is None else metadata["isr"]
    return PartitionFacts(
        cluster_id=cluster_id,
        topic=topic,
        partition=partition,
        before_us=before_us,
        tenures=epochs,
        marks=tuple(marks),
        acked=tuple(acked[:ACKED_MAX]),
        is_whole=len(acked) <= ACKED_MAX,
        has_answers=bool(acked),
        unplaced=_unplaced(reader, place),
        replicas=tuple(_last(leaderships, "replicas") or (metadata or {}).get("replicas") or ()),
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
            WHERE {_OF_PARTITION} AND change = 'committed' AND isr IS NOT NULL ORDER BY time DESC LIMIT 1""",
        **place,
    )
    told = [*((row["time"], row["isr"]) for row in rows), *((r["time"], r["isr"]) for r in leaderships if r["isr"])]
    return max(told, default=(0, None), key=lambda item: item[0])[1]


def _last_metadata(reader: LakeReader, place: Mapping[str, Any]) -> Row | None:
    rows = reader.rows(
        f"""SELECT isr, elr, replicas, leader FROM silver_metadata_records
            WHERE {_OF_PARTITION} AND leader IS NOT NULL AND isr IS NOT NULL AND applied
            ORDER BY "offset" DESC, change_no DESC LIMIT 1""",
        **place,
    )
    return rows[0] if rows else None


# ------------------------------------------------------------------------- marks


def _of_leaderships(rows: Rows, epochs: Iterable[Tenure]) -> Iterator[Mark]:
    for tenure in epochs:
        time_us = tenure.row["time"] if tenure.from_us is None else tenure.from_us
        yield Mark(tenure.epoch, time_us, LEADS, tenure.leader, tenure.start_offset, tenure.row)
    for row in rows:
        if row["leader_epoch"] is None or row["role"] not in OWN_ROLES:
            continue
        if row["role"] == "follower_start" and row["start_offset"] is not None:
            yield Mark(row["leader_epoch"], row["time"], FOLLOWS, row["broker_id"], row["start_offset"], row)
        if row["high_watermark"] is not None:
            yield Mark(row["leader_epoch"], row["time"], WATERMARK, row["broker_id"], row["high_watermark"], row)


def _of_fetches(
    reader: LakeReader,
    place: Mapping[str, Any],
    epochs: tuple[Tenure, ...],
    acked: list[Acked],
    seen: RequestLogs,
) -> Iterator[Mark]:
    """The last fetch of each follower in each tenure, with the most that its answer can have brought."""
    if not epochs:
        return
    values = ", ".join(
        f"({tenure.epoch}, {tenure.leader}, {tenure.from_us if tenure.from_us is not None else 'NULL::bigint'}, "
        f"{tenure.until_us if tenure.until_us is not None else 'NULL::bigint'})"
        for tenure in epochs
    )
    rows = reader.rows(
        f"""WITH tenure(epoch, leader, from_us, until_us) AS (VALUES {values}),
                 taken AS (
                   SELECT *, epoch_us(coalesce(dequeued_time, time)) AS at_us FROM silver_replica_fetches
                   WHERE {_OF_PARTITION} AND coalesce(response_error_code, 0) = 0)
            SELECT epoch, broker_id, replica_id,
                   max_by({{'fetch_offset': fetch_offset, 'time': at_us, 'file_id': file_id,
                            'byte_offset': byte_offset, 'line_no': line_no}}, at_us)
                     FILTER (fetch_offset IS NOT NULL) AS last,
                   max(response_high_watermark) AS high_watermark,
                   max(epoch_us(completed_time)) FILTER (response_bytes IS NULL OR response_bytes > 0) AS carried_us
            FROM taken JOIN tenure ON broker_id = leader
              AND (from_us IS NULL OR at_us >= from_us) AND (until_us IS NULL OR at_us < until_us)
            GROUP BY epoch, broker_id, replica_id""",
        **place,
    )
    for row in rows:
        if row["last"] is None:
            continue
        if row["high_watermark"] is not None and row["high_watermark"] >= 0:
            at_us, watermark = row["last"]["time"], row["high_watermark"]
            yield Mark(row["epoch"], at_us, WATERMARK, row["broker_id"], watermark, row["last"])
        is_over = seen.is_over(row["broker_id"], row["replica_id"], row["last"]["time"])
        offset_max = _end_at(acked, row["epoch"], row["carried_us"]) if is_over else None
        yield Mark(
            row["epoch"],
            row["last"]["time"],
            FETCHED,
            row["replica_id"],
            row["last"]["fetch_offset"],
            row["last"],
            leader=row["broker_id"],
            offset_max=offset_max,
        )


def _request_logs(reader: LakeReader, place: Mapping[str, Any], epochs: tuple[Tenure, ...]) -> RequestLogs:
    """How far the leaders' request logs go, and when each follower last fetched anything, as far as they tell."""
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


def _traced(reader: LakeReader, place: Mapping[str, Any]) -> set[int]:
    """Brokers that log each of their own appends as followers (T3): what they say nothing of, they did not append."""
    rows = reader.rows(
        f"SELECT DISTINCT broker_id FROM silver_appends WHERE {_OF_PARTITION} AND source = 'follower'", **place
    )
    return {row["broker_id"] for row in rows}


def _unseen(rows: Rows, fetched: list[Mark], lines: list[Mark], seen: RequestLogs, traced: set[int]) -> Iterator[Mark]:
    """Of followers whose fetches from a leader are in no line, though there may have been some."""
    for row in rows:
        follower, leader, epoch = row["broker_id"], row["leader"], row["leader_epoch"]
        follows = row["role"] in OWN_ROLES and leader is not None and leader >= 0 and leader != follower
        if epoch is None or not follows or follower in traced or seen.is_over(leader, follower, row["time"]):
            continue
        of_it = (mark for mark in fetched if (mark.kind, mark.epoch, mark.replica_id) == (FETCHED, epoch, follower))
        if not any(mark.time_us >= row["time"] for mark in of_it):
            # Whatever it fetched, it did until it was started anew, when it says where its log ends.
            restarts = (m.time_us for m in lines if m.kind == LOADED and m.replica_id == follower)
            until_us = min((time_us for time_us in restarts if time_us > row["time"]), default=_FOR_GOOD_US) - 1
            yield Mark(epoch, until_us, UNSEEN, follower, None, row, leader=leader)


def _end_at(acked: list[Acked], epoch: int, time_us: int | None) -> int | None:
    """Where a leader's log ended at most at a time: where it appended what it took up later."""
    later = [batch.start for batch in acked if batch.epoch == epoch and batch.row["dequeued"] > (time_us or 0)]
    return min(later, default=None)


def _of_lines(reader: LakeReader, place: Mapping[str, Any], leaderships: Rows) -> Iterator[Mark]:
    """What brokers log of their own log: loaded, truncated, the high watermark; and what leaders say of laggards."""
    rows = reader.rows(
        f"""SELECT broker_id, epoch_us(time) AS time, '{TRUNCATED}' AS kind, "offset" AS at, {_LINE}
            FROM silver_truncations WHERE {_OF_PARTITION} AND source IN ('log', 'fetcher') AND "offset" IS NOT NULL
            UNION ALL
            SELECT broker_id, epoch_us(time), '{LOADED}', log_end_offset, {_LINE}
            FROM silver_high_watermarks WHERE {_OF_PARTITION} AND source = 'loaded' AND log_end_offset IS NOT NULL
            UNION ALL
            SELECT broker_id, epoch_us(last.time), '{WATERMARK}', last.hw, last.file_id, last.byte_offset, last.line_no
            FROM (SELECT broker_id, max_by({{'time': time, 'hw': high_watermark, 'file_id': file_id,
                                            'byte_offset': byte_offset, 'line_no': line_no}}, time) AS last
                  FROM silver_high_watermarks
                  WHERE {_OF_PARTITION} AND high_watermark IS NOT NULL
                    AND source IN ('updated', 'set', 'follower', 'non_monotonic') GROUP BY broker_id)""",
        **place,
    )
    for row in rows:
        epoch = epoch_at(leaderships, row["broker_id"], row["time"])
        yield Mark(epoch, row["time"], row["kind"], row["broker_id"], row["at"], row)
    laggards = reader.rows(
        f"""SELECT broker_id, epoch_us(time) AS time, out.replica_id, out.end_offset AS at, {_LINE}
            FROM (SELECT *, unnest(out_of_sync) AS out FROM silver_isr_changes WHERE {_OF_PARTITION})
            WHERE out.end_offset >= 0""",
        **place,
    )
    for row in laggards:
        epoch = epoch_at(leaderships, row["broker_id"], row["time"])
        yield Mark(epoch, row["time"], FETCHED, row["replica_id"], row["at"], row, leader=row["broker_id"])


def _of_appends(acked: list[Acked]) -> Iterator[Mark]:
    """The end of each tenure's last acknowledged batch."""
    newest: dict[tuple[int, int], Acked] = {}
    for batch in acked:
        key = batch.epoch, batch.row["broker_id"]
        if key not in newest or batch.end > newest[key].end:
            newest[key] = batch
    for (epoch, broker_id), batch in newest.items():
        yield Mark(epoch, batch.row["time"], APPENDED, broker_id, batch.end, batch.row)


def _of_files(reader: LakeReader, place: Mapping[str, Any]) -> Iterator[Mark]:
    """Segments, epochs and high watermarks of data directories, of which no line tells when they were copied."""
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
        yield Mark(0, 0, STORED, row["broker_id"], row["at"], no_line, epochs=stored)


# ------------------------------------------------------------------ acknowledged


def _acked(reader: LakeReader, place: Mapping[str, Any], epochs: tuple[Tenure, ...]) -> list[Acked]:
    """Acknowledged batches, the newest first; one more than `ACKED_MAX` if there are more."""
    rows = reader.rows(
        f"""WITH answered AS (
              SELECT broker_id, acks, true AS is_sure, p.base_offset AS base, handled_time, dequeued_time, time,
                     client_id, connection, correlation_id, {_LINE}
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
    placed = [(tenure, row) for row in rows if (tenure := _tenure_of(epochs, row)) is not None]
    batches: list[Acked] = []
    next_base: dict[int, int] = {}
    for tenure, row in placed:
        following = next_base.get(tenure.epoch)
        # A retry is answered with the place of the batch that it repeats.
        start, end = row["base"], max(following or 0, row["base"] + 1)
        acks = ALL if row["acks"] == -1 else ONE
        batches.append(Acked(tenure.epoch, start, end, acks, row["is_sure"], following is not None, row))
        next_base[tenure.epoch] = start
    return batches


def _with_ends(acked: list[Acked], fetched: Iterable[Mark]) -> Iterator[Acked]:
    """Batches; the last one of an epoch ends where a follower that has it fetches on, for batches are copied whole."""
    reached: dict[int, int] = {}
    for mark in fetched:
        if mark.kind == FETCHED and mark.offset is not None:
            reached[mark.epoch] = max(reached.get(mark.epoch, 0), mark.offset)
    for batch in acked:
        end = reached.get(batch.epoch, 0)
        yield batch if batch.is_whole or end <= batch.start else batch._replace(end=end, is_whole=True)


def _unplaced(reader: LakeReader, place: Mapping[str, Any]) -> int:
    (row,) = reader.rows(
        """SELECT count(*) AS produces
           FROM (SELECT unnest(partitions) AS p FROM silver_produce_requests
                 WHERE cluster_id = $cluster AND time < $before AND acks = 1)
           WHERE p.topic = $topic AND p.partition = $partition AND p.base_offset IS NULL AND p.error_code IS NULL""",
        **place,
    )
    return int(row["produces"])


def _tenure_of(epochs: tuple[Tenure, ...], row: Row) -> Tenure | None:
    of_it = [tenure for tenure in epochs if tenure.holds(row["broker_id"], row["handled"])]
    return of_it[-1] if of_it else None


# -------------------------------------------------------------------- whole lives


def partition_rows(
    reader: LakeReader, cluster_id: str, topic: str, partition: int, since_us: int | None, until_us: int | None
) -> PartitionRows:
    """What tells a partition's life."""
    place = {"cluster": cluster_id, "topic": topic, "partition": partition}
    facts = partition_facts(reader, cluster_id, topic, partition, None)
    where = "cluster_id = $cluster AND topic = $topic AND partition = $partition"
    lines = reader.rows(
        f"""SELECT broker_id, epoch_us(time) AS time, {_LINE} FROM silver_isr_changes WHERE {where}
            UNION ALL SELECT broker_id, epoch_us(time), {_LINE} FROM silver_leader_and_isr
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


# ------------------------------------------------------------------------- lines


def lines_of(reader: LakeReader, rows: Iterable[Row]) -> Lines:
    """Texts and files of lines."""
    places = {(row["file_id"], row["byte_offset"]) for row in rows if row["file_id"] is not None}
    if not places:
        return Lines()
    # Bounds that a scan can skip row groups by; a join gives none.
    texts = reader.rows(
        """SELECT file_id, byte_offset, message FROM bronze_log_lines
           WHERE file_id IN (SELECT unnest($files)) AND byte_offset IN (SELECT unnest($starts))
             AND byte_offset BETWEEN $least AND $largest AND message IS NOT NULL""",
        files=sorted({file_id for file_id, _ in places}),
        starts=sorted({start for _, start in places}),
        least=min(start for _, start in places),
        largest=max(start for _, start in places),
    )
    files = reader.rows("SELECT file_id, path FROM bronze_log_files")
    return Lines(
        texts={
            (row["file_id"], row["byte_offset"]): row["message"]
            for row in texts
            if (row["file_id"], row["byte_offset"]) in places
        },
        paths={row["file_id"]: row["path"] for row in files},
    )
