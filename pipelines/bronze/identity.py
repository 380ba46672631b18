"""Hints about the writer of a file: broker, cluster, Kafka version, mode and kind, read from the file's own lines.

A line may name other brokers (elections, fetchers, live brokers). Only forms that Kafka uses for the broker's own id
count, and each is a vote. What a file's lines do not show is found from neighbouring files, in
`pipelines.bronze.neighbours`.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_address
from pathlib import PurePath

from highwater.pipelines.bronze.known import KNOWN
from highwater.pipelines.bronze.layout import RecordHead
from highwater.pipelines.bronze.streams import source_of
from highwater.pipelines.kafka.releases import is_named_at_start

#: Votes beyond this share make a decision; a file whose lines disagree more was put together from several.
AGREEMENT = 0.9

KINDS = ("server", "state-change", "controller", "kafka-request", "log-cleaner")
OTHER = "other"
#: Votes for no kind of file: of loggers that only clients of Kafka have, and of those that brokers and clients share.
CLIENT, SHARED = "client", "shared"

#: Rare texts that identify the writer, anywhere in the file: the reader searches every block for them.
NEEDLES = (b"KafkaConfig values", b"Kafka version", b"luster ID", b"lusterId")

#: Highest id of a node: Kafka keeps ids as signed integers of 32 bits.
NODE_ID_MAX = (1 << 31) - 1
_ID_DIGITS_MAX = len(str(NODE_ID_MAX))

_OWN = re.compile("|".join(KNOWN.own_ids).encode())
_OWN_STATE_CHANGE = re.compile(rb"(?:Broker|Controller) (\d+) ")
_VERSION = re.compile(rb"Kafka version ?: (\S+)")
#: The texts of Kafka that name the cluster of their writer, from their component to the id: no value precedes it.
_CLUSTER = re.compile(
    rb"(?:\[[^\]\n]*\] )?(?:(?:Kafka c|C)luster ID(?: =|:) |Creating new QuorumController with clusterId "
    rb"|\w+ request \w+RequestData\(clusterId=')([A-Za-z0-9_-]{20,36})(?![\w-])"
)
#: A field of a request or its answer in JSON; a client's text has its quotes escaped there.
_CLUSTER_FIELD = re.compile(rb"\"clusterId\":\"([A-Za-z0-9_-]{20,36})\"")
_KRAFT = re.compile(
    rb"\[(?:KafkaRaftServer|RaftManager|BrokerServer|ControllerServer|QuorumController|MetadataLoader)\b"
)
_ZOOKEEPER = re.compile(rb"\[?(?:ZooKeeperClient|KafkaServer id=|Kafka Server \d|Connecting to zookeeper on )")
_SETTING = re.compile(rb"^\t(\S+) = (.*)$", re.MULTILINE)
_CONFIGURED_ID = re.compile(rb"^\t(?:broker|node)\.id = (\d+)$", re.MULTILINE)
#: A line of a start script, an environment or a configuration file: ``KAFKA_CFG_NODE_ID=1``, ``broker.id=1``.
_ENVIRONMENT = re.compile(
    rb"(?:^|(?<=[\s\"'\]]))(?:(?:KAFKA|STRIMZI|KAFKA_CFG)_)?(?:(?:BROKER|NODE)_ID|(?:broker|node)\.id)"
    rb"[\"']?[=:] ?[\"']?(\d{1,9})(?![\w.])",
    re.MULTILINE,
)
#: Maximum number of different loggers, and of partitions, that are counted per file.
_ALIKE_MAX = 2
_PARTITION = re.compile(rb"(?<![\w.-])[\w.-]{1,249}-\d{1,6}(?![\w.-])")
#: Bytes of a message in which a partition is looked for.
_PARTITION_WITHIN = 400
_HOST = re.compile(rb"Client environment:host\.name=(\S{1,255})")
_ENDPOINT = re.compile(r"[\w+-]://(\[[^\],/]*\]|[^:,/]*):(\d+)")
_LOCAL = re.compile(rb"\"connection\":\"(\S{3,80}?)-[^\"]*\"|from connection (\S{3,80}?)-\S+;totalTime")
_NAME_KIND = re.compile(r"(?P<prefix>.*?)(?P<kind>server|state-change|controller|kafka-request|log-cleaner)(?![a-z])")
_CONSOLE = re.compile(r"(?P<prefix>.*?)kafka(?:-?server)?(?![a-z])", re.IGNORECASE)

_STARTED = re.compile(rb"\[Kafka ?(?:Raft)?Server (?:(?:id|nodeId)=)?\d+\],? (?:Kafka Server )?started")


def cluster_in(message: bytes) -> str | None:
    """Return the cluster id that a line names outside of client-chosen values. None if it names none."""
    is_request = message.startswith(b"Completed request:")
    named = _CLUSTER_FIELD.search(message) if is_request else _CLUSTER.match(message)
    return None if named is None else named.group(1).decode()


@dataclass
class Hints:
    """Hints about the writer of a file, from its lines. Counters count how many lines give a value."""

    brokers: Counter[int] = field(default_factory=Counter)  #: ids that lines state as their own
    #: ids that start scripts, environments and files of settings state, outside of records
    environment: Counter[int] = field(default_factory=Counter)
    hosts: Counter[str] = field(default_factory=Counter)  #: names of the host, as a client of ZooKeeper logs it
    clusters: Counter[str] = field(default_factory=Counter)  #: cluster ids
    versions: list[str] = field(default_factory=list)  #: Kafka versions, as programs log it for their classes
    started: list[str] = field(default_factory=list)  #: the last of them that the line of a broker's start follows
    named_us: list[int] = field(default_factory=list)  #: when the last of them was named
    modes: Counter[str] = field(default_factory=Counter)  #: zookeeper, kraft
    listeners: set[str] = field(default_factory=set)  #: host:port of the broker's own listeners, with an explicit host
    locals: Counter[str] = field(default_factory=Counter)  #: host:port of the broker's side of logged connections
    #: kinds of file that the loggers indicate, `CLIENT` and `SHARED`
    kinds: Counter[str] = field(default_factory=Counter)
    levels: Counter[str] = field(default_factory=Counter)  #: levels of records
    loggers: Counter[str] = field(default_factory=Counter)  #: loggers of records, a few
    #: partitions that records name, a few; empty for a record that names none, or several
    partitions: Counter[str] = field(default_factory=Counter)

    def observe(self, head: RecordHead) -> int | None:
        """Add the hints of one record. Return the broker id that the record names as its writer, or None."""
        message = head.message
        kind = kind_of_logger(head.logger or "")
        self.kinds[kind] += 1
        self._observe_extent(head)
        if kind == "kafka-request":
            if local := _LOCAL.search(message):
                self.locals[address((local.group(1) or local.group(2)).decode(errors="replace"))] += 1
            if cluster := cluster_in(message):
                self.clusters[cluster] += 1
            return None
        broker_id = own_broker(head)
        if broker_id is not None:
            self.brokers[broker_id] += 1
        if _KRAFT.match(message):
            self.modes["kraft"] += 1
        elif _ZOOKEEPER.match(message):
            self.modes["zookeeper"] += 1
        if message.startswith(b"KafkaConfig values:"):
            self._observe_settings(message)
        elif version := _VERSION.match(message):
            self._observe_version(version.group(1).decode(errors="replace"), head.time_us)
        elif self.named_us and _STARTED.match(message) and is_named_at_start(self.named_us[0], head.time_us):
            self.started = self.versions[-1:]
        elif cluster := cluster_in(message):
            self.clusters[cluster] += 1
        elif host := _HOST.match(message):
            self.hosts[host.group(1).decode(errors="replace")] += 1
        return broker_id

    def observe_text(self, text: bytes) -> None:
        """Add the hints of lines that are not records."""
        if b"ID" in text or b".id" in text:
            self.environment.update(int(match.group(1)) for match in _ENVIRONMENT.finditer(text))

    @property
    def version(self) -> str | None:
        """Return the broker's Kafka version: the last one that is followed by a start of the broker.

        Without a start, return the last version in the file. None if a client wrote lines of the file.
        """
        named = self.started or ([] if self.kinds[CLIENT] else self.versions)
        return named[-1] if named else None

    @property
    def is_clients(self) -> bool:
        """Return True if a Kafka client wrote lines of the file, and no broker did."""
        return self.kinds[CLIENT] > 0 and not self.brokers and not any(self.kinds[kind] for kind in KINDS)

    def _observe_extent(self, head: RecordHead) -> None:
        """Record loggers, partitions and levels. An excerpt may have a single one of them."""
        self.levels[head.level or ""] += 1
        if len(self.loggers) < _ALIKE_MAX:
            self.loggers[head.logger or ""] += 1
        if len(self.partitions) < _ALIKE_MAX:
            named = set(_PARTITION.findall(head.message, 0, _PARTITION_WITHIN))
            self.partitions[named.pop().decode(errors="replace") if len(named) == 1 else ""] += 1

    def _observe_version(self, version: str, time_us: int) -> None:
        self.named_us = [time_us]
        if version != "unknown" and self.versions[-1:] != [version]:
            self.versions.append(version)

    def _observe_settings(self, message: bytes) -> None:
        """Record listeners and mode from the configuration that a broker logs at start. They count as many lines."""
        settings = {key.decode(): value.decode(errors="replace") for key, value in _SETTING.findall(message)}
        for key in ("listeners", "advertised.listeners"):
            for host, port in _ENDPOINT.findall(settings.get(key, "")):
                # An open listener (0.0.0.0) has the same address on every broker, so it identifies none.
                if host not in ("", "0.0.0.0", "[::]"):
                    self.listeners.add(address(f"{host}:{port}"))
        if settings.get("process.roles", "[]").strip("[]"):
            self.modes["kraft"] += 1000
        elif settings.get("zookeeper.connect", "null") not in ("", "null"):
            self.modes["zookeeper"] += 1000


def own_broker(head: RecordHead) -> int | None:
    """Return the id of the broker that a record names as its writer. None if it names none."""
    message, kind = head.message, kind_of_logger(head.logger or "")
    if kind == "kafka-request":
        return None
    if message.startswith(b"KafkaConfig values:"):
        number = _CONFIGURED_ID.search(message)  # not -1: to be generated
    else:
        number = _OWN.match(message) or (_OWN_STATE_CHANGE.match(message) if kind == "state-change" else None)
    return _id_of(number)


def named_broker(text: bytes) -> int | None:
    """Return the broker id that a line names as its own, anywhere in the line. None if it names none."""
    number = _OWN.search(text)
    return _id_of(number)


def _id_of(match: re.Match[bytes] | None) -> int | None:
    """Return the node id in a match. None if the number cannot be a node id."""
    digits = match.group(match.lastindex) if match and match.lastindex else b""
    # Limiting the digits first bounds the time of int(), which refuses thousands of them.
    number = int(digits) if 0 < len(digits) <= _ID_DIGITS_MAX else None
    return number if number is not None and number <= NODE_ID_MAX else None


def address(text: str) -> str:
    """Return ``host:port`` in one spelling.

    IPv6 is bracketed and short in listeners, but bare and long in connections.
    """
    host, _, port = text.rpartition(":")
    host = host.strip("[]")
    try:
        return f"{ip_address(host).compressed}:{port}" if ":" in host else f"{host}:{port}"
    except ValueError:
        return f"{host}:{port}"


@lru_cache(maxsize=4096)
def kind_of_logger(logger: str) -> str:
    """Return the kind of file that a logger writes to by default."""
    for prefix, kind in KNOWN.logger_kinds.items():
        if logger.startswith(prefix):
            return kind
    return OTHER


def kind_of_name(path: str) -> tuple[str | None, str]:
    """Return (kind of log by the file's name or None, prefix of the name such as ``broker1-``)."""
    if source := source_of(path):
        # Lines of one source in a file of several: no other file has the same source.
        return None, source
    name = PurePath(path).name
    if match := _NAME_KIND.match(name):
        return match.group("kind"), match.group("prefix").removesuffix("kafka-")
    if match := _CONSOLE.match(name):
        return "server", match.group("prefix")
    return None, ""


def is_appender(path: str) -> bool:
    """Return True if a file has the name of a log that Kafka ships, such as ``broker1-server.log``."""
    return _NAME_KIND.match(PurePath(path).name) is not None


def kind_of(path: str, kinds: Counter[str]) -> str:
    """Return the kind of a file: by its name if the content does not contradict the name, else by its content."""
    named, _ = kind_of_name(path)
    total = sum(kinds.values())
    if not total:
        return named or OTHER
    if kinds[CLIENT] and not any(kinds[kind] for kind in KINDS):
        return OTHER
    kinds = Counter({kind: kinds[kind] for kind in (*KINDS, OTHER) if kinds[kind]})
    if not kinds:
        return named or "server"
    total = sum(kinds.values())
    top, votes = kinds.most_common(1)[0]
    if named and named != "server" and kinds[named]:
        return named
    if top not in ("server", OTHER) and votes >= AGREEMENT * total:
        return top
    if named == "server" and kinds[OTHER] < total:
        return "server"
    # A console log has everything in it: the server's grammar covers it.
    return OTHER if kinds[OTHER] > total / 2 else "server"


def decide(votes: Counter[int]) -> tuple[int | None, str | None]:
    """Return (id that most lines agree on, None), or (None, reason why they do not)."""
    if not votes:
        return None, None
    top, count = votes.most_common(1)[0]
    if count >= AGREEMENT * sum(votes.values()):
        return top, None
    names = " and ".join(str(broker) for broker, _ in sorted(votes.items()))
    mixed = f"lines of brokers {names} are mixed: give each broker its own file"
    return None, f"{mixed}; until then only lines that name their broker count"
