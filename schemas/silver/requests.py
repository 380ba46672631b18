"""The request log."""

from __future__ import annotations

from highwater.schemas import columns as c
from highwater.schemas.silver.source import silver_table
from highwater.schemas.table import DOUBLE, INT, STRING, TIMESTAMP, column, required

REQUEST_HEADER = (
    required("api", STRING, "API name: PRODUCE, FETCH, ..."),
    column("api_version", INT, "API version"),
    c.CORRELATION_ID,
    c.CLIENT_ID,
    column("connection", STRING, "Connection: local address - remote address - index"),
    column("listener", STRING, "Listener name"),
    column("principal", STRING, "Principal"),
    required("arrival_time", TIMESTAMP, "Request read from the socket: line time - total_time_ms (an upper bound)"),
    required("dequeued_time", TIMESTAMP, "arrival + request_queue_time_ms"),
    required("handled_time", TIMESTAMP, "dequeued + local_time_ms"),
    required("completed_time", TIMESTAMP, "handled + remote_time_ms: the purgatory (or the handler) answered"),
    required("total_time_ms", DOUBLE, "totalTimeMs"),
    required("request_queue_time_ms", DOUBLE, "Waiting for a request handler"),
    required("local_time_ms", DOUBLE, "In the request handler"),
    required("remote_time_ms", DOUBLE, "Waiting in purgatory or for another broker"),
    required("throttle_time_ms", DOUBLE, "Throttled by a quota"),
    required("response_queue_time_ms", DOUBLE, "Waiting for a network thread"),
    required("send_time_ms", DOUBLE, "Sending the response"),
)

_PLACE = (
    column("topic", STRING, "Topic; null where only a topic id is known"),
    column("topic_id", STRING, "Topic id"),
    required("partition", INT, "Partition"),
)

PRODUCE_REQUESTS = silver_table("produce_requests")
FETCH_REQUESTS = silver_table("fetch_requests")
REQUESTS = silver_table("requests")
