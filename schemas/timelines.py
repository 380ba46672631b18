"""Gold: timelines, one row per state, with the bounds of each change."""

from __future__ import annotations

from schemas import columns as c
from schemas.table import INT, LONG, STRING, STRINGS, TIMESTAMP, TableSpec, column, required

#: Bounds of the begin and the end of a state.
BOUNDS = (
    column(
        "begin_after_time",
        TIMESTAMP,
        "Last instant at which the state before certainly still held; null: before the logs",
    ),
    column("begin_by_time", TIMESTAMP, "First instant at which the state is certain; null: before the logs"),
    column(
        "end_after_time",
        TIMESTAMP,
        "Last instant at which the state certainly still held; null: to the end of the logs",
    ),
    column("end_by_time", TIMESTAMP, "First instant at which the next state is certain; null: to the end of the logs"),
)

BROKER_TIMELINE = TableSpec(
    layer="gold",
    name="broker_timeline",
    comment="One row per state of the process of a broker or controller, from the lines of all logs. Times are on the "
    "clock of the node whose line shows them.",
    columns=(
        c.CLUSTER,
        required("broker_id", INT, "Broker or controller; negative: a source of logs whose broker is unknown"),
        required("position", INT, "Number of the state among those of the node, from 0"),
        required(
            "state",
            STRING,
            "unknown: no line shows the process; starting; up; silent: it did not answer, or wrote no line; stopping; "
            "down: the process had ended",
        ),
        *BOUNDS,
        required(
            "reason",
            STRING,
            "Why the state began. logs_begin, no_logs: nothing before is here; booted: first line of a process; "
            "started: it logged that it started; shutdown: orderly end; died: end without a shutdown; halted: it "
            "logged why it ended itself; ended: an excerpt does not show which; froze: the process wrote nothing, and "
            "then wrote again; fenced, removed: the controller found it gone, in KRaft or ZooKeeper; session_expired: "
            "its ZooKeeper session expired; returned: it wrote or registered again; logs_end: its lines end early",
        ),
        required(
            "witnesses",
            STRINGS,
            "Sources that show it: own (its lines), controller, peers, session, container (another program's line)",
        ),
        column("file_id", STRING, "bronze.log_files.file_id of the first line that shows it; null: no line alone does"),
        column("byte_offset", LONG, "Offset of the first byte of that line in the decompressed file"),
    ),
    keys=("cluster_id", "broker_id", "position"),
    checks={
        "state_known": "state IN ('unknown', 'starting', 'up', 'silent', 'stopping', 'down')",
        "reason_known": "reason IN ('logs_begin', 'no_logs', 'booted', 'started', 'shutdown', 'died', 'halted', "
        "'ended', 'froze', 'fenced', 'removed', 'session_expired', 'returned', 'logs_end')",
    },
    dated_by=("end_by_time",),
)

TABLES = (BROKER_TIMELINE,)
