"""Columns that several tables have."""

from __future__ import annotations

from highwater.schemas.table import DOUBLE, INT, STRING, TIMESTAMP, column, required

CLUSTER = required("cluster_id", STRING, "Cluster, 'unknown' where no line says it")
TOPIC = required("topic", STRING, "Topic")
PARTITION = required("partition", INT, "Partition index")
LEADER_EPOCH = column("leader_epoch", INT, "Leader epoch")
DETAIL = column("detail", STRING, "As logged")
CLIENT_ID = column("client_id", STRING, "Client id")
CORRELATION_ID = column("correlation_id", INT, "Correlation id")
CONNECTION = column("connection", STRING, "Connection")
ARRIVAL = required("arrival_time", TIMESTAMP, "Request read from the socket (an upper bound)")
#: Whose lines are counted together.
COUNTED = (
    required("kind", STRING, "Kind of file"),
    column("logger", STRING, "Logger"),
    column("level", STRING, "Level"),
)
#: A line that is shown: when it was written, by whom, and in which file.
SHOWN = (
    column("time", TIMESTAMP, "Time of the line"),
    column("broker_id", INT, "Broker that wrote it"),
    required("file", STRING, "Path of the file as it was found"),
)
#: An operation, by its place and its id.
OPERATION = (
    CLUSTER,
    required("broker_id", INT, "Broker that led and answered; -1 where nothing tells"),
    ARRIVAL,
    required("operation_id", STRING, "MD5 of cluster, broker, connection, correlation id and line time"),
)
#: When the rules let an operation be answered.
PREDICTED = (
    column("lowest_time", TIMESTAMP, "Predicted completion: not before; null where nothing can be predicted"),
    column("highest_time", TIMESTAMP, "Predicted completion: not after"),
    column("interval_width_ms", DOUBLE, "highest - lowest"),
)
