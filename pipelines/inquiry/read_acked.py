"""Reads what was acknowledged of a partition's records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pipelines.inquiry.answer import Row
from pipelines.inquiry.read_lines import LINE
from pipelines.inquiry.replica_logs import FETCHED, Mark, Tenure
from pipelines.inquiry.survivors import ALL, ONE, Acked
from pipelines.lake.reader import LakeReader

#: Acknowledged batches that are looked at: the newest ones.
ACKED_MAX = 100_000


def acked_batches(reader: LakeReader, place: Mapping[str, Any], epochs: tuple[Tenure, ...]) -> list[Acked]:
    """Acknowledged batches, the newest first; one more than `ACKED_MAX` if there are more."""
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


def with_ends(acked: list[Acked], fetched: Iterable[Mark]) -> Iterator[Acked]:
    """Batches; the last one of an epoch ends where a follower that has it fetches on, for batches are copied whole."""
    reached: dict[int, int] = {}
    for mark in fetched:
        if mark.kind == FETCHED and mark.offset is not None:
            reached[mark.epoch] = max(reached.get(mark.epoch, 0), mark.offset)
    for batch in acked:
        end = reached.get(batch.epoch, 0)
        yield batch if batch.is_whole or end <= batch.start else batch._replace(end=end, is_whole=True)


def unplaced(reader: LakeReader, place: Mapping[str, Any]) -> int:
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
