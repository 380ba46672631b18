"""Failures of resources of a broker (disks, memory, files, remote storage), and brokers that ended themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from highwater.pipelines.incidents.advice import is_open
from highwater.pipelines.incidents.episodes import Episode, episodes, grouped
from highwater.pipelines.incidents.facts import Facts, Node, Row, node, place
from highwater.pipelines.incidents.incident import CRITICAL, INFO, Bug, LoggedIncident, Remedy, bug_of
from highwater.pipelines.incidents.kind import ABSENT, Signature, kind, preceding
from highwater.pipelines.incidents.reasons import Reason, best_reason, reason_of
from highwater.pipelines.incidents.words import clock, number, partitions, sentence, shortened, span, times
from highwater.pipelines.messages.atlas import Message, atlas
from highwater.pipelines.messages.lines import find_message
from highwater.pipelines.messages.wording import parse_wording

_ENDS = ("FATAL", "ERROR")
#: Ends of one broker that follow each other within this are one incident, seconds.
_AGAIN_S = 600


def signature_of_messages(kind_name: str) -> Signature:
    """Return a pattern of all messages at FATAL that the message catalogue knows as the begin of a kind of incident."""
    messages = [message for message in atlas().messages.values() if _is_fatal(message, kind_name)]
    wordings = [parse_wording(text) for message in messages for _, text in message.texts]
    texts = sorted({".*".join(map(re.escape, wording.literals)) for wording in wordings if wording.weight})
    classes = sorted({name for message in messages for name in message.classes})
    return Signature(
        f"fatal_{kind_name}",
        (*classes, *(f"{name}$" for name in classes)),
        rf"(?:\[[^\]]*\]:?,? )*(?P<key>{'|'.join(texts)})",
        f"texts at FATAL that begin {kind_name}, docs/messages.md",
        _ENDS,
        gap_s=_AGAIN_S,
    )


def _is_fatal(message: Message, kind_name: str) -> bool:
    return "FATAL" in message.levels and f"begins {kind_name}" in message.part


_TRUNCATION = Signature(
    "truncation_not_allowed",
    ("ReplicaFetcherThread",),
    r"(?:\[[^\]]*\]:?,? )?(?:Halting|Exiting) because log truncation is not allowed for (?:topic|partition) "
    r"(?P<key>\S+?),? .*",
    "kafka.server.ReplicaFetcherThread.handleOffsetOutOfRange, 0.8 to 1.1: unclean.leader.election.enable=false",
    _ENDS,
    gap_s=_AGAIN_S,
)
_DIRECTORIES = Signature(
    "no_log_directory_left",
    ("LogManager", "ReplicaManager"),
    r"(?:\[[^\]]*\]:? )?(?:Shutdown broker because .*|Halting broker because dir .* is offline)",
    "kafka.log.LogManager.handleLogDirFailure, ReplicaManager.handleLogDirFailure, 1.0 on",
    _ENDS,
    gap_s=_AGAIN_S,
)
_HALTS = signature_of_messages("broker_halted")
_START_FAILED = signature_of_messages("start_failed")
_FAULT = Signature(
    "fatal_fault",
    ("ProcessTerminatingFaultHandler", "ProcessExitingFaultHandler"),
    r"Encountered fatal fault: (?P<key>.*)",
    "org.apache.kafka.server.fault.ProcessTerminatingFaultHandler.handleFault, KRaft, 3.3 on",
    _ENDS,
    gap_s=_AGAIN_S,
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
    gap_s=_AGAIN_S,
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
#: How long a starting node waits for other nodes before it gives up, microseconds.
_WAITED_US = 120_000_000
#: Exceptions that show a fault of the program, and no answer of others.
_OWN_FAULTS = ("IllegalArgumentException", "IllegalStateException", "NullPointerException")
#: Lines of one failure of a directory follow each other within this, microseconds.
_FAILURE_US = 30_000_000
_IN_DIRECTORIES = re.compile(r"all log dirs in (?P<directories>(?:(?!all log dirs in ).)+?) have failed")
_CONTEXT = re.compile(r"^(?:\[[^\]]*\][:,]* )+")
_OFFSETS = re.compile(
    r"for (?:topic|partition) (?P<partition>\S+?),?\s(?:(?!for (?:topic|partition) ).)*?latest offset (?P<leader>\d+) "
    r"is less than replica(?: \d+)?'s latest offset (?P<replica>\d+)",
    re.DOTALL,
)
_DIRECTORY = re.compile(r"\bin dir (?P<dir>\S+)|log dir(?:ectory|s in)? (?P<other>/\S+|[A-Z]:\\\S+)")
_WHERE = re.compile(r"\b(?:for|to) (?P<partition>\S+-\d+) in dir ")
_STOPPED = re.compile(
    r"stopped fetcher for partitions (?P<partitions>\S*) and stopped moving(?: logs)? for partitions (?P<moved>\S*)"
)
#: Lines with which a broker ends; the first signature that matches a line has it.
_ENDINGS = (_TRUNCATION, _DIRECTORIES, _START_FAILED, _FAULT, _HALTS)
#: What to do if the lines of a broker that ended itself show no exception with an entry, by signature.
_IF_UNKNOWN = {
    _DIRECTORIES.name: "Look at the first error of each of these directories, then start the broker.",
    _HALTS.name: "Look at the stack trace of this line, and at the disk, then start the broker.",
    _FAULT.name: "Read the stack trace of this line; a metadata record that cannot be applied returns at each start.",
    _START_FAILED.name: "Mend what the exception names, then start it again.",
}


@kind(
    meaning="A broker ended its own process, or did not start, and said why at FATAL. Repeated ends are one incident.",
    source="kafka.utils.Exit.halt and exit; each line's source is with its signature",
    signatures=_ENDINGS,
    causes=preceding("broker_halted"),
)
def broker_halted(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield incidents of brokers that ended themselves. Lines within seconds of each other show one end."""
    rows = sorted(facts.remarked(*_ENDINGS), key=lambda row: (str(node(row)), row["first_time"]))
    for group in grouped(rows, _is_same_end):
        first, broker = group[0], node(group[0])
        what, fields = _not_truncated(facts, first) if first["signature"] == _TRUNCATION.name else _ended(facts, group)
        ends = max(row["line_count"] for row in group)
        last_us = max(row["last_time"] for row in group)
        verb = "did not start" if first["signature"] == _START_FAILED.name else "ended itself"
        times_us = first["first_time"], max(row["last_time"] for row in group if row["line_count"] == ends)
        how_often = f", {times(ends)} {span(*times_us)}" if ends > 1 else f" at {clock(first['first_time'])}"
        yield Episode(group).incident(
            CRITICAL,
            f"{sentence(facts.named(broker[0], [broker[1]]))} {verb}{how_often}: {what}",
            end_us=facts.next_start(broker, last_us),
            figures={"times": ends} | fields.pop("figures", {}),
            weight=10_000.0,
            **(fields | {"advice": Remedy(fields["advice"], is_open)}),
        )


def _is_same_end(group: list[Row], row: Row) -> bool:
    """Return True if a row shows the same end of a process, or the same series of ends, as the rows before."""
    starts_us = row["first_time"] - max(other["first_time"] for other in group)
    ends_us = row["last_time"] - max(other["last_time"] for other in group)
    return node(row) == node(group[-1]) and starts_us < _END_US and ends_us < _END_US


def _ended(facts: Facts, group: list[Row]) -> tuple[str, dict[str, Any]]:
    """Return why a broker ended, in words, and further fields of its incident, such as ``advice``."""
    first = group[0]
    if first["signature"] == _DIRECTORIES.name:
        errors = _directory_errors(facts, node(first), first["first_time"])
        reason = best_reason(row["message"] for row in errors)
    else:
        reason = best_reason(row["message"] for row in group)
    fields = {"advice": (reason.action if reason is not None else "") or _IF_UNKNOWN[first["signature"]]}
    if first["signature"] == _DIRECTORIES.name and (directories := _IN_DIRECTORIES.search(first["message"])):
        return f"all its log directories have failed ({directories['directories']}).", fields
    if reason is not None and (failure := _earlier_failure(facts, first, reason)) is not None:
        return failure[0], {"advice": failure[1] or fields["advice"]}
    if first["signature"] == _START_FAILED.name and reason is not None:
        earlier = _earlier_reason(facts, first, reason)
        if earlier is None:
            return reason.words, fields
        time_us, why = earlier
        fields["advice"] = f"{why.action} {fields['advice']}".strip()
        return f"{reason.words} Before, at {clock(time_us)}: {why.words}", fields
    if first["signature"] == _FAULT.name and reason is not None and reason.thrown.name in _OWN_FAULTS:
        found = find_message(atlas(), first["message"], None)
        fields["advice"] = fields["advice"] if found is None else found.message.action
    text = shortened(_CONTEXT.sub("", first["message"].partition("\n")[0]).rstrip(".: "))
    return f"{text}: {reason.words}" if reason is not None else f"{text}.", fields


def _earlier_failure(facts: Facts, row: Row, reason: Reason) -> tuple[str, str] | None:
    """Return (words, advice) for the failure right before a fault that follows from it. None if there is none.

    A fault of the program and an interrupted thread explain nothing.
    """
    is_interrupted = reason.cause is not None and not reason.action
    if not is_interrupted and reason.thrown.name not in _OWN_FAULTS:
        return None

    def is_before(first_us: int, last_us: int) -> bool:
        return any(row["first_time"] - _END_US <= time_us < row["first_time"] for time_us in (first_us, last_us))

    errors = [one for one in _directory_errors(facts, node(row), row["first_time"]) if one["signature"] != _HALTS.name]
    why = best_reason(one["message"] for one in errors if is_before(one["first_time"], one["last_time"]))
    if why is not None:
        return why.words, why.action
    for text in facts.loud_texts:
        is_own = text.cluster_id == row["cluster_id"] and row["broker_id"] in text.broker_ids
        if is_own and text.found and text.begins("start_failed") and is_before(text.first_us, text.last_us):
            return text.found.message.meaning, text.found.message.action
    return None


def _earlier_reason(facts: Facts, row: Row, reason: Reason) -> tuple[int, Reason] | None:
    """Return time (us) and error that a node logged before it gave up waiting for others. None if no line shows one.

    A timeout does not show why no answer came.
    """
    if "Timeout" not in reason.thrown.name:
        return None
    found = [
        (text.first_us, earlier)
        for text in facts.loud_texts
        if text.cluster_id == row["cluster_id"]
        and row["broker_id"] in text.broker_ids
        and row["first_time"] - _WAITED_US <= text.last_us < row["first_time"]
        and (earlier := reason_of(str(text.row["message"]))) is not None
        and earlier.cause not in (None, reason.cause)
        and (earlier.cause.texts or earlier.thrown.name not in _OWN_FAULTS)
    ]
    return max(found, key=lambda item: item[0], default=None)


def _not_truncated(facts: Facts, row: Row) -> tuple[str, dict[str, Any]]:
    """Return why a follower that may not truncate ended, in words, and further fields of its incident."""
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


@kind(
    meaning="A broker took a log directory off line: an I/O error, or no space left.",
    source="kafka.server.LogDirFailureChannel.maybeAddOfflineLogDir, ReplicaManager.handleLogDirFailure (KIP-112)",
    signatures=(_FULL, _IO, _RENAME, _SAID),
)
def log_directory_failed(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield one incident per broker and failure. Lines of one failure follow each other within seconds."""
    rows = [row for row in facts.lifecycle if row["event"] == "log_dir_failure"]
    for group in grouped(sorted(rows, key=node), _is_same_failure):
        broker, start = node(group[0]), group[0]["time"]
        texts = [row["detail"] or "" for row in group]
        directories = {name for row in group for name in _named_directories(row)}
        errors = _directory_errors(facts, broker, start)
        reason = best_reason(row["message"] for row in errors)
        why = "" if reason is None else f": {reason}"
        meaning = "" if reason is None or reason.cause is None else f" {reason.cause.meaning}"
        advice = (reason.action if reason is not None else "") or (
            "Look at the exception of its first line, and at the disk; then restart the broker."
        )
        stops = [match for text in texts for match in _STOPPED.finditer(text)]
        served, moved = (
            {name for match in stops for name in match[group].split(",")} - {""} for group in ("partitions", "moved")
        )
        # Copies that were being made are served from elsewhere.
        moved -= served
        stored = [row["message"] for row in errors if not row["message"].startswith("Error while deleting log ")]
        names = served | {match["partition"] for text in stored for match in _WHERE.finditer(text)} - moved
        which = f" {min(directories)}" if len(directories) == 1 else ""
        stopped = f" It no longer serves {partitions(names)} from there." if names else ""
        if moved:
            stopped += f" The copy of {partitions(moved)} to there stopped; the replica itself is elsewhere."
        yield LoggedIncident(
            severity=CRITICAL,
            cluster_id=broker[0],
            start_us=min([start, *(row["first_time"] for row in errors)]),
            end_us=facts.next_start(broker, group[-1]["time"]),
            broker_ids=(broker[1],),
            partitions=frozenset(names),
            sentence=(
                f"Log directory{which} of {facts.named(broker[0], [broker[1]])} failed at {clock(start)}{why}."
                f"{meaning}{stopped}"
            ),
            advice=Remedy(advice, is_open),
            figures={"partitions": len(names)},
            places=(*map(place, errors[:2]), *map(place, group[:6])),
            known_bug=Bug("KAFKA-1194", "") if any(row["signature"] == _RENAME.name for row in errors) else None,
            weight=3_000.0 + len(names),
            subject=str(start),
        )


def _directory_errors(facts: Facts, broker: Node, time_us: int) -> list[Row]:
    """Return rows of errors that a broker logged near the time (us) at which a log directory failed, by time."""

    def is_near(first_us: int, last_us: int) -> bool:
        return first_us - _FAILURE_US <= time_us <= last_us + _FAILURE_US

    rows = [
        row
        for row in facts.remarked(_FULL, _IO, _RENAME, _NO_MEMORY, _NO_FILES, _HALTS)
        if node(row) == broker and is_near(row["first_time"], row["last_time"])
    ]
    rows += [
        {**row, "signature": ""}
        for text in facts.loud_texts
        if "log_directory_failed" in text.kinds
        for row in text.moments
        if node(row) == broker and is_near(row["first_time"], row["last_time"])
    ]
    return sorted(rows, key=lambda row: row["first_time"])


def _is_same_failure(group: list[Row], row: Row) -> bool:
    """Return True if a row shows the failure of `group`: within seconds, or of the same directory at a later start."""
    if node(row) != node(group[-1]):
        return False
    gap_us = row["time"] - group[-1]["time"]
    known = {name for other in group for name in _named_directories(other)}
    is_other = known and (of_row := _named_directories(row)) and known.isdisjoint(of_row)
    return gap_us <= _FAILURE_US or (gap_us <= _AGAIN_S * 1_000_000 and not is_other)


def _named_directories(row: Row) -> set[str]:
    """Return the log directories that a row's ``detail`` names."""
    found = _DIRECTORY.finditer(row["detail"] or "")
    return {(match["dir"] or match["other"]).rstrip(".,") for match in found}


@kind(
    meaning="A broker logged java.lang.OutOfMemoryError.",
    source="The JVM; which thread met it, its line says",
    signatures=(_NO_MEMORY,),
)
def broker_out_of_memory(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield OutOfMemoryErrors in stack traces. Traces that made a log directory fail are left out."""
    failed = [(node(row), row["time"]) for row in facts.lifecycle if row["event"] == "log_dir_failure"]
    for row in facts.remarked_by_brokers(_NO_MEMORY):
        since_us, until_us = row["first_time"] - _FAILURE_US, row["last_time"] + _FAILURE_US
        if any(broker == node(row) and since_us <= time_us <= until_us for broker, time_us in failed):
            continue
        episode, name = Episode([row]), facts.named(row["cluster_id"], [row["broker_id"]])
        reason = reason_of(row["message"])
        what = f" ({row['key']})" if row["key"] else ""
        meaning = f" {reason.cause.meaning}" if reason is not None and reason.cause is not None else ""
        is_restarted = facts.next_start(episode.node, row["last_time"]) is not None
        restart = "" if is_restarted else f"Restart {name}: a thread that died of it does not come back. "
        yield episode.incident(
            CRITICAL,
            f"{sentence(name)} ran out of memory at {clock(episode.start_us)}{what}: "
            f"{number(episode.lines, 'line')} with OutOfMemoryError.{meaning} "
            "Threads that met it may be gone for good.",
            advice=f"{restart}{reason.action if reason is not None else ''}".rstrip(),
            figures={"lines": episode.lines},
            weight=5_000.0,
        )


@kind(
    meaning="A broker could not open a file or a connection, since it had too many open.",
    source="java.io.IOException: Too many open files",
    signatures=(_NO_FILES,),
)
def broker_out_of_files(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield failures whose stack traces show EMFILE (too many open files)."""
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
    causes=ABSENT,
)
def indexes_rebuilt(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield rebuilt indexes: one incident per broker and time span. The process before did not shut down cleanly."""
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
