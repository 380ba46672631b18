"""Gold: what brokers logged of each check of their delayed produces (T3), and whether the rules agree with it.

As all gold rows, these hold no file ids and no offsets in files: the same log in other pieces gives the same rows.
"""

from __future__ import annotations

from schemas import columns as c
from schemas.table import BOOLEAN, INT, LONG, STRING, TIMESTAMP, TableSpec, column, required

PURGATORY_CHECKS = TableSpec(
    layer="gold",
    name="purgatory_checks",
    comment="One row per delayed produce and partition as its broker logged it (T3): whether its initial status, its "
    "checks, its expiry and its end are what the purgatory's rules make of the lines before them.",
    columns=(
        *(c.CLUSTER, c.TOPIC, c.PARTITION),
        required("broker_id", INT, "Broker whose purgatory it waited in; all times are of its clock"),
        required("required_offset", LONG, "requiredOffset: last offset of the batch + 1; what it is known by in a log"),
        required("created_time", TIMESTAMP, "Its first line"),
        column("start_offset", LONG, "startOffset; null where only progress lines tell of it (4.0 and later)"),
        required("checks", INT, "Checks that the broker logged"),
        required("done", BOOLEAN, "It was committed, failed or expired by the end of the log"),
        column(
            "agrees",
            BOOLEAN,
            "Every line agrees with the rules; null: cannot be said, the log ends or begins too late",
        ),
        column(
            "reason",
            STRING,
            "First disagreement. status: not what the checks before it make of it; checked_when_done, "
            "expired_when_done: it waits although it was settled; no_trigger: checked though nothing had happened; "
            "not_checked: the high watermark passed it and nobody looked; awaited_when_committed: checked as not "
            "replicated although the high watermark had passed it",
        ),
        column("disagreed_time", TIMESTAMP, "Line of the first disagreement"),
        column("predicted_pending", BOOLEAN, "acksPending by the rules, where the disagreement is about a status"),
        column("predicted_error_code", INT, "Error by the rules; 7 (REQUEST_TIMED_OUT) as long as it is pending"),
        column("logged_pending", BOOLEAN, "acksPending as logged"),
        column("logged_error_code", INT, "Error as logged"),
    ),
    keys=("cluster_id", "topic", "partition", "broker_id", "required_offset", "created_time"),
    checks={
        "reason_known": "reason IS NULL OR reason IN ('status', 'checked_when_done', 'no_trigger', 'not_checked', "
        "'expired_when_done', 'awaited_when_committed')",
        "disagreement_says_why": "CASE WHEN reason IS NULL THEN coalesce(agrees, true) ELSE "
        "NOT coalesce(agrees, true) END",
    },
    dated_by=("created_time",),
)

TABLES = (PURGATORY_CHECKS,)
