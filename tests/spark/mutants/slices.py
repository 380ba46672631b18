"""Slices of real logs, small enough to be audited many times over: records as bronze has them, in plain Python.

A slice has what brokers say at their start and the whole history of its topics, which is little, and cuts the request
logs and the TRACE and DEBUG lines by time. Records that no rule reads are left out.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC
from functools import cache
from pathlib import Path
from typing import NamedTuple

from highwater.pipelines.bronze.layout import Parser
from highwater.pipelines.bronze.layouts.patterns import KAFKA, pattern_layout
from highwater.pipelines.grammars.facts import parse_record
from highwater.pipelines.grammars.record import Parsed
from tests.reading import columns_of

CORPORA = Path(__file__).resolve().parents[4] / "shared" / "corpora"
KINDS = ("server", "state-change", "controller", "kafka-request", "log-cleaner")
REQUESTS = "kafka-request"
_FETCHERS = r"broker-\d+-fetcher-\d+|ReplicaFetcherThread-\d+-\d+"
#: Fetches and produces; what coordinators append is not looked at here.
_READ_OR_WRITE = re.compile(rb'"requestApiKeyName":"(?:PRODUCE|FETCH)"|\{api_key=[01],|\(apiKey=(?:PRODUCE|FETCH),')
_CLIENT = re.compile(rb'"clientId":"([^"]*)"|client_id=([^,}]*)[,}]|clientId=([^,)]*)[,)]')
_PRODUCE = re.compile(rb'"requestApiKeyName":"PRODUCE"|\{api_key=0,|\(apiKey=PRODUCE,')
#: Tables whose facts the rules do not read.
_UNREAD = frozenset({"delayed_operation_checks", "unparsed_lines"})
#: Of these tables the sources that they read.
_READ = {
    "high_watermarks": frozenset({"updated", "non_monotonic", "follower"}),
    "replica_fetches": frozenset({"request"}),
    "appends": frozenset({"replica_manager"}),
}


class Record(NamedTuple):
    """One record of ``bronze.log_lines``; the order of a file's records is that of ``byte_offset``."""

    file: str
    broker_id: int
    kind: str
    byte_offset: int
    line_no: int
    time_us: int
    level: str
    logger: str
    line_count: int
    message: str


Records = tuple[Record, ...]


@dataclass(frozen=True)
class Slice:
    """What is kept of a corpus."""

    corpus: str  #: its folder
    topics: tuple[str, ...]  #: topics whose lines are kept
    #: since, until: time of day between which requests and detailed lines are kept
    since: str
    until: str
    shows: frozenset[str] = frozenset()  #: rules with violations in the undamaged slice
    #: pattern of client ids, beside the fetchers', whose requests are kept
    clients: str = r"w\d+|p\d+|ledger-writer|svc-\d+"
    detailed: bool = True  #: TRACE and DEBUG lines are kept

    def read(self) -> Records:
        """Its records, by file and place."""
        return _read(self)


SLICES = {
    "kip101": Slice("kip101", ("ledger",), "15:39:49", "15:41:16", frozenset({"committed-data-lost"})),
    "unclean": Slice("unclean28", ("sessions",), "15:54:34", "15:54:50", frozenset({"committed-data-lost"})),
    "lostwake": Slice("lostwake28", ("transfers",), "15:52:46", "15:53:10", frozenset({"late-completion"})),
    "duplicate": Slice(
        "kraft43-faults",
        ("payments",),
        "15:32:10.300",
        "15:32:13",
        frozenset({"acked-as-duplicate-of-another-batch"}),
        clients=r"p5",
    ),
    "kraft39": Slice("kraft39-faults", ("payments",), "15:34:02.500", "15:34:05.500", clients=r"p5|p3|c\d+"),
    "zk28": Slice("zk28-faults", ("payments",), "15:27:07.500", "15:27:14"),
    "zk11": Slice("zk11-faults", ("payments",), "04:11:09", "04:11:20.500", clients=r"p5"),
    "elr": Slice("kraft40-elr", ("ledger",), "04:35:18", "04:35:34", clients=r"svc-1"),
}


def available() -> bool:
    """Whether the corpora are beside this checkout."""
    return CORPORA.is_dir()


@cache
def _read(part: Slice) -> Records:
    found: list[Record] = []
    for path in sorted((CORPORA / part.corpus).glob("broker-*/logs/*.log*.gz")):
        kind = next(kind for kind in KINDS if path.name.startswith(kind))
        broker_id = int(path.parts[-3].removeprefix("broker-"))
        parse = pattern_layout(KAFKA).parser(UTC)
        file = f"broker-{broker_id}/{path.name.removesuffix('.gz')}"
        found += _records(part, path, file, broker_id, kind, parse)
    return tuple(found)


def _records(part: Slice, path: Path, file: str, broker_id: int, kind: str, parse: Parser) -> Iterator[Record]:
    keep = _Filter(part, kind)
    for offset, line_no, text in _texts(path):
        if not keep(text):
            continue
        body = text.rstrip(b"\n")
        head = parse(body)
        if head is None:
            continue
        time_us, level, logger, message = head
        if not _tells(parse_record(kind, time_us, level, logger, None, message.decode())):
            continue
        lines = body.count(b"\n") + 1
        yield Record(
            file, broker_id, kind, offset, line_no, time_us, level or "", logger or "", lines, message.decode()
        )


def _texts(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Lines with their continuation lines, by offset and number."""
    held: list[bytes] = []
    start, first, offset = 0, 1, 0
    with gzip.open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if line.startswith(b"[2") and held:
                yield start, first, b"".join(held)
                held = []
            if not held:
                start, first = offset, number
            held.append(line)
            offset += len(line)
    if held:
        yield start, first, b"".join(held)


def _tells(parsed: Parsed) -> bool:
    """Whether a record becomes facts that the audit reads: the others make no difference to it."""
    return any(
        fact.table not in _UNREAD and (fact.table not in _READ or columns_of(fact)["source"] in _READ[fact.table])
        for fact in parsed.facts
    )


class _Filter:
    """Whether a record of one file belongs to a slice."""

    def __init__(self, part: Slice, kind: str) -> None:
        self._since, self._until = part.since.encode(), part.until.encode()
        self._requests = kind == REQUESTS
        self._detailed = part.detailed
        self._clients = re.compile(f"{_FETCHERS}|{part.clients}".encode())
        self._topics = [topic.encode() for topic in part.topics]
        self._partition = re.compile("|".join(rf"\b{re.escape(topic)}\b" for topic in part.topics).encode())
        self._named = re.compile(rb"[\w.]+-\d+\b(?!\.)|__consumer_offsets|__transaction_state")

    def __call__(self, text: bytes) -> bool:
        if not self._since <= text[12:24].replace(b",", b".") < self._until:
            return not self._requests and not self._bulk(text) and self._wanted(text)
        if self._requests:
            return self._request(text)
        if self._bulk(text):
            return self._detailed and bool(self._partition.search(text))
        return self._wanted(text)

    def _bulk(self, text: bytes) -> bool:
        """A detailed line; the ones of the state-change log are few."""
        return text[26:31] in (b"TRACE", b"DEBUG") and b"(state.change.logger)" not in text[-60:]

    def _wanted(self, text: bytes) -> bool:
        if b"__consumer_offsets" in text or b"__transaction_state" in text:
            return bool(self._partition.search(text))
        if b"(state.change.logger)" in text[-60:] or b"artition" in text[:400]:
            return bool(self._partition.search(text)) or not self._named.search(text)
        return True

    def _request(self, text: bytes) -> bool:
        if not _READ_OR_WRITE.search(text):
            return False
        client = _CLIENT.search(text)
        name = client[client.lastindex] if client and client.lastindex else b""
        if self._clients.fullmatch(name) is None:
            return False
        return not _PRODUCE.search(text) or any(topic in text for topic in self._topics)
