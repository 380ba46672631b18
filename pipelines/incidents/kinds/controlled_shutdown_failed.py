"""A broker asked the controller to move its leaders, was refused or not answered, and stopped without."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipelines.incidents.facts import Facts, Row, node, place
from pipelines.incidents.incident import INFO, MAJOR, MINOR, Incident, Severity
from pipelines.incidents.kind import Kind
from pipelines.incidents.kinds.broker_stopped import shutdown_times
from pipelines.incidents.signatures import Signature
from pipelines.incidents.words import partitions, times, when

_RETRY = Signature(
    "controlled_shutdown_retried",
    ("KafkaServer",),
    r"(?:\[[^\]]*\]:?,? )?Retrying controlled shutdown after the previous attempt failed\.\.\.",
    "kafka.server.KafkaServer.controlledShutdown",
)
_GIVEN_UP = Signature(
    "controlled_shutdown_given_up",
    ("KafkaServer", "BrokerServer"),
    r"(?:\[[^\]]*\]:?,? )?(?:Proceeding to do an unclean shutdown as all the controlled shutdown attempts failed"
    r"|Timed out waiting for the controller to approve controlled shutdown)",
    "kafka.server.KafkaServer.controlledShutdown, BrokerServer.shutdown in KRaft",
)
_REMAINING = Signature(
    "partitions_left_to_move",
    ("KafkaServer",),
    r"(?:\[[^\]]*\]:?,? )?Remaining partitions to move: (?P<partition>\S+)",
    "kafka.server.KafkaServer.controlledShutdown",
    ("INFO",),
)
_LAST_REPLICA = re.compile(
    r"No other replicas in ISR (?P<isr>[\d,]+) for (?P<partition>\S+) besides shutting down brokers"
)


def detect(facts: Facts) -> Iterable[Incident]:
    """Shutdowns that were asked for again, or done without the controller."""
    retried = facts.remarked(_RETRY.name)
    given_up = facts.remarked(_GIVEN_UP.name)
    for row in given_up:
        before = [other for other in retried if _is_before(other, row)]
        yield _failed(facts, row, before, MAJOR)
    for row in retried:
        if not any(_is_before(row, other) for other in given_up):
            yield _failed(facts, row, [row], MINOR)


def _is_before(row: Row, other: Row) -> bool:
    return node(row) == node(other) and 0 <= other["first_time"] - row["first_time"] <= 300_000_000


def _failed(facts: Facts, row: Row, retries: list[Row], severity: Severity) -> Incident:
    broker_id = row["broker_id"]
    start = min([row["first_time"], *(other["first_time"] for other in retries)])
    gave_up = " It then stopped without the controller." if severity == MAJOR else " It then went through."
    # With a whole cluster the last brokers have nobody to hand over to.
    if start >= shutdown_times(facts).get(row["cluster_id"], start + 1):
        severity = INFO
    end = row["last_time"]
    attempts = sum(other["line_count"] for other in retries)
    left = [
        other for other in facts.remarked(_REMAINING.name) if node(other) == node(row) and _is_within(other, start, end)
    ]
    names = frozenset(name for other in left for part in other["partitions"] or () for name in part.split(","))
    why = ""
    if names:
        why = f": {partitions(names)} could not be moved, for want of another replica in the ISR"
    return Incident(
        kind=KIND.name,
        severity=severity,
        cluster_id=row["cluster_id"],
        start_us=start,
        end_us=end,
        broker_ids=(broker_id,),
        partitions=names,
        sentence=(
            f"The controlled shutdown of broker {broker_id} failed {times(max(attempts, 1))} {when(start, end)}{why}."
            f"{gave_up}"
        ),
        advice=(
            "Restart a broker only when all partitions are fully replicated (UnderReplicatedPartitions is 0); "
            "partitions with one replica have no leader while it is away."
            if severity == MAJOR
            else ""
        ),
        figures={"attempts": max(attempts, 1), "partitions": len(names)},
        places=(*map(place, left[:2]), *map(place, retries[:3]), place(row)),
        weight=100.0 + len(names),
    )


def _is_within(row: Row, start: int, end: int) -> bool:
    return bool(start - 60_000_000 <= row["first_time"] <= end + 1_000_000)


KIND = Kind(
    name="controlled_shutdown_failed",
    meaning="A broker could not hand its leaderships over before it stopped.",
    source="kafka.server.KafkaServer.controlledShutdown, KafkaController.doControlledShutdown; BrokerServer.shutdown",
    detect=detect,
    signatures=(_RETRY, _GIVEN_UP, _REMAINING),
    causes=("broker_stopped",),
)
