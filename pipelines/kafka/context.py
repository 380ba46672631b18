"""Version and configuration of each broker over time, from its log.

Pure: built from small rows that the driver collects (`pipelines.cluster.premises`).

Precedence of values (KIP-226; ``DynamicBrokerConfig``, ``LogConfig.fromProps``): a topic's override; else the broker's
own dynamic value; else the dynamic value for all brokers; else the static one. A log shows them as follows:

* A broker dumps all its values at start and after every dynamic change, the dynamic ones included. Each dump is valid
  at the broker until the next one.
* Lines about dynamic values and about a topic's overrides list *all* of them: a key outside the list is not set.
* A KRaft broker lists the overrides of every topic again at each start (``DynamicConfigPublisher``: the first image has
  no predecessor). Overrides that were removed while it was down are not listed. A ZooKeeper broker reads them at start
  without logging them, so earlier values remain valid.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

from highwater.pipelines.base.instants import NEVER_US
from highwater.pipelines.kafka.versions import Rules, rules_for
from highwater.schemas.topics import GROUP_TOPIC, SHARE_TOPIC

LAG_TIME_MAX: Final = "replica.lag.time.max.ms"
MIN_ISR: Final = "min.insync.replicas"
UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"
CLEANUP_POLICY: Final = "cleanup.policy"
MESSAGE_MAX_BYTES: Final = "message.max.bytes"
DELETE_TOPIC: Final = "delete.topic.enable"
REPLICA_FETCHERS: Final = "num.replica.fetchers"
PROTOCOL_VERSION: Final = "inter.broker.protocol.version"
OFFSETS_PARTITIONS: Final = "offsets.topic.num.partitions"
TRANSACTIONS_PARTITIONS: Final = "transaction.state.log.num.partitions"
SHARE_STATES_PARTITIONS: Final = "share.coordinator.state.topic.num.partitions"
#: Last key of a dump, which is sorted since 0.10.1. A dump with this key is whole.
LAST_KEY: Final = "zookeeper.sync.time.ms"
#: Releases whose default logs do not show a version, by keys that came with them. A whole dump lists every key.
RELEASES_BY_KEY: Final[Mapping[str, str]] = {
    "listener.security.protocol.map": "0.10.2",
    "replication.quota.window.num": "0.10.1",
    "log.message.format.version": "0.10.0",
}
LEADER_THROTTLE_RATE: Final = "leader.replication.throttled.rate"
THROTTLED_LEADERS: Final = "leader.replication.throttled.replicas"
APPEND_LINGER: Final = "group.coordinator.append.linger.ms"
SHARE_WRITE_TIMEOUT: Final = "share.coordinator.write.timeout.ms"
SHARE_LINGER: Final = "share.coordinator.append.linger.ms"
REMOTE_WAIT: Final = "remote.fetch.max.wait.ms"
GROUP_PROTOCOLS: Final = "group.coordinator.rebalance.protocols"

#: Keys that a topic can override: the broker's name by the topic's (``ServerTopicConfigSynonyms``).
TOPIC_KEYS: Final[Mapping[str, str]] = {
    MIN_ISR: MIN_ISR,
    UNCLEAN_ELECTION: UNCLEAN_ELECTION,
    "max.message.bytes": MESSAGE_MAX_BYTES,
    CLEANUP_POLICY: "log.cleanup.policy",
    THROTTLED_LEADERS: THROTTLED_LEADERS,
}
#: Keys that are kept, by the names of the broker's and of the topics' configuration.
KEYS: Final = frozenset(
    {LAG_TIME_MAX, DELETE_TOPIC, REPLICA_FETCHERS, PROTOCOL_VERSION, OFFSETS_PARTITIONS, TRANSACTIONS_PARTITIONS}
    | {LAST_KEY, *RELEASES_BY_KEY, APPEND_LINGER, GROUP_PROTOCOLS, LEADER_THROTTLE_RATE, REMOTE_WAIT}
    | {SHARE_STATES_PARTITIONS, SHARE_LINGER, SHARE_WRITE_TIMEOUT}
    | TOPIC_KEYS.keys()
    | set(TOPIC_KEYS.values())
)

# Scopes of a `ConfigLine`; ``silver.broker_configs`` has all but the first.
STARTED: Final = "started"
BROKER: Final = "broker"
DYNAMIC: Final = "broker_dynamic"
TOPIC: Final = "topic"
LOG: Final = "log"
LOG_ALL: Final = "log_all"
#: A KRaft broker lists all overrides of topics within this of its start, microseconds. It serves no client before.
_LISTED_WITHIN_US: Final = 60_000_000
#: Entity of the dynamic values for all brokers.
ALL_BROKERS: Final = "<default>"

#: (instant in microseconds, value) in time order.
History = tuple[tuple[int, str], ...]
#: History of an override; None while it is not set.
Overrides = tuple[tuple[int, str | None], ...]

#: Spans of time (microseconds, end exclusive) by (cluster, broker).
Spans = dict[tuple[str, int], list[tuple[int, int]]]


class ConfigLine(NamedTuple):
    """One line of a broker's log that shows configuration, or that the broker starts."""

    time_us: int  #: when
    scope: str  #: one of the scopes above
    entity: str | None  #: topic; broker id or `ALL_BROKERS` (dynamic values); "kraft" or "zookeeper" (a start)
    values: Mapping[str, str]  #: values of `KEYS` in the line


@dataclass(frozen=True)
class Context:
    """Version and settings of a broker that the replay of a partition depends on."""

    broker_id: int  #: the broker whose log is replayed
    rules: Rules  #: rules of the broker's version
    lag_time_max_us: int  #: replica.lag.time.max.ms of that broker
    #: (first instant, value) for the topic, in time order; empty if unknown
    min_insync_replicas: tuple[tuple[int, int], ...] = ()
    settle_us: int = 5_000_000  #: time after its completion in which an operation waits for later offsets
    #: time for which a coordinator with threads of its own gathers records; below 0: until no operation is queued;
    #: None if the handlers of requests append
    append_linger_ms: int | None = None

    def find_min_isr(self, time_us: int) -> int:
        """Return min.insync.replicas at an instant; 1 if no line shows it."""
        value = 1
        for since_us, configured in self.min_insync_replicas:
            if since_us > time_us:
                break
            value = configured
        return value


@dataclass(frozen=True)
class Contexts:
    """Versions and configuration of all brokers."""

    #: Kafka version by (cluster, broker), the last if there are several
    versions: Mapping[tuple[str, int], str] = field(default_factory=dict)
    #: values at a broker for topics without an override, by (cluster, broker, key); a value with instant 0 was valid
    #: before the log began
    broker_configs: Mapping[tuple[str, int, str], History] = field(default_factory=dict)
    #: overrides by (cluster, broker, topic, key), as that broker knew them; the key is the topic's
    topic_configs: Mapping[tuple[str, int, str, str], Overrides] = field(default_factory=dict)
    settle_us: int = 5_000_000  #: passed on to `Context`
    #: version logged at each start, by (cluster, broker); only brokers that log one
    starts: Mapping[tuple[str, int], History] = field(default_factory=dict)
    #: first instant at which all overrides of a topic are known, by (cluster, broker, topic); None for every topic
    listed_us: Mapping[tuple[str, int, str | None], int] = field(default_factory=dict)
    #: last start that a broker logged and its last line, by (cluster, broker); 0 for no start
    last_runs: Mapping[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    client_free_files: frozenset[str] = frozenset()  #: ids of files in which no client can write
    coarse: Spans = field(default_factory=dict)  #: spans in which the times of a broker's lines are whole seconds

    def find_version(self, broker: tuple[str, int], time_us: int) -> str | None:
        """Return the version that a broker ran at a time. None before the first logged start."""
        begun = self.starts.get(broker)
        return find_value(begun, time_us) if begun else self.versions.get(broker)

    def of(self, cluster_id: str, broker_id: int, topic: str, version: str | None = None) -> Context:
        """Return version and settings for a topic's partitions on a broker.

        Args:
            version: version of the broker. None for its last one.
        """
        rules = rules_for(version or self.likely_versions.get((cluster_id, broker_id)))
        lag = self.list_lag_times(cluster_id, broker_id)
        return Context(
            broker_id=broker_id,
            rules=rules,
            lag_time_max_us=lag[-1][1] if lag else rules.lag_time_max_ms * 1000,
            min_insync_replicas=tuple(_parse_integers(self.history(cluster_id, broker_id, topic, MIN_ISR))),
            settle_us=self.settle_us,
            append_linger_ms=self._find_append_linger(cluster_id, broker_id, rules, topic),
        )

    def _find_append_linger(self, cluster_id: str, broker_id: int, rules: Rules, topic: str) -> int | None:
        """Return how long a broker's coordinator gathers records before appending them, ms. None if it does not."""
        if topic == SHARE_TOPIC:
            share_linger = self.setting(cluster_id, broker_id, SHARE_LINGER)
            return int(share_linger) if share_linger is not None else rules.append_linger_ms
        if topic != GROUP_TOPIC:
            return None
        protocols = self.setting(cluster_id, broker_id, GROUP_PROTOCOLS) or ""
        if not rules.group_coordinator_has_threads and "consumer" not in protocols:
            return None
        text = self.setting(cluster_id, broker_id, APPEND_LINGER)
        return int(text) if text is not None else rules.append_linger_ms

    @cached_property
    def likely_versions(self) -> dict[tuple[str, int], str]:
        """Return the Kafka version to predict with, by (cluster, broker).

        Up to 0.10 server.log has only loggers of ``kafka``, which do not log the version. Then
        inter.broker.protocol.version is used, which equals the release except during an upgrade.
        """
        spoken = {broker: history[0][1] for broker, history in self.settings(PROTOCOL_VERSION).items() if history}
        return spoken | dict(self.versions)

    @cached_property
    def eras(self) -> dict[tuple[str, int], History]:
        """Return by (cluster, broker) the versions to predict with, as (start time in us, version). The first starts at
        0.

        A broker changes its version only at a start, when it leads no partition and no request waits.
        """
        eras: dict[tuple[str, int], History] = {broker: ((0, text),) for broker, text in self.likely_versions.items()}
        for broker, starts in self.starts.items():
            changes = [start for before, start in pairwise(starts) if start[1] != before[1]]
            eras[broker] = ((0, starts[0][1]), *changes)
        return eras

    def spans(self, holds: Callable[[Rules], bool]) -> Spans:
        """Return by (cluster, broker) the (start, end) times in which its version satisfies a condition.

        Args:
            holds: returns True for the rules of such a version.
        """
        spans: Spans = {}
        for broker, eras in self.eras.items():
            for (since_us, version), (until_us, _) in pairwise((*eras, (NEVER_US, ""))):
                if holds(rules_for(version)):
                    spans.setdefault(broker, []).append((since_us, until_us))
        return spans

    def history(self, cluster_id: str, broker_id: int, topic: str, key: str) -> History:
        """Return the (start time, value) history of a topic's setting at a broker. Empty if no line shows a value.

        The topic's override is used if there is one, else the broker's value.

        Args:
            key: name of the setting at topics.
        """
        broker = self.broker_configs.get((cluster_id, broker_id, TOPIC_KEYS.get(key, key)), ())
        topic_own = self.topic_configs.get((cluster_id, broker_id, topic, key), ())
        values: list[tuple[int, str]] = []
        for time_us in sorted({at for at, _ in broker} | {at for at, _ in topic_own}):
            value = find_value(topic_own, time_us)
            if value is None:
                value = find_value(broker, time_us)
            if value is not None and (not values or values[-1][1] != value):
                values.append((time_us, value))
        return tuple(values)

    def min_isr(self, cluster_id: str, topic: str, broker_id: int, time_us: int, replicas: int | None) -> int | None:
        """Return min.insync.replicas at a broker, limited to the number of replicas if its version does so.

        None if unknown: a topic may have an override from before the logs begin.
        """
        witness = self._find_lister(cluster_id, broker_id, topic, time_us)
        if witness is None:
            return None
        value = find_value(self.topic_configs.get((cluster_id, witness, topic, MIN_ISR), ()), time_us)
        if value is None:
            value = find_value(self.broker_configs.get((cluster_id, broker_id, MIN_ISR), ()), time_us)
        if value is None or not value.isdigit():
            return None
        version = find_value(self.eras.get((cluster_id, broker_id), ()), time_us)
        caps = rules_for(version).caps_min_isr_at_replicas
        return min(int(value), replicas) if caps and replicas else int(value)

    def _find_lister(self, cluster_id: str, broker_id: int, topic: str, time_us: int) -> int | None:
        """Return a broker whose lines list all overrides of a topic by `time_us`, preferably `broker_id`. None if
        unknown.

        Overrides are the same at all brokers.
        """
        for other in [broker_id, *self._listers.get(cluster_id, [])]:
            since = (self.listed_us.get((cluster_id, other, name), NEVER_US) for name in (topic, None))
            if min(since) <= time_us:
                return other
        return None

    @cached_property
    def _listers(self) -> dict[str, list[int]]:
        brokers: dict[str, set[int]] = {}
        for cluster_id, broker_id, _ in self.listed_us:
            brokers.setdefault(cluster_id, set()).add(broker_id)
        return {cluster_id: sorted(ids) for cluster_id, ids in brokers.items()}

    def list_lag_times(self, cluster_id: str, broker_id: int) -> tuple[tuple[int, int], ...]:
        """Return (start time, value) of replica.lag.time.max.ms of a broker, all in us. It changes only at restarts."""
        values = self.broker_configs.get((cluster_id, broker_id, LAG_TIME_MAX), ())
        return tuple((since_us, value * 1000) for since_us, value in _parse_integers(values))

    def setting(self, cluster_id: str, broker_id: int, key: str) -> str | None:
        """Return the last value that a broker logged for one of `KEYS`. None without one."""
        values = self.broker_configs.get((cluster_id, broker_id, key), ())
        return values[-1][1] if values else None

    def list_first_counts(self, key: str) -> dict[str, int]:
        """Return by cluster the first number that brokers logged for a setting. The largest if brokers differ."""
        counts: dict[str, int] = {}
        for (cluster_id, _), history in self.settings(key).items():
            for _, count in _parse_integers(history)[:1]:
                counts[cluster_id] = max(count, counts.get(cluster_id, count))
        return counts

    def settings(self, key: str) -> dict[tuple[str, int], History]:
        """Return by (cluster, broker) the (start time, value) history of a setting."""
        return {
            (cluster, broker): history
            for (cluster, broker, name), history in self.broker_configs.items()
            if name == key
        }


def find_value(history: History | Overrides, time_us: int) -> str | None:
    """Return the value at a time. None before the first one, and while an override is not set."""
    at = bisect_right(history, time_us, key=lambda entry: entry[0])
    return history[at - 1][1] if at else None


def build_contexts(
    starts: Mapping[tuple[str, int], History],
    lines: Mapping[tuple[str, int], Iterable[ConfigLine]],
    settle_us: int,
) -> Contexts:
    """Return versions and settings of all brokers, from their logs.

    Args:
        starts: (start time, version) logged at starts, by (cluster, broker), in time order.
        lines: by (cluster, broker), in log order. Duplicates are allowed.
        settle_us: see `Context`.
    """
    broker_configs: dict[tuple[str, int, str], History] = {}
    topic_configs: dict[tuple[str, int, str, str], Overrides] = {}
    releases: dict[tuple[str, int], str] = {}
    listed_us: dict[tuple[str, int, str | None], int] = {}
    for (cluster_id, broker_id), config_lines in lines.items():
        book = _Book(str(broker_id))
        for line in config_lines:
            book.take(line)
            release = _find_release(line)
            if release is not None:
                releases[cluster_id, broker_id] = release
        book.drop_unlisted(NEVER_US)
        for key, history in book.broker.items():
            broker_configs[cluster_id, broker_id, key] = tuple(history)
        for (topic, key), overrides in book.topics.items():
            topic_configs[cluster_id, broker_id, topic, key] = tuple(overrides)
        listed_us |= {(cluster_id, broker_id, name): since_us for name, since_us in book.listed_us.items()}
    versions = {broker: begun[-1][1] for broker, begun in starts.items()}
    return Contexts(releases | versions, broker_configs, topic_configs, settle_us, starts, listed_us)


def _find_release(line: ConfigLine) -> str | None:
    """Return the release, without its last number, of a broker before 0.11, from its printed configuration.

    Up to 0.10.2 only loggers of ``kafka`` go to server.log by default, and another logger logs the version. None if
    newer.
    """
    keys = line.values.keys()
    if line.scope != BROKER or LAST_KEY not in keys or TRANSACTIONS_PARTITIONS in keys:
        return None
    # One that has none of them is 0.9, or older, whose protocol had the number of its release.
    return next((release for key, release in RELEASES_BY_KEY.items() if key in keys), line.values.get(PROTOCOL_VERSION))


class _Book:
    """Collects settings from the lines of one broker.

    Attributes:
        broker: (start time, value) histories by key.
        topics: histories of overrides by (topic, key).
        listed_us: by topic, when all its overrides are first known. Key None for all topics.
    """

    def __init__(self, broker_id: str) -> None:
        self.broker: dict[str, list[tuple[int, str]]] = defaultdict(list)
        self.topics: dict[tuple[str, str], list[tuple[int, str | None]]] = defaultdict(list)
        self.listed_us: dict[str | None, int] = {}
        self._broker_id = broker_id
        self._static: dict[str, str] = {}
        self._of_broker: Mapping[str, str] = {}
        self._all_brokers: Mapping[str, str] = {}
        self._overrides: dict[str, Mapping[str, str]] = {}
        #: until when the overrides of a topic hold if no line lists them again
        self._unlisted: dict[str, int] = {}

    def take(self, line: ConfigLine) -> None:
        self.drop_unlisted(line.time_us)
        if line.scope == STARTED:
            self._static, self._of_broker, self._all_brokers = {}, {}, {}
            if line.entity == "kraft":
                self.listed_us.setdefault(None, line.time_us)
                self._unlisted = dict.fromkeys(self._overrides, line.time_us + _LISTED_WITHIN_US)
        elif line.scope == BROKER:
            for key, value in line.values.items():
                self._static.setdefault(key, value)
                # The first dump is the configuration at start, so it held from before the log began.
                self._set(0 if key not in self.broker else line.time_us, key, value)
        elif line.scope == DYNAMIC:
            self._apply_dynamic(line)
        elif line.entity is None:
            return
        elif line.scope in (TOPIC, LOG):
            self._replace_overrides(line.time_us, line.entity, _select_topic_keys(line.values))
        elif line.scope == LOG_ALL:
            # Every property, so what is as at the broker is taken for the broker's, unless it was seen to be set.
            overrides = dict(self._overrides.get(line.entity, {}))
            for key, value in _select_topic_keys(line.values).items():
                if overrides.get(key) != value:
                    overrides.pop(key, None)
                    if self._find_last(TOPIC_KEYS[key]) != value:
                        overrides[key] = value
            self._replace_overrides(line.time_us, line.entity, overrides)

    def _apply_dynamic(self, line: ConfigLine) -> None:
        before = {**self._all_brokers, **self._of_broker}
        if line.entity == ALL_BROKERS:
            self._all_brokers = line.values
        elif line.entity == self._broker_id:
            self._of_broker = line.values
        else:
            return  # every broker logs the values of all
        now = {**self._all_brokers, **self._of_broker}
        for key in before.keys() | now.keys():
            value = now.get(key, self._static.get(key))
            if value is None and key == LEADER_THROTTLE_RATE:
                value = ""  # no quota without a dynamic value
            if value is not None:
                self._set(line.time_us, key, value)

    def _set(self, time_us: int, key: str, value: str) -> None:
        if self._find_last(key) != value:
            self.broker[key].append((time_us, value))

    def _find_last(self, key: str) -> str | None:
        values = self.broker.get(key)
        return values[-1][1] if values else None

    def drop_unlisted(self, time_us: int) -> None:
        """End the overrides that no line listed soon after a start: they were removed before the start."""
        for topic, until_us in list(self._unlisted.items()):
            if until_us <= time_us:
                self._replace_overrides(until_us, topic, {})

    def _replace_overrides(self, time_us: int, topic: str, values: Mapping[str, str]) -> None:
        self._unlisted.pop(topic, None)
        self.listed_us.setdefault(topic, time_us)
        before = self._overrides.get(topic, {})
        for key in before.keys() | values.keys():
            if before.get(key) != values.get(key):
                self.topics[topic, key].append((time_us, values.get(key)))
        self._overrides[topic] = values


def _select_topic_keys(values: Mapping[str, str]) -> Mapping[str, str]:
    return {key: value for key, value in values.items() if key in TOPIC_KEYS}


def _parse_integers(history: History) -> list[tuple[int, int]]:
    return [(since_us, int(value)) for since_us, value in history if value.strip().isdigit()]
