"""A log directory of a broker failed, or was full."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from pipelines.incidents.facts import Facts, Node, Row, node, place
from pipelines.incidents.incident import CRITICAL, Bug, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.signatures import Signature
from pipelines.incidents.words import clock
from pipelines.incidents.words import partitions as named

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
#: Lines of one failure follow each other within this, microseconds.
_TOGETHER_US = 30_000_000
_DIRECTORY = re.compile(r"\bin dir (?P<dir>\S+)|log dir(?:ectory|s in)? (?P<other>/\S+|[A-Z]:\\\S+)")
_WHERE = re.compile(r"(?:appending records to|renaming dir for|flushing log for) (?P<partition>\S+) in dir ")
_STOPPED = re.compile(r"stopped fetcher for partitions (?P<partitions>\S*) and stopped moving")


def detect(facts: Facts) -> Iterable[Incident]:
    """Failures by broker; lines of one follow each other within seconds."""
    rows: dict[Node, list[Row]] = defaultdict(list)
    for row in facts.lifecycle:
        if row["event"] == "log_dir_failure":
            failures = rows[node(row)]
            failures.append(row)
    for broker, failures in rows.items():
        groups: list[list[Row]] = []
        for row in failures:
            if groups and row["time"] - groups[-1][-1]["time"] <= _TOGETHER_US:
                groups[-1].append(row)
            else:
                groups.append([row])
        for group in groups:
            yield _failed(facts, broker, group)


def _failed(facts: Facts, broker: Node, rows: list[Row]) -> Incident:
    texts = [row["detail"] or "" for row in rows]
    directories = sorted(
        {(match["dir"] or match["other"]).rstrip(".,") for text in texts for match in _DIRECTORY.finditer(text)}
    )
    names = {name for text in texts for match in _STOPPED.finditer(text) for name in match["partitions"].split(",")}
    start = rows[0]["time"]
    errors = [
        row
        for row in facts.remarked(_FULL.name, _IO.name, _RENAME.name)
        if node(row) == broker and _is_near(row, start)
    ]
    why, advice = _why(errors)
    names |= {match["partition"] for row in errors for match in _WHERE.finditer(row["message"])}
    partitions = frozenset(name for name in names if name)
    which = f" {directories[0]}" if len(directories) == 1 else ""
    stopped = f" It no longer serves {named(partitions)} from there." if partitions else ""
    return Incident(
        kind=KIND.name,
        severity=CRITICAL,
        cluster_id=broker[0],
        start_us=min([start, *(row["first_time"] for row in errors)]),
        end_us=_next_start(facts, broker, rows[-1]["time"]),
        broker_ids=(broker[1],),
        partitions=partitions,
        sentence=f"Log directory{which} of broker {broker[1]} failed at {clock(start)}{why}.{stopped}",
        advice=advice,
        figures={"partitions": len(partitions)},
        places=(*map(place, errors[:2]), *map(place, rows[:6])),
        known_bug=Bug("KAFKA-1194", "") if any(row["signature"] == _RENAME.name for row in errors) else None,
        weight=3_000.0 + len(partitions),
    )


def _is_near(row: Row, time_us: int) -> bool:
    return bool(row["first_time"] - _TOGETHER_US <= time_us <= row["last_time"] + _TOGETHER_US)


def _why(errors: list[Row]) -> tuple[str, str]:
    if any(row["signature"] == _FULL.name for row in errors):
        return ": it is full (No space left on device)", "Free space on that disk, then restart the broker."
    if any(row["signature"] == _RENAME.name for row in errors):
        return (
            ": Windows does not rename the folder of a partition whose files are open (AccessDeniedException)",
            "Run brokers on Linux, also in tests (a container, WSL 2): no release of Kafka mends this on Windows.",
        )
    if errors:
        return ": its disk does not answer (Input/output error)", "Repair or replace the disk, then restart the broker."
    return "", "Look at the exception of its first line, and at the disk; then restart the broker."


def _next_start(facts: Facts, broker: Node, time_us: int) -> int | None:
    starts = [row["time"] for row in facts.lifecycle if node(row) == broker and row["event"] == "started"]
    return min((time for time in starts if time > time_us), default=None)


KIND = Kind(
    name="log_directory_failed",
    meaning="A broker took a log directory off line: an I/O error, or no space left.",
    source="kafka.server.LogDirFailureChannel.maybeAddOfflineLogDir, ReplicaManager.handleLogDirFailure (KIP-112)",
    detect=detect,
    signatures=(_FULL, _IO, _RENAME, _SAID),
)
