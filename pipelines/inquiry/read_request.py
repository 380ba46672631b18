"""Reads one request: by the id that the report gives, or by broker, correlation id and connection."""

from __future__ import annotations

from typing import Any

from pipelines.inquiry.read_lines import FAR_US, instant
from pipelines.inquiry.request import RequestRows
from pipelines.lake.reader import LakeReader, Rows
from pipelines.report.cluster.stories import AFTER_US, BEFORE_US

#: Requests that an ambiguous question lists.
CANDIDATES_MAX = 20

_KEY = "cluster_id = $cluster AND broker_id = $broker AND correlation_id = $correlation"
_SAME = f"{_KEY} AND connection IS NOT DISTINCT FROM $connection"


def by_id(reader: LakeReader, request_id: str) -> Rows:
    """Keys of operations whose id begins so."""
    return reader.rows(
        f"""SELECT cluster_id, broker_id, connection, correlation_id, epoch_us(line_time) AS line_time, api, client_id,
                   operation_id
            FROM gold_delayed_operations WHERE starts_with(operation_id, $id) ORDER BY line_time
            LIMIT {CANDIDATES_MAX + 1}""",
        id=request_id,
    )


def by_number(
    reader: LakeReader,
    broker_id: int,
    correlation_id: int,
    connection: str | None,
    since_us: int | None,
    until_us: int | None,
    cluster_id: str | None,
) -> Rows:
    """Keys of requests of a correlation id to a broker; a connection may be given by any part of its name."""
    return reader.rows(
        f"""SELECT cluster_id, broker_id, connection, correlation_id, epoch_us(line_time) AS line_time, api, client_id
            FROM gold_request_phases
            WHERE broker_id = $broker AND correlation_id = $correlation
              AND ($connection IS NULL OR contains(connection, $connection))
              AND ($cluster IS NULL OR cluster_id = $cluster)
              AND line_time >= $since AND arrival_time < $until
            ORDER BY line_time LIMIT {CANDIDATES_MAX + 1}""",
        broker=broker_id,
        correlation=correlation_id,
        connection=connection,
        cluster=cluster_id,
        since=instant(since_us or 0),
        until=instant(until_us if until_us is not None else FAR_US),
    )


def request_rows(reader: LakeReader, key: dict[str, Any]) -> RequestRows:
    """The rows of one of these."""
    parameters = {
        "cluster": key["cluster_id"],
        "broker": key["broker_id"],
        "correlation": key["correlation_id"],
        "connection": key["connection"],
        "line_time": instant(key["line_time"]),
    }
    (phases, *_) = reader.rows(
        f"SELECT * FROM gold_request_phases WHERE {_SAME} AND line_time = $line_time", **parameters
    )
    operations = reader.rows(
        f"SELECT * FROM gold_delayed_operations WHERE {_SAME} AND line_time = $line_time", **parameters
    )
    tables = {"PRODUCE": "silver_produce_requests", "FETCH": "silver_fetch_requests"}
    lines = reader.rows(
        f"""SELECT file_id, byte_offset, line_no FROM {tables.get(phases["api"], "silver_requests")}
            WHERE {_SAME} AND time = $line_time""",
        **parameters,
    )
    operation = operations[0] if operations else None
    return RequestRows(phases, operation, lines[0] if lines else None, _fetches(reader, operation))


def _fetches(reader: LakeReader, operation: dict[str, Any] | None) -> Rows:
    if operation is None or operation["operation"] != "produce" or operation["closing_topic"] is None:
        return []
    return reader.rows(
        """SELECT time, broker_id, topic, partition, replica_id, fetch_offset, dequeued_time, handled_time,
                  completed_time, response_bytes, file_id, byte_offset, line_no
           FROM silver_replica_fetches
           WHERE cluster_id = $cluster AND broker_id = $broker AND topic = $topic AND partition = $partition
             AND source = 'request' AND dequeued_time BETWEEN $since AND $until""",
        cluster=operation["cluster_id"],
        broker=operation["broker_id"],
        topic=operation["closing_topic"],
        partition=operation["closing_partition"],
        since=instant(operation["handled_time"] - BEFORE_US),
        until=instant(operation["completed_time"] + AFTER_US),
    )
