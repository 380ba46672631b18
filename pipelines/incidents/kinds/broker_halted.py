"""A broker ended itself: it logs at FATAL why it cannot go on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pipelines.incidents.facts import Facts, Node, Row, node, place
from pipelines.incidents.incident import CRITICAL, Bug, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.known import bug_of
from pipelines.incidents.signatures import Signature
from pipelines.incidents.words import clock, number

_ENDS = ("FATAL", "ERROR")
TRUNCATION = Signature(
    "truncation_not_allowed",
    ("ReplicaFetcherThread",),
    r"(?:\[[^\]]*\]:?,? )?(?:Halting|Exiting) because log truncation is not allowed for (?:topic|partition) "
    r"(?P<key>\S+?),? .*",
    "kafka.server.ReplicaFetcherThread.handleOffsetOutOfRange, 0.8 to 1.1: unclean.leader.election.enable=false",
    _ENDS,
)
DIRECTORIES = Signature(
    "no_log_directory_left",
    ("LogManager", "ReplicaManager"),
    r"(?:\[[^\]]*\]:? )?(?:Shutdown broker because .*|Halting broker because dir .* is offline)",
    "kafka.log.LogManager.handleLogDirFailure, ReplicaManager.handleLogDirFailure, 1.0 on",
    _ENDS,
)
DISK = Signature(
    "io_error_halt",
    ("ReplicaManager", "OffsetCheckpoint", "CheckpointFile"),
    r"(?:\[[^\]]*\]:? )?Halting (?:due to unrecoverable I/O error|writes to) .*",
    "kafka.server.ReplicaManager.appendToLocalLog, OffsetCheckpoint.write, up to 0.11",
    _ENDS,
)
STARTUP = Signature(
    "fatal_at_start",
    ("KafkaServer", "KafkaServerStartable", "BrokerServer", "ControllerServer", "Kafka$", "Kafka", "KafkaRaftServer"),
    r"(?:\[[^\]]*\]:? )?(?:Fatal error during (?:KafkaServer|KafkaServerStable|broker|controller) startup\. Prepare to "
    r"shutdown|Exiting Kafka(?: due to fatal exception.*)?\.?)",
    "kafka.server.KafkaServer.startup, BrokerServer.startup, kafka.Kafka.main",
    _ENDS,
)
FAULT = Signature(
    "fatal_fault",
    ("ProcessTerminatingFaultHandler", "ProcessExitingFaultHandler"),
    r"Encountered fatal fault: (?P<key>.*)",
    "org.apache.kafka.server.fault.ProcessTerminatingFaultHandler.handleFault, KRaft, 3.3 on",
    _ENDS,
)
#: Lines of one end follow each other within this, microseconds.
_TOGETHER_US = 10_000_000
_IN_DIRECTORIES = re.compile(r"all log dirs in (?P<directories>.+?) have failed")
_OFFSETS = re.compile(
    r"for (?:topic|partition) (?P<partition>\S+?),?\s.*?latest offset (?P<leader>\d+) is less than "
    r"replica(?: \d+)?'s latest offset (?P<replica>\d+)",
    re.DOTALL,
)


def detect(facts: Facts) -> Iterable[Incident]:
    """The first of the lines with which a broker ends; those that follow it within seconds say the same."""
    rows = facts.remarked(*(signature.name for signature in KIND.signatures))
    last: dict[Node, int] = {}
    for row in sorted((row for row in rows if row["broker_id"] is not None), key=lambda row: row["first_time"]):
        if row["first_time"] - last.get(node(row), -_TOGETHER_US) >= _TOGETHER_US:
            same = [other for other in rows if node(other) == node(row)]
            yield _halted(facts, row, [other for other in same if _is_with(row, other)])
        last[node(row)] = row["last_time"]


def _is_with(row: Row, other: Row) -> bool:
    return bool(0 <= other["first_time"] - row["first_time"] < _TOGETHER_US)


def _halted(facts: Facts, row: Row, lines: Sequence[Row]) -> Incident:
    broker_id, time = row["broker_id"], row["first_time"]
    what, advice, partitions, figures, bug = _words(facts, row)
    return Incident(
        kind=KIND.name,
        severity=CRITICAL,
        cluster_id=row["cluster_id"],
        start_us=time,
        end_us=_next_start(facts, row),
        broker_ids=(broker_id,),
        partitions=partitions,
        sentence=f"Broker {broker_id} ended itself at {clock(time)}: {what}",
        advice=advice,
        figures=figures,
        places=tuple(map(place, lines)),
        known_bug=bug,
        weight=10_000.0,
    )


def _words(facts: Facts, row: Row) -> tuple[str, str, frozenset[str], dict[str, float], Bug | None]:
    broker_id, message = row["broker_id"], row["message"]
    if row["signature"] == TRUNCATION.name:
        offsets = _OFFSETS.search(message)
        bug = bug_of("KAFKA-3410", facts.version(node(row), row["first_time"]))
        if offsets is None:
            partition = row["key"]
            return (
                f"its log of {partition} ends beyond the leader's, and unclean leader election is off.",
                f"Do not wipe broker {broker_id} before you know whether its further records are needed.",
                frozenset({partition}),
                {},
                bug,
            )
        partition, leader, replica = offsets["partition"], int(offsets["leader"]), int(offsets["replica"])
        records = number(replica - leader, "record")
        return (
            f"its log of {partition} ends at {replica}, the leader's at {leader}, and unclean leader election is off, "
            f"so that it may not truncate. Its leader does not have these {records}; no line says whether they were "
            "committed.",
            f"Do not wipe broker {broker_id} before you decide: copy the partition's folder, dump offsets {leader} to "
            f"{replica - 1}, then either elect it, or give its records up and delete that folder.",
            frozenset({partition}),
            {"records": replica - leader, "leader_end_offset": leader, "replica_end_offset": replica},
            bug,
        )
    reason = _reason(message)
    if row["signature"] == DIRECTORIES.name:
        directories = _IN_DIRECTORIES.search(message)
        return (
            f"all its log directories have failed ({directories['directories']})." if directories else f"{reason}.",
            "Free or repair the disk, then start the broker; its partitions come back with it.",
            frozenset(),
            {},
            None,
        )
    if row["signature"] == DISK.name:
        return f"{reason}.", "Look at the disk of its log directories.", frozenset(), {}, None
    if row["signature"] == FAULT.name:
        return (
            f"{reason}.",
            "Read the stack trace of this line; a metadata record that cannot be applied returns at each start.",
            frozenset(),
            {},
            None,
        )
    return (
        f"it could not start: {reason}.",
        "Mend what the exception names, then start it again.",
        frozenset(),
        {},
        None,
    )


def _reason(message: str) -> str:
    """The line in words, with the exception below it."""
    first, *rest = message.split("\n")
    text = re.sub(r"^\[[^\]]*\]:? ", "", first)
    exceptions = [line for line in rest if re.match(r"(?:Caused by: )?(?:[a-z_]\w*\.)+[A-Z]\w*", line)]
    cause = exceptions[-1].removeprefix("Caused by: ") if exceptions else ""
    name, _, said = cause.partition(": ")
    cause = f"{name.rpartition('.')[2]}: {said}" if said else name.rpartition(".")[2]
    return (f"{text.rstrip('. ')} ({cause})" if cause else text.rstrip(". "))[:300]


def _next_start(facts: Facts, row: Row) -> int | None:
    starts = [
        other["time"]
        for other in facts.lifecycle
        if node(other) == node(row) and other["event"] == "started" and other["time"] > row["last_time"]
    ]
    return min(starts, default=None)


KIND = Kind(
    name="broker_halted",
    meaning="A broker ended its own process, and said why at FATAL.",
    source="kafka.utils.Exit.halt and exit; each line's source is with its signature",
    detect=detect,
    signatures=(TRUNCATION, DIRECTORIES, DISK, STARTUP, FAULT),
    causes=("log_directory_failed",),
)
