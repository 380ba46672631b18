"""Inputs large in one way: ``python -m tests.bench.extremes [CASE ...] [--size PERCENT] [--markdown DOCUMENT]``.

- *files*: 20,000 logs of a few lines each;
- *file*: one plain log of 5 GB;
- *hot*: 99 of 100 requests are of one of 50 partitions, 4,851 times as many as of each other;
- *partitions*: 50,000 partitions with two requests each;
- *brokers*: 1,000 brokers, each of which lists its settings and those of 100 topics.

Each is audited once, in a process and a lake of its own. The logs are made of lines of the bundled slice. Says how long
it took and how much memory the JVM, the driver and the largest worker had at most.
"""

from __future__ import annotations

import argparse
import gzip
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any

import orjson

from tests.bench.figures import insert, markdown
from tests.bench.hours import moved
from tests.bench.performance import STAGES, audited, stages_of

SLICE = Path(__file__).parents[1] / "data" / "slice"
HEADS = ("case", "MB of text", "audit", *STAGES, "peak JVM", "peak driver", "peak worker")
_MB = 1e6
_BEGUN = datetime(2026, 11, 20, 15, 34)
_LINE = re.compile(rb"^\[([^\]]*)\] DEBUG Completed request:(\{.*\}) (\(kafka\.request\.logger\))$")
_LINES_OF_FILE = 10
_HOT = 100
_TOPICS = 100
_OF_TOPIC = 100


def main(arguments: list[str]) -> None:
    """Make, measure, print, and write the document."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case", nargs="*", choices=[*CASES, []], help="all if none is given")
    parser.add_argument("--size", type=int, default=100, help="percent of what is said above")
    parser.add_argument("--conf", type=Path, help="TOML of the audits")
    parser.add_argument("--markdown", type=Path, help="a document that holds the table")
    given = parser.parse_args(arguments)
    rows = []
    for case in given.case or CASES:
        with tempfile.TemporaryDirectory(prefix="highwater-bench-") as scratch:
            size = CASES[case](Path(scratch), given.size / 100)
            usage = audited(Path(scratch), given.conf)
        stages = stages_of(usage.printed)
        spent = (f"{stages[stage]:.1f} s" if stage in stages else "-" for stage in STAGES)
        peaks = (f"{usage.peak[kind] / _MB:,.0f} MB" for kind in ("jvm", "python driver", "python worker"))
        rows.append((case, f"{size / _MB:,.0f}", f"{usage.seconds:.1f} s", *spent, *peaks))
        print(*rows[-1], sep="  ", flush=True)
    lines = markdown(HEADS, rows)
    print("\n" + "\n".join(lines))
    if given.markdown:
        insert(given.markdown, lines)


# ---------------------------------------------------------------------------- cases


def many_files(folder: Path, share: float) -> int:
    """Requests of one broker, a few lines a file."""
    lines, size = _hours(), _told_broker(folder)
    for number in range(int(20_000 * share)):
        size += _write(folder / "broker-1" / f"kafka-request.log.{number}", islice(lines, _LINES_OF_FILE))
    return size


def large_file(folder: Path, share: float) -> int:
    """Requests of one broker in one file."""

    def enough() -> Iterator[bytes]:
        size = 0
        for line in _hours():
            yield line
            size += len(line)
            if size > 5_000_000_000 * share:
                return

    return _told_broker(folder) + _write(folder / "broker-1" / "kafka-request.log", enough())


def hot_partition(folder: Path, share: float) -> int:
    """Appends to partition 0, but each hundredth to one of 49 others in turn."""
    others = cycle(range(1, 50))
    partitions = (next(others) if number % _HOT == 0 else 0 for number in range(int(50 * 49 * _HOT * share)))
    appends = _appends(("orders", number) for number in partitions)
    return _told_broker(folder) + _write(folder / "broker-1" / "kafka-request.log", appends)


def many_partitions(folder: Path, share: float) -> int:
    """An append, and the fetch that takes it, of each partition."""
    places = ((f"topic-{number // _OF_TOPIC}", number % _OF_TOPIC) for number in range(int(50_000 * share)))
    return _told_broker(folder) + _write(folder / "broker-1" / "kafka-request.log", _appends(places))


def many_brokers(folder: Path, share: float) -> int:
    """Starts of brokers, with their settings, and a log of each of their topics with its own."""
    with gzip.open(SLICE / "broker-1" / "logs" / "server.log.gz") as lines:
        said = lines.read().splitlines(keepends=True)
    created = next(line for line in said if b"Created log for partition orders-3 " in line)
    size = 0
    for broker_id in range(1, int(1_000 * share) + 1):
        text = [line.replace(b"id=1]", b"id=%d]" % broker_id) for line in said]
        text = [re.sub(rb"(\b(?:broker|node)\.id = )1$", rb"\g<1>%d" % broker_id, line) for line in text]
        text += [
            created.replace(b"orders-3", b"topic-%d-%d" % (topic, broker_id)).replace(
                b"properties {}", b"properties {min.insync.replicas=2, retention.ms=%d}" % (topic * 1000)
            )
            for topic in range(_TOPICS)
        ]
        size += _write(folder / f"broker-{broker_id}" / "server.log", text)
    return size


CASES: dict[str, Callable[[Path, float], int]] = {
    "files": many_files,
    "file": large_file,
    "hot": hot_partition,
    "partitions": many_partitions,
    "brokers": many_brokers,
}


def _told_broker(folder: Path) -> int:
    """The log that says whose the requests are."""
    with gzip.open(SLICE / "broker-1" / "logs" / "server.log.gz") as lines:
        return _write(folder / "broker-1" / "server.log", lines)


def _write(path: Path, lines: Any) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        return sum(map(file.write, lines))


def _hours() -> Iterator[bytes]:
    """Lines of a broker that goes on for ever."""
    with gzip.open(SLICE / "broker-1" / "logs" / "kafka-request.log.gz", "rt", encoding="utf-8") as file:
        lines = file.readlines()
    for hour in count():
        for line in lines:
            yield moved(line, hour).encode()


def _appends(places: Iterator[tuple[str, int]]) -> Iterator[bytes]:
    """An append to each partition in turn, and the follower's fetches that let it be answered."""
    produce, fetch = _template(b"PRODUCE", b'"acks":-1'), _template(b"FETCH", b'"clientId":"broker-2-fetcher-0"')
    ends: dict[tuple[str, int], int] = {}
    for number, (topic, partition) in enumerate(places):
        offset = ends.get((topic, partition), 0)
        ends[topic, partition] = offset + 1
        begun = _BEGUN + timedelta(milliseconds=10 * number)
        append = produce(number, topic, partition, offset)
        took = fetch(2 * number, topic, partition, offset), fetch(2 * number + 1, topic, partition, offset + 1)
        for later_ms, line in ((2, took[0]), (4, append), (6, took[1])):
            at = begun + timedelta(milliseconds=later_ms)
            yield f"[{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03}] ".encode() + line


def _template(*needles: bytes) -> Callable[[int, str, int, int], bytes]:
    """A function that gives a request like the first one with these texts, of another partition."""
    with gzip.open(SLICE / "broker-1" / "logs" / "kafka-request.log.gz") as lines:
        match = next(
            match for line in lines if all(needle in line for needle in needles) and (match := _LINE.match(line))
        )
    body = orjson.loads(match[2])
    if b"FETCH" in needles:
        # The last version that names topics: these logs tell no names of ids.
        body["requestHeader"]["requestApiVersion"] = 12
        body["request"]["replicaId"] = body["request"].pop("replicaState")["replicaId"]
        for side, name in (("request", "topics"), ("response", "responses")):
            body[side][name] = [{"topic": None, "partitions": topic["partitions"]} for topic in body[side][name]]

    def line(correlation_id: int, topic: str, partition: int, offset: int) -> bytes:
        values: dict[str, Any] = {"name": topic, "topic": topic, "index": partition, "partition": partition}
        values |= {"partitionIndex": partition, "baseOffset": offset, "fetchOffset": offset, "highWatermark": offset}
        values |= {"lastStableOffset": offset, "sessionId": 0, "sessionEpoch": -1, "transactionalId": None}
        request = _with(body, values)
        request["requestHeader"]["correlationId"] = correlation_id
        request |= {"totalTimeMs": 2.0, "localTimeMs": 0.5, "remoteTimeMs": 1.4, "requestQueueTimeMs": 0.05}
        request |= {"responseQueueTimeMs": 0.025, "sendTimeMs": 0.025}
        return b"DEBUG Completed request:" + orjson.dumps(request) + b" " + match[3] + b"\n"

    return line


def _with(value: Any, values: dict[str, Any]) -> Any:
    """JSON with other values wherever a name is used, and of each list the first item."""
    if isinstance(value, dict):
        return {name: values[name] if name in values else _with(item, values) for name, item in value.items()}
    return [_with(item, values) for item in value[:1]] if isinstance(value, list) else value


if __name__ == "__main__":
    main(sys.argv[1:])
