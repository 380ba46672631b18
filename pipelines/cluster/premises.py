"""State of the control plane for all stages of an audit: small, and collected once. Pure.

`pipelines.cluster.stage` collects it with one query. This module separates the rows by their kinds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from operator import itemgetter
from typing import Any, Final, NamedTuple

from highwater.pipelines.base.instants import SECOND_US
from highwater.pipelines.base.values import UNKNOWN_BROKER, UNKNOWN_CLUSTER
from highwater.pipelines.kafka.context import STARTED, ConfigLine, Contexts, History, Spans, build_contexts
from highwater.pipelines.kafka.controller_rows import EventRow, LineRef
from highwater.pipelines.kafka.future_logs import FutureLogLine, FutureLogs, find_future_logs
from highwater.pipelines.kafka.releases import is_named_at_start
from highwater.pipelines.kafka.replayed import is_past, start_ups
from highwater.pipelines.kafka.seals import Broker
from highwater.schemas.fields import Int, Long, build_row

# Kinds of rows, in the column `kind`.
LIFE: Final = "life"
CONFIG: Final = "config"
EVENT: Final = "event"
RECORD: Final = "record"
SNAPSHOT: Final = "snapshot"
NAME: Final = "name"
FILE: Final = "file"
PARSED: Final = "parsed"
TRANSACTIONAL: Final = "transactional"
THREAD: Final = "thread"
CHAIN: Final = "chain"
FETCH_END: Final = "fetch_end"
THREAD_END: Final = "thread_end"
FUTURE_LOG: Final = "future_log"
STRETCH: Final = "stretch"

#: `silver.broker_lifecycle.event` of a broker that starts, of one that has stopped, and of a clock that went back by
#: the seconds of `detail`; of one that has started.
STARTING: Final = "starting"
HAS_STARTED: Final = "started"
SHUTTING_DOWN: Final = "shutting_down"
FETCHER_STOPPING: Final = "fetcher_stopping"
SHUT_DOWN: Final = "shut_down"
CLOCK_SET_BACK: Final = "clock_set_back"
REQUEST_FILE: Final = "kafka-request"
#: `Stretch.detail` of fetches that show how the logs of a leader's partitions grow.
GROWTH: Final = "growth"
PRODUCE: Final = "PRODUCE"
#: Levels that brokers do not log at by default. An operator may switch them on and off.
LOW_LEVELS: Final = ("TRACE", "DEBUG")
#: Events that a handover can follow from, or end with; all others stay with their partition.
EVENTS: Final = (
    "broker_failed",
    "log_dir_failed",
    "brokers_changed",
    "broker_fenced",
    "broker_unfenced",
    "broker_registered",
    "controlled_shutdown",
    "controller_elected",
    "config_changed",
    "unclean_election",
    "topic_deleted",
)
#: Record of the metadata log that names the active controller from there on.
LEADER_CHANGE: Final = "LeaderChangeMessage"
#: Files that are not Kafka's.
OTHER_FILE: Final = "other"
#: Kinds of files whose loggers print no value that a client chose.
CLIENT_FREE: Final = frozenset({"state-change", "log-cleaner"})
#: Silence that ends a run of a thread's fetches. A fetch waits for half a second (replica.fetch.wait.max.ms): the
#: thread or its leader froze.
SILENT_US: Final = 2_000_000
MINUTE_US: Final = 60_000_000
#: Client id of a fetcher thread: the follower's broker id, and the number of the thread.
FETCHER_CLIENT: Final = r"^broker-(\d+)-fetcher-(\d+)$"
#: Client id of a fetcher thread in any release: up to 0.10 it names the thread and the leader.
FETCHER_THREAD: Final = r"^(?:broker-\d+-fetcher-\d+|ReplicaFetcherThread-\d+-\d+)$"


class LogFile(NamedTuple):
    """A row of `bronze.log_files`, once for each broker that wrote the file."""

    file_id: str
    path: str
    kind: str
    cluster_id: str  #: `UNKNOWN_CLUSTER` where no line says it
    broker_id: Int | None
    #: first_us, last_us: of its records; None where none has a time
    first_us: Long | None
    last_us: Long | None
    parsed: bool  #: silver has its rows
    resolution_us: Long | None = None  #: how fine its times are; None counts as milliseconds
    kafka_version: str | None = None  #: that its broker logged; None where no line shows it


class LifecycleRow(NamedTuple):
    """A row of `silver.broker_lifecycle`: a start, a stop, or a line with version, mode or a clock set back."""

    cluster_id: str
    broker_id: Int
    time_us: Long
    ref: LineRef
    event: str
    mode: str | None
    kafka_version: str | None
    detail: str | None


class FetchRun(NamedTuple):
    """Follower fetches with consecutive correlation ids on one connection."""

    cluster_id: str
    broker_id: Int  #: leader whose request log has them
    connection: str
    replica_id: Int
    first_number: Long
    last_number: Long
    #: first_us, last_us: times of the first and the last of their lines
    first_us: Long
    last_us: Long
    #: numbers left out between them, in lines from `missing_since_us` to `missing_until_us`; None for none
    missing: Long | None = None
    missing_since_us: Long | None = None
    missing_until_us: Long | None = None


class FetchEnd(NamedTuple):
    """A stopped fetcher thread, or failures to fetch within a minute, with first and last time."""

    cluster_id: str
    broker_id: Int  #: the follower
    leader: Int
    first_us: Long
    last_us: Long
    stopped: bool = False  #: the thread was stopped


class Stretch(NamedTuple):
    """A time range in which one kind of line was logged without a long gap."""

    cluster_id: str
    broker_id: Int
    file_kind: str  #: Kind of the log, as in ``bronze.log_files``.
    detail: str  #: Level of the lines, with the logger at `LOW_LEVELS`; API of the requests; or `GROWTH`.
    first_us: Long
    last_us: Long
    topic: str | None = None  #: Topic, or ``id:<topic id>``, of `GROWTH`.


@dataclass(frozen=True)
class Premises:
    """Versions, settings, files and starts that all stages of an audit share."""

    contexts: Contexts = field(default_factory=Contexts)  #: versions and configuration of the brokers
    files: tuple[LogFile, ...] = ()  #: every log file that was read
    #: by (cluster, topic id), of all ids that a line names
    topic_names: Mapping[tuple[str, str], str] = field(default_factory=dict)
    lives: tuple[LifecycleRow, ...] = ()  #: in the order of time
    #: rows of `EVENTS` with their cluster; without rows of one partition, and without replayed ones
    events: tuple[tuple[str, EventRow], ...] = ()
    #: of the metadata log, about nodes or about who is the active controller: rows of `silver.metadata_records`,
    #: their instants in microseconds
    records: tuple[Mapping[str, Any], ...] = ()
    #: by (cluster, node), the last offset that its newest snapshot of the metadata log covers
    snapshots: Mapping[tuple[str, int], int] = field(default_factory=dict)
    #: transactional ids by (cluster, producer id), as requests about transactions name both
    producers: Mapping[tuple[str, int], str] = field(default_factory=dict)
    #: by (cluster, client id, host) the transactional id of a client that uses one only. Request logs before 2.8 do
    #: not print a produce's. A transactional producer sends nothing outside of transactions, so the one that began one
    #: under this name and from this host is taken for the sender
    transactional_clients: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    #: by cluster, the follower's fetcher thread that each connection to a leader belongs to
    threads: Mapping[str, Mapping[tuple[int, str], int]] = field(default_factory=dict)
    runs: tuple[FetchRun, ...] = ()  #: of the fetches of all followers, unordered
    fetch_ends: tuple[FetchEnd, ...] = ()  #: when threads that fetch stopped, or could not fetch
    stretches: tuple[Stretch, ...] = ()  #: unordered; stretches of different files overlap
    future_logs: FutureLogs = field(default_factory=dict)  #: of replicas that are moved between directories

    @cached_property
    def modes(self) -> dict[Broker, str]:
        """Return the mode of each broker at its last start: kraft or zookeeper."""
        return {(life.cluster_id, life.broker_id): life.mode for life in self.lives if life.mode is not None}

    @cached_property
    def has_overlapping_request_logs(self) -> bool:
        """Return True if two request logs of one broker overlap, so that a line may be in both."""
        last_us: dict[tuple[str, int | None], int] = {}
        spans = ((file.first_us, file) for file in self.files if file.kind == REQUEST_FILE)
        for first_us, file in sorted((first_us, file) for first_us, file in spans if first_us is not None):
            broker = file.cluster_id, file.broker_id
            if broker in last_us and first_us <= last_us[broker]:
                return True
            last_us[broker] = max(last_us.get(broker, first_us), file.last_us or first_us)
        return False

    @cached_property
    def _histories(self) -> dict[Broker, list[tuple[Any, Any]]]:
        """Return by broker the (key, history) pairs of its settings and of its topics' overrides, in key order."""
        histories: dict[Broker, list[tuple[Any, Any]]] = defaultdict(list)
        settings: tuple[Mapping[Any, Any], ...] = (self.contexts.broker_configs, self.contexts.topic_configs)
        for configs in settings:
            for key, history in sorted(configs.items()):
                histories[key[0], key[1]].append((key, history))
        return dict(histories)

    def digest(self, broker: Broker, before_us: int) -> str:
        """Return the hash of a broker's version and settings before a time. Its replay depends on them."""
        lag = self.contexts.list_lag_times(*broker)
        parts: list[object] = [
            [era for era in self.contexts.eras.get(broker, ()) if era[0] < before_us],
            lag[-1][1] if lag else None,
            self.contexts.settle_us,
        ]
        for key, history in self._histories.get(broker, ()):
            # A key that is first logged later is left out: a new topic does not change the past.
            if before := [entry for entry in history if entry[0] < before_us]:
                parts.append([key, before])
        coarse = [(since, min(until, before_us)) for since, until in self.contexts.coarse.get(broker, ())]
        parts += [["coarse", span] for span in coarse if span[0] < span[1]]
        return sha256(repr(parts).encode()).hexdigest()[:16]


def build_premises(rows: Iterable[Mapping[str, Any]], settle_us: int) -> Premises:
    """Build the premises from rows of all kinds, in any order. A row has the columns of its kind.

    Args:
        settle_us: see `pipelines.kafka.context.Context`.
    """
    by_kind: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        by_kind[row["kind"]].append(row)
    parsed = {row["file_id"] for row in by_kind[PARSED]}
    threads: dict[str, dict[tuple[int, str], int]] = defaultdict(dict)
    for row in by_kind[THREAD]:
        threads[row["cluster_id"]].setdefault((row["broker_id"], row["connection"]), row["fetcher_id"])
    lives = tuple(build_row(LifecycleRow, row) for row in sorted(by_kind[LIFE], key=_sort_key))
    files = tuple(file for row in by_kind[FILE] for file in _repeat_file(row, row["file_id"] in parsed))
    contexts = _build_contexts(lives, by_kind[CONFIG], files, settle_us)
    starts = start_ups((life.cluster_id, life.broker_id, life.time_us, life.event) for life in lives)
    return Premises(
        contexts=replace(
            contexts,
            coarse=find_coarse_spans(files),
            last_runs=_find_last_runs(lives, files),
            client_free_files=frozenset(file.file_id for file in files if file.kind in CLIENT_FREE),
        ),
        files=files,
        topic_names=_keep_highest(by_kind[NAME], "topic_id", "topic"),
        lives=lives,
        events=tuple(
            (row["cluster_id"], build_row(EventRow, row))
            for row in by_kind[EVENT]
            if not is_past(starts, row["cluster_id"], row["broker_id"], row["time_us"], row["detail"])
        ),
        records=tuple(by_kind[RECORD]),
        snapshots=_keep_highest(by_kind[SNAPSHOT], "broker_id", "offset"),
        threads=dict(threads),
        runs=tuple(build_row(FetchRun, row) for row in by_kind[CHAIN] if row["broker_id"] is not None),
        fetch_ends=tuple(_merge_fetch_ends(by_kind)),
        stretches=tuple(build_row(Stretch, row) for row in by_kind[STRETCH]),
        producers=_map_producers(by_kind[TRANSACTIONAL]),
        transactional_clients=_map_transactional_clients(by_kind[TRANSACTIONAL]),
        future_logs=find_future_logs(_make_future_log_line(row) for row in by_kind[FUTURE_LOG]),
    )


def _make_future_log_line(row: Mapping[str, Any]) -> FutureLogLine:
    replica = row["cluster_id"], row["broker_id"], row["topic"], row["partition"]
    return FutureLogLine(replica, row["time_us"], row["event"], row["log_dir"])


def _merge_fetch_ends(by_kind: Mapping[str, Iterable[Mapping[str, Any]]]) -> Iterator[FetchEnd]:
    """Yield thread stops unchanged, and the failures of each minute merged into one."""
    minutes: dict[tuple[Any, ...], FetchEnd] = {}
    for kind in (THREAD_END, FETCH_END):
        for row in by_kind[kind]:
            if row["broker_id"] is None:
                continue
            link = row["cluster_id"], row["broker_id"], row["leader"]
            end = FetchEnd(*link, row["first_us"], row["last_us"], stopped=kind == THREAD_END)
            if end.stopped:
                yield end
                continue
            key = *link, end.first_us // MINUTE_US
            known = minutes.get(key, end)
            minutes[key] = FetchEnd(*link, min(known.first_us, end.first_us), max(known.last_us, end.last_us))
    yield from minutes.values()


def _map_producers(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, int], str]:
    named: dict[tuple[str, int], str] = {}
    for row in rows:
        if row["producer_id"] is not None and row["producer_id"] >= 0:
            key = row["cluster_id"], row["producer_id"]
            named[key] = max(named.get(key, ""), row["transactional_id"])
    return named


def _map_transactional_clients(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str, str], str]:
    used: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for row in rows:
        if row["begins"] and row["client_id"] is not None:
            used[row["cluster_id"], row["client_id"], row["remote_host"] or ""].add(row["transactional_id"])
    return {client: next(iter(ids)) for client, ids in used.items() if len(ids) == 1}


def _sort_key(row: Mapping[str, Any]) -> tuple[int, str, int]:
    return row["time_us"], row["file_id"], row["byte_offset"]


def _keep_highest(rows: Iterable[Mapping[str, Any]], name: str, value: str) -> dict[tuple[str, Any], Any]:
    """Return the highest `value` by (cluster, column `name`)."""
    return {(row["cluster_id"], row[name]): row[value] for row in sorted(rows, key=itemgetter(value))}


def _repeat_file(row: Mapping[str, Any], parsed: bool) -> Iterator[LogFile]:
    """Yield a file once for each broker that wrote it."""
    cluster_id = row["cluster_id"] or UNKNOWN_CLUSTER
    times = row["first_us"], row["last_us"]
    for broker_id in row["brokers"] or (row["broker_id"],):
        names = (row["file_id"], row["path"], row["file_kind"], cluster_id, broker_id)
        yield LogFile(*names, *times, parsed, row["resolution_us"], row["kafka_version"])


def find_coarse_spans(files: Iterable[LogFile]) -> Spans:
    """Return by (cluster, broker) the (start, end) times in which timestamps are whole seconds.

    A range covers a broker's first to last such file. Files of unknown brokers count for `UNKNOWN_BROKER`.
    """
    spans: Spans = {}
    for file in files:
        if file.resolution_us != SECOND_US or file.first_us is None or file.last_us is None or file.kind == OTHER_FILE:
            continue
        broker = file.cluster_id, UNKNOWN_BROKER if file.broker_id is None else file.broker_id
        since_us, until_us = file.first_us, file.last_us + SECOND_US
        for begun_us, ended_us in spans.get(broker, ()):
            since_us, until_us = min(since_us, begun_us), max(until_us, ended_us)
        spans[broker] = [(since_us, until_us)]
    return spans


def _build_contexts(
    lives: Sequence[LifecycleRow], configs: Iterable[Mapping[str, Any]], files: Iterable[LogFile], settle_us: int
) -> Contexts:
    placed: list[tuple[tuple[int, str, int], Broker, ConfigLine]] = []
    for life in lives:
        broker, place = (life.cluster_id, life.broker_id), (life.time_us, life.ref.file_id, life.ref.byte_offset)
        if life.event == STARTING:
            placed.append((place, broker, ConfigLine(life.time_us, STARTED, life.mode, {})))
    for row in configs:
        settings = dict(zip(row["keys"], row["values"], strict=True))
        line = ConfigLine(row["time_us"], row["scope"], row["entity"], settings)
        placed.append((_sort_key(row), (row["cluster_id"], row["broker_id"]), line))
    lines: dict[Broker, list[ConfigLine]] = defaultdict(list)
    for _, broker, line in sorted(placed, key=lambda item: item[0]):
        lines[broker].append(line)
    return build_contexts(_find_versions(lives, files), lines, settle_us)


def _find_last_runs(lives: Iterable[LifecycleRow], files: Iterable[LogFile]) -> dict[Broker, tuple[int, int]]:
    """Return the last start that each broker logged, 0 for no start, and its last line."""
    starts = {(life.cluster_id, life.broker_id): life.time_us for life in lives if life.event == STARTING}
    runs: dict[Broker, tuple[int, int]] = {}
    for file in files:
        if file.broker_id is not None and file.last_us is not None:
            broker = file.cluster_id, file.broker_id
            runs[broker] = starts.get(broker, 0), max(file.last_us, runs.get(broker, (0, 0))[1])
    return runs


def _find_versions(lives: Iterable[LifecycleRow], files: Iterable[LogFile]) -> dict[Broker, History]:
    """Return the (start time, version) that each broker logged at its starts.

    A logged version may be of a client within the broker, or of another program. The broker's own version is followed
    by the line of its start, or equals the version of its file.
    """
    of_file = {file.file_id: file.kafka_version for file in files}
    starts: dict[Broker, list[tuple[int, str]]] = defaultdict(list)
    begun_us: dict[Broker, int] = {}
    named: dict[Broker, tuple[int, str]] = {}

    def started(broker: Broker, time_us: int, version: str) -> None:
        # A broker names its version some seconds after it began to start.
        starts[broker].append((begun_us.pop(broker, time_us), version))

    for life in lives:
        broker = (life.cluster_id, life.broker_id)
        if life.event == STARTING:
            begun_us[broker] = life.time_us
        elif life.event == HAS_STARTED and broker in named:
            time_us, version = named.pop(broker)
            if is_named_at_start(time_us, life.time_us):
                started(broker, time_us, version)
        if life.kafka_version is not None:
            named.pop(broker, None)
            if life.kafka_version == of_file.get(life.ref.file_id):
                started(broker, life.time_us, life.kafka_version)
            else:
                named[broker] = life.time_us, life.kafka_version
    return {broker: tuple(of_broker) for broker, of_broker in starts.items()}
