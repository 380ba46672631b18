"""Crashes and long pauses of JVMs, from the hs_err files and GC logs near a broker's logs. Pure.

Such a file belongs to the broker whose logs are nearest to it in the tree of files. GC logs without dates are not used:
their times count from the start of a JVM that no line names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from pathlib import PurePath
from typing import Any, Final, NamedTuple

JVM_CRASH: Final = "jvm_crash"
GC_PAUSE: Final = "gc_pause"
#: Types of files that are read, by `pipelines.bronze.file_types`.
GC_LOG, HS_ERR = "gc.log", "hs_err"
#: Shorter pauses are not kept, microseconds: replica.fetch.wait.max.ms, which a follower waits for anyway.
PAUSE_MIN_US: Final = 500_000
#: Pauses that are kept of a file, the longest ones.
PAUSES_MAX: Final = 1000
#: Characters of a text.
TEXT_MAX: Final = 300
#: Bytes of a line that are looked at.
_LINE_MAX: Final = 10_000
#: Lines of an hs_err file up to the time of the crash.
_CRASH_LINES_MAX: Final = 20_000
_DATE: Final = rb"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d{4})"
#: -Xlog:gc*, JDK 9 and later: a line is written when the pause ends.
_UNIFIED: Final = re.compile(
    rb"\[" + _DATE + rb"\](?:\[[^\]]*\])* (?P<what>(?:GC\(\d+\) )?Pause [^\n]{0,200}? |Safepoint [^\n]{0,200}? )"
    rb"(?:(?P<ms>\d{1,9}[.,]\d+)ms|Total: +(?P<ns>\d{1,15}) ns)\s*$"
)
#: -Xloggc with -XX:+PrintGCDateStamps, JDK 8: a line begins with the start of the pause.
_DATED: Final = re.compile(_DATE + rb": (?:\d+[.,]\d+: )?(?P<what>\[(?:Full )?GC\b[^\n]{0,100})")
_SECONDS: Final = re.compile(rb"real=(?P<real>\d{1,6}[.,]\d+) secs|, (?P<secs>\d{1,6}[.,]\d+) secs\]\s*$")
_CONCURRENT: Final = re.compile(rb"concurrent", re.I)
_REASON: Final = re.compile(
    r"#\s+(?P<reason>(?:SIG|EXCEPTION_|Internal Error|There is insufficient memory|Out of Memory Error|Native memory "
    r"allocation).*)"
)
_CRASH_TIME: Final = re.compile(
    r"[Tt]ime: (?P<time>\w{3} +\w{3} +\d{1,2} \d\d:\d\d:\d\d \d{4})"
    r"(?: (?P<zone>\w{1,30}(?: \w{1,30}){0,4}?))?(?: elapsed .*)?$"
)
_CRASH_ZONE: Final = re.compile(r"timezone: (?P<zone>\S+)")
_COMMAND: Final = re.compile(r"(?:Command Line|java_command): .*\bkafka\.(?:Kafka|docker\.KafkaDockerWrapper)\b")


class Remark(NamedTuple):
    """A crash or a pause of a JVM."""

    kind: str  #: `JVM_CRASH` or `GC_PAUSE`
    start_us: int  #: microseconds since the epoch; a GC log's pause begins then
    duration_us: int  #: 0 for a crash
    text: str  #: the line that shows it, or the reason of the crash
    line: int  #: number of the line in its file, from 1


def remarks(file_type: str, lines: Iterable[bytes], zone: tzinfo) -> list[Remark]:
    """Return the crashes and pauses in a file of a JVM, in order of time.

    Args:
        file_type: `GC_LOG` or `HS_ERR`.
        lines: lines of the file, decompressed.
        zone: IANA zone of times that name no zone other than the machine's own.
    """
    if file_type == HS_ERR:
        return list(_crashes(lines, zone))
    longest = sorted(_pauses(lines), key=lambda remark: -remark.duration_us)[:PAUSES_MAX]
    return sorted(longest, key=lambda remark: (remark.start_us, remark.line))


def lines_of(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a content, truncated at `_LINE_MAX`."""
    rest = b""
    for block in blocks:
        *whole, rest = (rest + block).split(b"\n")
        yield from (line[:_LINE_MAX] for line in whole)
        rest = rest[:_LINE_MAX]
    if rest:
        yield rest


def _pauses(lines: Iterable[bytes]) -> Iterator[Remark]:
    """Yield the pauses in a GC log that exceed the minimum."""
    begun: tuple[bytes, bytes, int] | None = None
    for number, line in enumerate(lines, 1):
        if (match := _UNIFIED.match(line)) is not None:
            figure = match["ms"]
            duration_us = int(match["ns"]) // 1000 if figure is None else round(_number(figure) * 1000)
            if duration_us >= PAUSE_MIN_US:
                yield Remark(GC_PAUSE, _instant(match["time"]) - duration_us, duration_us, _text(line), number)
            continue
        if (dated := _DATED.match(line)) is not None:
            begun = None if _CONCURRENT.search(dated["what"]) else (dated["time"], line, number)
        if begun is not None and (ended := _SECONDS.search(line)) is not None:
            duration_us = round(_number(ended["real"] or ended["secs"]) * 1_000_000)
            if duration_us >= PAUSE_MIN_US:
                yield Remark(GC_PAUSE, _instant(begun[0]), duration_us, _text(begun[1]), begun[2])
            begun = None


def _crashes(lines: Iterable[bytes], zone: tzinfo) -> Iterator[Remark]:
    """Yield the crash in an hs_err file of a broker. The file must have its time and Kafka's main class."""
    reasons: list[str] = []
    at: datetime | None = None
    line_number, is_broker, zone_name = 1, False, ""
    for number, line in enumerate(lines, 1):
        text = line.decode("utf-8", "replace").strip()
        if (reason := _REASON.match(text)) is not None and len(reasons) < 2:
            reasons.append(reason["reason"].strip())
            line_number = number if len(reasons) == 1 else line_number
        elif (timed := _CRASH_TIME.match(text)) is not None:
            at, zone_name = datetime.strptime(timed["time"], "%a %b %d %H:%M:%S %Y"), timed["zone"] or zone_name
        elif (named := _CRASH_ZONE.match(text)) is not None:
            zone_name = named["zone"]
        is_broker = is_broker or _COMMAND.match(text) is not None
        if number >= _CRASH_LINES_MAX:
            break
    if at is not None and is_broker:
        at = at.replace(tzinfo=UTC if zone_name in ("UTC", "GMT", "Coordinated Universal Time") else zone)
        text = " ".join(reasons) or "the JVM crashed"
        yield Remark(JVM_CRASH, round(at.timestamp()) * 1_000_000, 0, text[:TEXT_MAX], line_number)


def _number(text: bytes) -> float:
    return float(text.replace(b",", b"."))


def _instant(text: bytes) -> int:
    return round(datetime.strptime(text.decode(), "%Y-%m-%dT%H:%M:%S.%f%z").timestamp() * 1_000) * 1_000


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").strip()[:TEXT_MAX]


def writer_of(path: str, logs: Sequence[Mapping[str, Any]]) -> tuple[str | None, int] | None:
    """Return (cluster, broker) of the logs nearest to a file. None if these are of several brokers or of none.

    Args:
        logs: rows of ``bronze.log_files``: cluster_id, broker_id, path.
    """
    for folder in PurePath(path).parents:
        near = {
            (row["cluster_id"], row["broker_id"])
            for row in logs
            if row["broker_id"] is not None
            and PurePath(row["path"].partition("!/")[0].partition("#")[0]).is_relative_to(folder)
        }
        if near:
            return next(iter(near)) if len(near) == 1 else None
    return None
