"""The active controller gave its leadership up again and again."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipelines.incidents.facts import Facts, Row, place
from pipelines.incidents.incident import MAJOR, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.kinds.broker_stopped import shutdown_times
from pipelines.incidents.signatures import Signature
from pipelines.incidents.words import lasting, span, times

_RENOUNCED = Signature(
    "controller_renounced",
    ("QuorumController",),
    r"\[[^\]]*\] (?:Renouncing the leadership (?:at|due to) .*|.*\bRenouncing leadership and reverting to .*)",
    "org.apache.kafka.controller.QuorumController.handleEventException, QuorumMetaLogListener.handleLeaderChange",
    ("WARN", "ERROR", "INFO"),
    gap_s=600,
)
_WAITED = Signature(
    "controller_event_failed",
    ("QuorumController",),
    r"\[[^\]]*\] \w+: (?:event )?failed with NotControllerException in \d{7,} (?:us|microseconds).*",
    "org.apache.kafka.controller.QuorumController.handleEventException: seven digits are a second or more",
    ("INFO",),
    gap_s=600,
)
_EPOCH = re.compile(r"at (?:old)?[Ee]poch (\d+)")
_US = re.compile(r"in (\d+) (?:us|microseconds)")


def detect(facts: Facts) -> Iterable[Incident]:
    """Two or more within ten minutes of each other, but for those of an orderly end."""
    ends = shutdown_times(facts)
    for row in facts.remarked(_RENOUNCED.name):
        if row["line_count"] < 2 or row["first_time"] >= ends.get(row["cluster_id"], row["first_time"] + 1):
            continue
        waits = [
            int(match[1])
            for other in facts.remarked(_WAITED.name)
            if other["broker_id"] == row["broker_id"] and _is_near(other, row)
            for match in _US.finditer(other["message"])
        ]
        yield _renounced(row, max(waits, default=0))


def _is_near(row: Row, other: Row) -> bool:
    return bool(
        row["first_time"] <= other["last_time"] + 1_000_000 and row["last_time"] >= other["first_time"] - 1_000_000
    )


def _renounced(row: Row, waited_us: int) -> Incident:
    epochs = [match[1] for text in (row["message"], row["last_message"]) if (match := _EPOCH.search(text))]
    of_epochs = f" (epochs {epochs[0]} to {epochs[-1]})" if len(set(epochs)) > 1 else ""
    waited = f" A write to the metadata log had waited for {lasting(waited_us)}." if waited_us else ""
    return Incident(
        kind=KIND.name,
        severity=MAJOR,
        cluster_id=row["cluster_id"],
        start_us=row["first_time"],
        end_us=row["last_time"],
        broker_ids=(row["broker_id"],) if row["broker_id"] is not None else (),
        sentence=(
            f"The active controller (node {row['broker_id']}) renounced {times(row['line_count'])} "
            f"{span(row['first_time'], row['last_time'])}{of_epochs}.{waited}"
        ),
        advice=(
            "Look at the disk and the network between the controllers: the leader of the quorum lost its majority each "
            "time (controller.quorum.fetch.timeout.ms), and no metadata changed meanwhile."
        ),
        figures={"times": row["line_count"], "waited_s": waited_us / 1e6},
        places=(place(row),),
        weight=100.0 * row["line_count"],
    )


KIND = Kind(
    name="controller_renounced",
    meaning="The active controller of KRaft renounced its leadership more than once within minutes.",
    source="org.apache.kafka.controller.QuorumController.renounce",
    detect=detect,
    signatures=(_RENOUNCED, _WAITED),
    causes=("broker_stalled",),
)
