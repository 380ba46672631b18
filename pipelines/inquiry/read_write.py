"""Reads a client's writes of a time, and what is known of the partitions that they went to."""

from __future__ import annotations

from pipelines.base.values import iso_utc
from pipelines.inquiry.read_clusters import require_one
from pipelines.inquiry.read_lines import FAR_US, OF_CLUSTER, instant
from pipelines.inquiry.read_partition import partition_facts
from pipelines.inquiry.write import ABOUT_RECORDS, WRITES_MAX, WriteRows
from pipelines.lake.reader import LakeReader


def write_rows(
    reader: LakeReader,
    client_id: str | None,
    topic: str | None,
    partition: int | None,
    since_us: int | None,
    until_us: int | None,
    cluster_id: str | None,
) -> WriteRows:
    """Writes that were under way between two times, by any of client, topic and partition.

    Raises:
        InputError: they are of several clusters.
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
        asked=_asked(client_id, topic, partition, since_us, until_us),
        writes=writes,
        writes_count=counted["writes"],
        facts={place: partition_facts(reader, *place, None) for place in places},
        findings=findings,
        searched=searched,
    )


def _asked(
    client_id: str | None, topic: str | None, partition: int | None, since_us: int | None, until_us: int | None
) -> str:
    place = "any topic" if topic is None else topic if partition is None else f"{topic}-{partition}"
    times = ["" if time is None else iso_utc(time) for time in (since_us, until_us)]
    when = "" if not any(times) else f" from {times[0] or 'the first line'} until {times[1] or 'the last line'}"
    return f"writes of {f'client {client_id}' if client_id else 'any client'} to {place}{when}"
