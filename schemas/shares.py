"""Gold: what members of share groups fetched and acknowledged (KIP-932)."""

from __future__ import annotations

from schemas import columns as c
from schemas.table import (
    BOOLEAN,
    DOUBLE,
    INT,
    INTS,
    LONG,
    STRING,
    TableSpec,
    column,
    required,
    structs,
)

SHARE_OPERATIONS = TableSpec(
    layer="gold",
    name="share_operations",
    comment="One row per request of a member of a share group: what it was given and gave back, what it waited for, "
    "and when the rules let it be answered. The writes of the group's state are in gold.delayed_operations.",
    columns=(
        *c.OPERATION,
        required("api", STRING, "SHARE_FETCH, SHARE_ACKNOWLEDGE"),
        column("group_id", STRING, "Share group"),
        column("member_id", STRING, "Member"),
        *c.OPERATION_REQUEST,
        required("wait_ms", DOUBLE, "From handled to answered (remoteTimeMs)"),
        required("parked", BOOLEAN, "It waited"),
        column("min_bytes", INT, "minBytes of a fetch"),
        column("max_wait_ms", INT, "maxWaitMs of a fetch"),
        column("lock_timeout_ms", INT, "So long what was delivered is locked"),
        required("error_codes", INTS, "Distinct error codes answered but 0, ascending"),
        required(
            "cause",
            STRING,
            "records (new ones came below the high watermark, or the last stable offset), released (a member gave "
            "records back), lock_timeout (a member's lock on records ran out), state_written (the group's state had to "
            "be written first), share_lock (another fetch of the group had the partition: it was checked again "
            "when that was done, or when the high watermark moved), timer, at_once, error, "
            "unknown",
        ),
        column("closing_topic", STRING, "Topic of the partition whose records were available last"),
        column("closing_partition", INT, "Its index"),
        *c.PREDICTED,
        column("residual_ms", DOUBLE, "0 within the interval (widened by 1 ms), else the signed distance to it"),
        required("class", STRING, "explained, jitter, late, unobservable, as in gold.delayed_operations"),
        column(
            "class_reason", STRING, "Why, as there; share_lock_not_logged: another fetch may have had the partition"
        ),
        required("delivered", LONG, "Records that it was given"),
        required("redelivered", LONG, "Of them those that had been delivered before"),
        required("accepted", LONG, "Records that it acknowledges as processed"),
        required("released", LONG, "Records that it gives back, to be delivered again"),
        required("rejected", LONG, "Records that it refuses for good"),
        required("renewed", LONG, "Records whose lock it renews"),
        required("refused", LONG, "Records whose acknowledgement failed, as its lock had run out (121) or else"),
        required(
            "locks_expired",
            structs(
                column("member_id", STRING, "Member that had the records"),
                required("records", LONG, "How many of the delivered records its lock had run out for"),
            ),
            "Whose locks had run out on what was delivered again",
        ),
    ),
    feeds_changes=True,
    keys=("cluster_id", "broker_id", "operation_id"),
    bounded_by=("arrival_time",),
    ordered_by="arrival_time",
    checks={"class_known": "class IN ('explained', 'jitter', 'late', 'unobservable', 'contradicted')"},
    dated_by=("arrival_time",),
)

TABLES = (SHARE_OPERATIONS,)
