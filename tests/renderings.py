"""Renders records of real logs as others write them: in any layout, in wrappers, with times as coarse as one likes.

Nothing here is the reader's: patterns are carried out as log4j, log4j2 and logback do it, and wrappers are written as
their programs do. `records_of` takes apart Kafka's own layout, in which all corpora are.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND_US, SECOND_US = 1_000, 1_000_000
_RECORD = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})\] ([A-Z]+) ")
_LOGGER = re.compile(r" \(([A-Za-z_][\w.$/-]*)\)(?=\n|\Z)")
_FRAME = re.compile(r"\n\s+at |\n\s*\.\.\. \d+ ")
_THROWABLE = re.compile(r"\n(?:Caused by: )?(?:[A-Za-z_$][\w$]*\.)+[A-Za-z_$][\w$]*(?:: |\n|\Z)")
_THREADS = (
    "main",
    "kafka-scheduler-4",
    "data-plane-kafka-request-handler-3",
    "ReplicaFetcherThread-0-1",
    "SIGTERM handler",
)


class Written(NamedTuple):
    """A record as it is given to a layout."""

    time_us: int
    level: str
    logger: str
    message: str
    trace: str  #: a throwable and its frames, each behind a line end

    @property
    def thread(self) -> str:
        """One of the threads that a broker has: the same for all records of a logger."""
        return _THREADS[crc32(self.logger.encode()) % len(_THREADS)]

    @property
    def line(self) -> int:
        """A line number of its class."""
        return crc32(self.message[:12].encode()) % 900 + 21

    def at(self, resolution_us: int) -> Written:
        """The record with a coarser time."""
        return self._replace(time_us=self.time_us // resolution_us * resolution_us)


def records_of(content: bytes) -> list[Written]:
    """Records of a log in ``[%d] %p %m (%c)%n``; what is no whole record of it is left out."""
    texts: list[str] = []
    for line in content.decode(errors="replace").split("\n"):
        if _RECORD.match(line):
            texts.append(line)
        elif texts:
            texts[-1] += "\n" + line
    return [record for text in texts if (record := _record(text.removesuffix("\n"))) is not None]


def _record(text: str) -> Written | None:
    begun = _RECORD.match(text)
    assert begun is not None
    body = text[begun.end() :]
    frame = _FRAME.search(body)
    tails = list(_LOGGER.finditer(body, 0, frame.start() if frame else len(body)))
    if not tails:
        return None
    tail = next((one for one in tails if _THROWABLE.match(body, one.end())), tails[-1])
    moment = datetime.fromisoformat(begun[1]).replace(tzinfo=UTC) + timedelta(milliseconds=int(begun[2]))
    time_us = (moment - EPOCH) // timedelta(microseconds=1)
    return Written(time_us, begun[3], tail[1], body[: tail.start()], body[tail.end() :])


def logs_of(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Logs below a folder in Kafka's layout, by their relative paths without ``.gz``, with their content."""
    for path in sorted(folder.rglob("*.log*")):
        if path.is_file() and "data" not in path.relative_to(folder).parts:
            content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            if _RECORD.search(content[: 1 << 16].decode(errors="replace")):
                yield path.relative_to(folder).with_name(path.name.removesuffix(".gz")), content


_DATES = {
    "yyyy": "%Y",
    "yy": "%y",
    "MMM": "%b",
    "MM": "%m",
    "dd": "%d",
    "EEE": "%a",
    "HH": "%H",
    "mm": "%M",
    "ss": "%S",
    "X" * 3: "Z",
    "Z": "+0000",
    "z": "UTC",
}
_DATE_WORD = re.compile(r"'([^']*)'|(S+)|(yyyy|yy|MMM|MM|dd|EEE|HH|hh|h|mm|ss|X{3}|Z|z|a)")


def stamp(time_us: int, form: str) -> str:
    """A time in UTC as Java's SimpleDateFormat writes it."""
    moment = EPOCH + timedelta(microseconds=time_us)
    if form in ("UNIX", "UNIX_MILLIS"):
        return str(time_us // (SECOND_US if form == "UNIX" else MILLISECOND_US))

    def word(found: re.Match[str]) -> str:
        if found[1] is not None:
            return found[1]
        if found[2]:
            return f"{moment.microsecond * 1000:09}"[: len(found[2])]
        if found[3] in ("hh", "h"):
            hour = (moment.hour + 11) % 12 + 1
            return f"{hour:02}" if found[3] == "hh" else str(hour)
        return (
            "AM"
            if found[3] == "a" and moment.hour < 12
            else "PM"
            if found[3] == "a"
            else moment.strftime(_DATES[found[3]])
        )

    return _DATE_WORD.sub(word, form)


_ISO = "yyyy-MM-dd HH:mm:ss,SSS"
_DIRECTIVE = re.compile(r"%(-?\d+)?(\.-?\d+)?([a-zA-Z]+)(?:\{([^}]*)\})?")


def _logger(name: str, shape: str | None) -> str:
    parts = name.split(".")
    if shape is None:
        return name
    if shape == "1.":
        return ".".join([*(part[:1] for part in parts[:-1]), parts[-1]])
    return ".".join(parts[-int(shape) :])


def by_pattern(pattern: str) -> Callable[[Written], str]:
    """Carries out a conversion pattern; ``%n%throwable`` is at its end."""

    def write(record: Written) -> str:
        def directive(found: re.Match[str]) -> str:
            width, _, name, option = found.groups()
            name = {"date": "d", "level": "p", "thread": "t", "logger": "c", "msg": "m", "class": "C"}.get(name, name)
            text = {
                "d": lambda: stamp(record.time_us, option or _ISO),
                "p": lambda: record.level.lower() if option == "lowerCase=true" else record.level,
                "t": lambda: record.thread,
                "c": lambda: _logger(record.logger, option),
                "C": lambda: "Logging",
                "F": lambda: "Logging.scala",
                "L": lambda: str(record.line),
                "m": lambda: record.message,
                "X": lambda: "",
                "pid": lambda: "1",
            }[name]()
            size = int(width or 0)
            return text.ljust(-size) if size < 0 else text.rjust(size)

        return _DIRECTIVE.sub(directive, pattern) + record.trace

    return write


def _json(key_of: dict[str, str], form: str, nested: bool = False) -> Callable[[Written], str]:
    """One object a record.

    Args:
        key_of: keys of time, level, logger, message, trace, thread.
        nested: a key with dots is an object in an object.
    """

    def write(record: Written) -> str:
        values = {
            "time": int(stamp(record.time_us, form)) if form.startswith("UNIX") else stamp(record.time_us, form),
            "level": record.level,
            "logger": record.logger,
            "message": record.message,
            "thread": record.thread,
            "trace": record.trace.removeprefix("\n"),
        }
        made: dict[str, object] = {}
        for name, key in key_of.items():
            if name == "trace" and not record.trace:
                continue
            place = made
            *outer, last = key.split(".") if nested else [key]
            for part in outer:
                place = place.setdefault(part, {})  # type: ignore[assignment]
            place[last] = values[name]
        return json.dumps(made)

    return write


def _csv(record: Written) -> str:
    row = io.StringIO()
    text = record.message + record.trace
    csv.writer(row, lineterminator="\n").writerow([stamp(record.time_us, _ISO), record.level, record.logger, text])
    return row.getvalue().removesuffix("\n")


#: How a record becomes lines. Those of Kafka, Strimzi, Confluent, Bitnami, Spring Boot and others' textbooks.
PATTERNS = {
    "kafka": "[%d] %p %m (%c)",
    "kafka-seconds": "[%d{yyyy-MM-dd HH:mm:ss}] %p %m (%c)",
    "kafka-thread": "[%d] %p [%t] %m (%c)",
    "kafka-line": "[%d] %p %m (%c:%L)",
    "strimzi": "%d %p %m (%c) [%t]",
    "strimzi-4": "%d{yyyy-MM-dd HH:mm:ss} %-5p [%t] %c{1}:%L - %m",
    "strimzi-4-zone": "%d{yyyy-MM-dd HH:mm:ss,SSSZ} %-5p [%t] %c{1}:%L - %m",
    "textbook": "%d{yyyy-MM-dd HH:mm:ss} %-5p %c{1}:%L - %m",
    "brackets": "[%d] [%-5p] [%t] [%c] - %m",
    "brackets-simple": "[%d{yyyy-MM-dd'T'HH:mm:ss,SSS}][%-5p][%t][%c{1}] %m",
    "level-first": "%-5p %d{yyyy/MM/dd HH:mm:ss.SSS} [%t] %c - %m",
    "thread-first": "[%t] %d %-5p %c{2} - %m",
    "logback": "%d{yyyy-MM-dd HH:mm:ss.SSS} [%thread] %-5level %logger{1.} - %msg",
    "spring": "%d{yyyy-MM-dd'T'HH:mm:ss.SSSXXX}  %5p %pid --- [%15t] %c{1.} : %m",
    "day-first": "%d{dd.MM.yyyy HH:mm:ss,SSS} %p %c: %m",
    "month-name": "%d{dd MMM yyyy HH:mm:ss,SSS} [%t] %-5p %c - %m",
    "common-log": "%d{dd/MMM/yyyy:HH:mm:ss.SSS Z} | %-5p | %t | %c{1} | %m",
    "epoch": "%d{UNIX_MILLIS} %p %c - %m",
    "lower": "%d{yyyy-MM-dd HH:mm:ss.SSSSSS} %p{lowerCase=true} <%t> %c - %m",
    "mdc": "%d %-5p [%X{trace},%X{span}] %c{1} (%t) %m",
    "caller": "%d %-5p [%t] %C{1}:%L - %m",
    "no-logger": "%d %-5p %m",
}
LAYOUTS: dict[str, Callable[[Written], str]] = {
    **{name: by_pattern(pattern) for name, pattern in PATTERNS.items()},
    "json-logstash": _json(
        {
            "time": "@timestamp",
            "message": "message",
            "logger": "logger_name",
            "thread": "thread_name",
            "level": "level",
            "trace": "stack_trace",
        },
        "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
    ),
    "json-ecs": _json(
        {
            "time": "@timestamp",
            "level": "log.level",
            "message": "message",
            "thread": "process.thread.name",
            "logger": "log.logger",
            "trace": "error.stack_trace",
        },
        "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
        nested=True,
    ),
    "json-other": _json(
        {"logger": "cls", "time": "when", "message": "text", "level": "lvl", "thread": "thr", "trace": "ex"},
        "UNIX_MILLIS",
    ),
    "csv": _csv,
}

#: A line and the stream that it is of; streams are brokers.
Line = tuple[str, str]
_ISO_NOW = "2026-11-20T15:33:21.101234567Z"


def _each(write: Callable[[str, str], str], head: str = "") -> Callable[[Sequence[Line]], str]:
    return lambda lines: head + "".join(write(stream, text) + "\n" for stream, text in lines)


def _colours(stream: str, text: str) -> str:
    return f"\x1b[{31 + crc32(stream.encode()) % 6}m{stream:<14} |\x1b[0m {text}"


def _hit(stream: str, text: str) -> str:
    source = {"message": text, "kubernetes": {"pod": {"name": stream}}, "@timestamp": _ISO_NOW}
    return json.dumps({"_index": "logs", "_id": str(crc32(text.encode())), "_source": source})


def _cloudwatch(lines: Sequence[Line]) -> str:
    events = [{"logStreamName": stream, "timestamp": 1795188801101, "message": text} for stream, text in lines]
    return json.dumps({"events": events, "searchedLogStreams": []}, indent=4) + "\n"


def _table(head: Sequence[str], row: Callable[[str, str], Sequence[str]]) -> Callable[[Sequence[Line]], str]:
    def write(lines: Sequence[Line]) -> str:
        out = io.StringIO()
        rows = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
        rows.writerow(head)
        rows.writerows(row(stream, text) for stream, text in lines)
        return out.getvalue()

    return write


#: What stands around lines, by the name of who puts it there.
WRAPPERS: dict[str, Callable[[Sequence[Line]], str]] = {
    "": _each(lambda _, text: text),
    "compose-colours": _each(_colours, "Attaching to a, b\n"),
    "docker-desktop": _each(lambda _, text: "2026-11-20 18:33:21 " + text),
    "swarm": _each(lambda stream, text: f"deploy_{stream}.1.q2xv8zj1w0d9k3m5n7p4r6t8y@node-1    | {text}"),
    "stern": _each(lambda stream, text: f"{stream} kafka {text}"),
    "kubetail": _each(lambda stream, text: f"[{stream} kafka] {text}"),
    "github-actions": _each(lambda _, text: f"2026-11-20T15:33:21.1012345Z {text}"),
    "gitlab": _each(lambda _, text: f"2026-11-20T15:33:21.101234Z 01O {text}"),
    "aws-tail": _each(lambda stream, text: f"2026-11-20T15:33:21.101000+00:00 kafka/{stream}/8f2a {text}"),
    "cloudwatch-json": _cloudwatch,
    "cloudwatch-insights": _table(("@timestamp", "@logStream", "@message"), lambda s, text: (_ISO_NOW, s, text)),
    "elasticsearch-ndjson": _each(_hit),
    "elasticsearch-search": lambda lines: json.dumps(
        {"took": 3, "hits": {"total": 9, "hits": [json.loads(_hit(*line)) for line in lines]}}
    ),
    "loki-jsonl": _each(
        lambda stream, text: json.dumps({"labels": {"pod": stream}, "line": text, "timestamp": _ISO_NOW})
    ),
    "logcli": _each(lambda stream, text: f'2026-11-20T15:33:21Z {{app="kafka", pod="{stream}"}} {text}'),
    "splunk-json": _each(
        lambda stream, text: json.dumps({"preview": False, "result": {"_raw": text, "host": stream, "_time": "x"}})
    ),
    "splunk-csv": _table(("_time", "host", "_raw"), lambda stream, text: (_ISO_NOW, stream, text)),
    "datadog-csv": _table(("Date", "Host", "Service", "Message"), lambda s, text: (_ISO_NOW, s, "kafka", text)),
    "datadog-json": _each(
        lambda stream, text: json.dumps({"id": "AQ", "content": {"host": stream, "message": text, "service": "kafka"}})
    ),
    "syslog-german": _each(lambda stream, text: f"Okt 20 15:33:21 {stream} kafka[812]: {text}"),
    "syslog-french": _each(lambda stream, text: f"févr. 20 15:33:21 {stream} kafka[812]: {text}"),
    "indented": _each(lambda _, text: "    " + text, "Hello, this is from one broker:\n\n"),
    "quoted": _each(lambda _, text: "> " + text, "On Mon somebody wrote:\n"),
}
#: Those that name the stream of each line.
NAMES_STREAMS = frozenset(WRAPPERS) - {"", "docker-desktop", "github-actions", "gitlab", "indented", "quoted"}


@dataclass(frozen=True)
class Rendering:
    """One way to write a log."""

    layout: str = "kafka"  #: a key of `LAYOUTS`
    wrappers: tuple[str, ...] = ()  #: keys of `WRAPPERS`, the innermost first
    resolution_us: int = MILLISECOND_US  #: what times are cut to

    @property
    def name(self) -> str:
        """A name for a test."""
        coarse = "" if self.resolution_us == MILLISECOND_US else f"-{self.resolution_us}us"
        return "-in-".join((self.layout, *self.wrappers)) + coarse

    def render(self, records: Iterable[tuple[str, Written]]) -> bytes:
        """The text of a file.

        Args:
            records: with the stream that each is of, in the order in which they are written.
        """
        write = LAYOUTS[self.layout]
        texts = [(stream, write(record.at(self.resolution_us))) for stream, record in records]
        lines = texts
        if self.layout != "csv":
            lines = [(stream, line) for stream, text in texts for line in text.split("\n")]
        for wrapper in self.wrappers:
            text = WRAPPERS[wrapper](lines).removesuffix("\n")
            # The outer one does not know the streams of the inner one.
            lines = [("console", line) for line in text.split("\n")]
        return "".join(line + "\n" for _, line in lines).encode()


def render_folder(folder: Path, target: Path, rendering: Rendering, in_one_file: bool = False) -> None:
    """Write the logs below a folder in a rendering; what is no log in Kafka's layout is copied.

    Args:
        in_one_file: all logs in one file, in the order of their times; each first folder below ``folder``, a broker,
            is a stream.
    """
    logs = {path: records_of(content) for path, content in logs_of(folder)}
    for path in folder.rglob("*"):
        plain = path.relative_to(folder).with_name(path.name.removesuffix(".gz"))
        if path.is_file() and plain not in logs:
            (target / path.relative_to(folder)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / path.relative_to(folder))
    if in_one_file:
        streams = [(path.parts[0], record) for path, records in logs.items() for record in records]
        streams.sort(key=lambda item: item[1].time_us)
        target.mkdir(parents=True, exist_ok=True)
        (target / "console.log").write_bytes(rendering.render(streams))
        return
    for path, records in logs.items():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_bytes(rendering.render((path.parts[0], record) for record in records))
