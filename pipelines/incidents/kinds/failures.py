"""What a broker cannot go on without: disks, memory, files, remote storage; and brokers that ended themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pipelines.incidents.advice import is_open
from pipelines.incidents.episodes import Episode, episodes, grouped
from pipelines.incidents.facts import Facts, Node, Row, node, place
from pipelines.incidents.incident import CRITICAL, INFO, Bug, LoggedIncident, Remedy, bug_of
from pipelines.incidents.kind import Signature, kind
from pipelines.incidents.words import clock, number, partitions, sentence

_ENDS = ("FATAL", "ERROR")
_TRUNCATION = Signature(
    "truncation_not_allowed",
    ("ReplicaFetcherThread",),
    r"(?:\[[^\]]*\]:?,? )?(?:Halting|Exiting) because log truncation is not allowed for (?:topic|partition) "
    r"(?P<key>\S+?),? .*",
    "kafka.server.ReplicaFetcherThread.handleOffsetOutOfRange, 0.8 to 1.1: unclean.leader.election.enable=false",
    _ENDS,
)
_DIRECTORIES = Signature(
    "no_log_directory_left",
    ("LogManager", "ReplicaManager"),
    r"(?:\[[^\]]*\]:? )?(?:Shutdown broker because .*|Halting broker because dir .* is offline)",
    "kafka.log.LogManager.handleLogDirFailure, ReplicaManager.handleLogDirFailure, 1.0 on",
    _ENDS,
)
_DISK = Signature(
    "io_error_halt",
    ("ReplicaManager", "OffsetCheckpoint", "CheckpointFile"),
    r"(?:\[[^\]]*\]:? )?Halting (?:due to unrecoverable I/O error|writes to) .*",
    "kafka.server.ReplicaManager.appendToLocalLog, OffsetCheckpoint.write, up to 0.11",
    _ENDS,
)
_STARTUP = Signature(
    "fatal_at_start",
    ("KafkaServer", "KafkaServerStartable", "BrokerServer", "ControllerServer", "Kafka$", "Kafka", "KafkaRaftServer"),
    r"(?:\[[^\]]*\]:? )?(?:Fatal error during (?:KafkaServer|KafkaServerStable|broker|controller) startup\. Prepare to "
    r"shutdown|Exiting Kafka(?: due to fatal exception.*)?\.?)",
    "kafka.server.KafkaServer.startup, BrokerServer.startup, kafka.Kafka.main",
    _ENDS,
)
_FAULT = Signature(
    "fatal_fault",
    ("ProcessTerminatingFaultHandler", "ProcessExitingFaultHandler"),
    r"Encountered fatal fault: (?P<key>.*)",
    "org.apache.kafka.server.fault.ProcessTerminatingFaultHandler.handleFault, KRaft, 3.3 on",
    _ENDS,
)
_FULL = Signature(
    "no_space_left",
    (),
    r"^(?:Caused by: )?java\.io\.[\w.]+: (?:.{0,300} \()?(?:No space left on device|There is not enough space)",
    "errno ENOSPC, in the exception of whichever call met it",
    is_whole=True,
)
_IO = Signature(
    "input_output_error",
    (),
    r"^(?:Caused by: )?java\.io\.[\w.]+: (?:.{0,300} \()?(?:Input/output error|Read-only file system|"
    r"Stale file handle)",
    "errno EIO, EROFS, ESTALE, in the exception of whichever call met it",
    is_whole=True,
)
_SAID = Signature(
    "log_directory_taken_off_line",
    ("ReplicaManager", "LogManager"),
    r"(?:\[[^\]]*\]:? )?(?:Stopping serving (?:replicas|logs) in dir .*|Stopped serving (?:replicas|logs) in dir .*"
    r"|Broker \d+ stopped fetcher for partitions .* because they are in the failed log director.*)",
    "kafka.server.ReplicaManager.handleLogDirFailure, kafka.log.LogManager.handleLogDirFailure: rows of lifecycle",
)
_RENAME = Signature(
    "rename_failed_on_windows",
    (),
    r"^(?:Caused by: )?java\.nio\.file\.(?:AccessDenied|FileSystem)Exception: [A-Z]:\\.* -> [A-Z]:\\.*",
    "java.nio.file.Files.move of a folder whose files are mapped, Windows only; KAFKA-1194",
    is_whole=True,
)
_NO_MEMORY = Signature(
    "out_of_memory",
    (),
    r"^(?:Caused by: )?java\.lang\.OutOfMemoryError(?:: (?P<key>[\w .:'-]{1,80}))?",
    "java.lang.OutOfMemoryError as the first line, or the cause, of a stack trace",
    is_whole=True,
)
_NO_FILES = Signature(
    "too_many_open_files",
    (),
    r"^(?:Caused by: )?(?:java\.[\w.]+(?:Exception|Error): )(?:.{0,300} \()?Too many open files",
    "errno EMFILE, in the exception of whichever call met it",
    is_whole=True,
)
_DAMAGED = Signature(
    "index_damaged",
    ("Log", "LogLoader", "LogSegment", "UnifiedLog", "MergedLog"),
    r"(?:\[[^\]]*\]:? )?(?:Found a corrupted index file.*|Could not find offset index file corresponding to log file .*"
    r"|Found an orphaned index file.*)",
    "kafka.log.LogLoader.loadSegmentFiles, Log.loadSegmentFiles before 3.0",
)
TORN = Signature(
    "segment_torn",
    ("Log", "LogLoader", "LogSegment", "UnifiedLog", "MergedLog"),
    r"(?:\[[^\]]*\]:? )?(?:Found invalid (?:messages|offset|log).*|Corruption found in segment .*)",
    "kafka.log.LogSegment.recover, LogLoader.recoverLog; a process that is killed leaves whole batches to the kernel",
)
#: Lines of one end follow each other within this, microseconds.
_END_US = 10_000_000
#: Lines of one failure of a directory follow each other within this, microseconds.
_FAILURE_US = 30_000_000
_IN_DIRECTORIES = re.compile(r"all log dirs in (?P<directories>(?:(?!all log dirs in ).)+?) have failed")
_OFFSETS = re.compile(
    r"for (?:topic|partition) (?P<partition>\S+?),?\s(?:(?!for (?:topic|partition) ).)*?latest offset (?P<leader>\d+) "
    r"is less than replica(?: \d+)?'s latest offset (?P<replica>\d+)",
    re.DOTALL,
)
_DIRECTORY = re.compile(r"\bin dir (?P<dir>\S+)|log dir(?:ectory|s in)? (?P<other>/\S+|[A-Z]:\\\S+)")
_WHERE = re.compile(r"(?:appending records to|renaming dir for|flushing log for) (?P<partition>\S+) in dir ")
_STOPPED = re.compile(r"stopped fetcher for partitions (?P<partitions>\S*) and stopped moving")
#: What a broker that ended itself says, and what to do: by the signature of its line, with the line's ``reason``.
_ENDED = {
    _DIRECTORIES.name: (
        "{reason}.",
        "Free or repair the disk, then start the broker; its partitions come back with it.",
    ),
    _DISK.name: ("{reason}.", "Look at the disk of its log directories."),
    _FAULT.name: (
        "{reason}.",
        "Read the stack trace of this line; a metadata record that cannot be applied returns at each start.",
    ),
    _STARTUP.name: ("it could not start: {reason}.", "Mend what the exception names, then start it again."),
}
#: Why a log directory failed, and what to do, by the signature of the error beside; the first that is there counts.
_WHY = {
    _FULL.name: (": it is full (No space left on device)", "Free space on that disk, then restart the broker."),
    _RENAME.name: (
        ": Windows does not rename the folder of a partition whose files are open (AccessDeniedException)",
        "Run brokers on Linux, also in tests (a container, WSL 2): no release of Kafka mends this on Windows.",
    ),
    _IO.name: (
        ": its disk does not answer (Input/output error)",
        "Repair or replace the disk, then restart the broker.",
    ),
}


@kind(
    meaning="A broker ended its own process, and said why at FATAL.",
    source="kafka.utils.Exit.halt and exit; each line's source is with its signature",
    signatures=(_TRUNCATION, _DIRECTORIES, _DISK, _STARTUP, _FAULT),
    causes=("log_directory_failed",),
)
def broker_halted(facts: Facts) -> Iterable[LoggedIncident]:
    """The first of the lines with which a broker ends; those that follow it within seconds say the same."""
    rows = facts.remarked_by_brokers(_TRUNCATION, _DIRECTORIES, _DISK, _STARTUP, _FAULT)
    last: dict[Node, int] = {}
    for row in sorted(rows, key=lambda row: row["first_time"]):
        time, broker = row["first_time"], node(row)
        if time - last.get(broker, -_END_US) >= _END_US:
            what, fields = _not_truncated(facts, row) if row["signature"] == _TRUNCATION.name else _ended(row)
            yield Episode([row]).incident(
                CRITICAL,
                f"{sentence(facts.named(broker[0], [broker[1]]))} ended itself at {clock(time)}: {what}",
                end_us=facts.next_start(broker, row["last_time"]),
                places=tuple(
                    place(other)
                    for other in rows
                    if node(other) == broker and 0 <= other["first_time"] - time < _END_US
                ),
                weight=10_000.0,
                **(fields | {"advice": Remedy(fields["advice"], is_open)}),
            )
        last[broker] = row["last_time"]


def _ended(row: Row) -> tuple[str, dict[str, Any]]:
    """Why, and further fields of the incident."""
    words, advice = _ENDED[row["signature"]]
    reason = _reason(row["message"])
    if row["signature"] == _DIRECTORIES.name and (directories := _IN_DIRECTORIES.search(row["message"])):
        reason = f"all its log directories have failed ({directories['directories']})"
    return words.format(reason=reason), {"advice": advice}


def _not_truncated(facts: Facts, row: Row) -> tuple[str, dict[str, Any]]:
    """The same of a follower that may not truncate."""
    broker_id = row["broker_id"]
    bug = bug_of("KAFKA-3410", facts.version(node(row), row["first_time"]))
    offsets = _OFFSETS.search(row["message"])
    if offsets is None:
        return (
            f"its log of {row['key']} ends beyond the leader's, and unclean leader election is off.",
            {
                "advice": f"Do not wipe broker {broker_id} before you know whether its further records are needed.",
                "partitions": frozenset({row["key"]}),
                "known_bug": bug,
            },
        )
    partition, leader, replica = offsets["partition"], int(offsets["leader"]), int(offsets["replica"])
    records = number(replica - leader, "record")
    return (
        f"its log of {partition} ends at {replica}, the leader's at {leader}, and unclean leader election is off, "
        f"so that it may not truncate. Its leader does not have these {records}; no line says whether they were "
        "committed.",
        {
            "advice": (
                f"Do not wipe broker {broker_id} before you decide: copy the partition's folder, dump offsets {leader} "
                f"to {replica - 1}, then either elect it, or give its records up and delete that folder."
            ),
            "partitions": frozenset({partition}),
            "figures": {"records": replica - leader, "leader_end_offset": leader, "replica_end_offset": replica},
            "known_bug": bug,
        },
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


@kind(
    meaning="A broker took a log directory off line: an I/O error, or no space left.",
    source="kafka.server.LogDirFailureChannel.maybeAddOfflineLogDir, ReplicaManager.handleLogDirFailure (KIP-112)",
    signatures=(_FULL, _IO, _RENAME, _SAID),
)
def log_directory_failed(facts: Facts) -> Iterable[LoggedIncident]:
    """Failures by broker; lines of one follow each other within seconds."""
    rows = [row for row in facts.lifecycle if row["event"] == "log_dir_failure"]
    for group in grouped(sorted(rows, key=node), _is_same_failure):
        broker, start = node(group[0]), group[0]["time"]
        texts = [row["detail"] or "" for row in group]
        directories = {
            (match["dir"] or match["other"]).rstrip(".,") for text in texts for match in _DIRECTORY.finditer(text)
        }
        errors = [
            row
            for row in facts.remarked(_FULL, _IO, _RENAME)
            if node(row) == broker and row["first_time"] - _FAILURE_US <= start <= row["last_time"] + _FAILURE_US
        ]
        signatures = {row["signature"] for row in errors}
        why, advice = next(
            (words for name, words in _WHY.items() if name in signatures),
            ("", "Look at the exception of its first line, and at the disk; then restart the broker."),
        )
        names = {name for text in texts for match in _STOPPED.finditer(text) for name in match["partitions"].split(",")}
        names |= {match["partition"] for row in errors for match in _WHERE.finditer(row["message"])}
        names.discard("")
        which = f" {min(directories)}" if len(directories) == 1 else ""
        stopped = f" It no longer serves {partitions(names)} from there." if names else ""
        yield LoggedIncident(
            severity=CRITICAL,
            cluster_id=broker[0],
            start_us=min([start, *(row["first_time"] for row in errors)]),
            end_us=facts.next_start(broker, group[-1]["time"]),
            broker_ids=(broker[1],),
            partitions=frozenset(names),
            sentence=(
                f"Log directory{which} of {facts.named(broker[0], [broker[1]])} failed at {clock(start)}{why}.{stopped}"
            ),
            advice=Remedy(advice, is_open),
            figures={"partitions": len(names)},
            places=(*map(place, errors[:2]), *map(place, group[:6])),
            known_bug=Bug("KAFKA-1194", "") if _RENAME.name in signatures else None,
            weight=3_000.0 + len(names),
            subject=str(start),
        )


def _is_same_failure(group: list[Row], row: Row) -> bool:
    return node(row) == node(group[-1]) and row["time"] - group[-1]["time"] <= _FAILURE_US


@kind(
    meaning="A broker logged java.lang.OutOfMemoryError.",
    source="The JVM; which thread met it, its line says",
    signatures=(_NO_MEMORY,),
)
def broker_out_of_memory(facts: Facts) -> Iterable[LoggedIncident]:
    """Stack traces that begin with, or come from, an OutOfMemoryError."""
    for row in facts.remarked_by_brokers(_NO_MEMORY):
        episode, name = Episode([row]), facts.named(row["cluster_id"], [row["broker_id"]])
        what = f" ({row['key']})" if row["key"] else ""
        is_restarted = facts.next_start(episode.node, row["last_time"]) is not None
        restart = "" if is_restarted else f"Restart {name}: a thread that died of it does not come back. "
        yield episode.incident(
            CRITICAL,
            f"{sentence(name)} ran out of memory at {clock(episode.start_us)}{what}: "
            f"{number(episode.lines, 'line')} with OutOfMemoryError. Threads that met it may be gone for good.",
            advice=(
                f"{restart}Look at the heap of {name} (KAFKA_HEAP_OPTS), at its partitions and connections, and at "
                "vm.max_map_count if its line says 'Map failed'."
            ),
            figures={"lines": episode.lines},
            weight=5_000.0,
        )


@kind(
    meaning="A broker could not open a file or a connection, since it had too many open.",
    source="java.io.IOException: Too many open files",
    signatures=(_NO_FILES,),
)
def broker_out_of_files(facts: Facts) -> Iterable[LoggedIncident]:
    """Stack traces that come from EMFILE."""
    for row in facts.remarked_by_brokers(_NO_FILES):
        episode, name = Episode([row]), facts.named(row["cluster_id"], [row["broker_id"]])
        yield episode.incident(
            CRITICAL,
            f"{sentence(name)} had too many files open {episode.when}: "
            f"{number(episode.lines, 'line says', 'lines say')} so. It takes no connection and opens no segment "
            "meanwhile.",
            advice=(
                f"Raise the limit of open files (ulimit -n, LimitNOFILE) of {name} to 100,000 or more, and "
                f"look at what it had open at {clock(episode.start_us)}: segments, or connections that leak."
            ),
            figures={"lines": episode.lines},
            weight=4_000.0,
        )


@kind(
    meaning="A broker rebuilt indexes, or cut the end of a segment, as it loaded its logs.",
    source="kafka.log.LogLoader.loadSegmentFiles, LogSegment.recover",
    signatures=(_DAMAGED,),
    causes=("broker_died", "broker_halted", "log_directory_failed"),
)
def indexes_rebuilt(facts: Facts) -> Iterable[LoggedIncident]:
    """Episodes by broker: the process before did not end in order."""
    for episode in episodes(facts.remarked_by_brokers(_DAMAGED, TORN), "broker_id"):
        segments = number(episode.lines, "segment")
        yield episode.incident(
            INFO,
            sentence(
                f"{facts.named(episode.cluster_id, episode.broker_ids)} found {segments} with a damaged index or end "
                f"{episode.when}: the process before had not ended in order."
            ),
            figures={"segments": episode.lines},
        )
