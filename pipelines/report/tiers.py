"""How much a broker logged, and the command that makes it log more. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from highwater.pipelines.base.instants import SECOND_US
from highwater.pipelines.base.plain import byte_size
from highwater.pipelines.base.values import UNKNOWN_BROKER
from highwater.pipelines.kafka.releases import release_of
from highwater.pipelines.report.model import Broker, NotCheckable, Tier
from highwater.pipelines.rules.rule import Rule

TIERS: tuple[Tier, ...] = ("T0", "T1", "T2", "T3")

#: What each tier shows.
TIER_WORDS: Mapping[Tier, str] = {
    "T0": "default log levels: elections, ISRs, truncations, but no single request",
    "T1": "with the request log: which writes were lost, and what every request waited for",
    "T2": "with the request log and every high watermark",
    "T3": "with the brokers' own account of what operations waited for",
}
#: Cluster and broker id.
Node = tuple[str, int]

DELAYED_OPERATIONS = "delayed-operations"
_REQUEST_LOG = "kafka.request.logger"
#: Levels of loggers that make a tier of the one below it.
_LEVELS: Mapping[Tier, Mapping[str, str]] = {
    "T0": {},
    "T1": {_REQUEST_LOG: "DEBUG"},
    "T2": {"kafka.cluster.Partition": "DEBUG"},
    "T3": {
        "kafka.cluster.Partition": "TRACE",
        "kafka.server.DelayedProduce": "TRACE",
        "kafka.server.ReplicaManager": "TRACE",
    },
}
#: 4.x moved this class. The old logger name is unknown there, and lines of the partition logger show each check.
_MOVED, _MOVED_IN = "kafka.server.DelayedProduce", (4, 0)
#: Brokers named in a reason.
_NAMED_MAX = 5
#: Remedy where times are whole seconds.
FINER_TIMES = "write times with milliseconds: %d{yyyy-MM-dd HH:mm:ss,SSS} in the patterns of log4j's configuration"
_NO_BROKER = "put each broker's server.log into the folder of its other logs"
#: Kafka before this has no dynamic logger levels (KIP-412).
_DYNAMIC_LEVELS = (2, 4)


#: Log that a tier adds, bytes per request that a broker answers: measured with Kafka 2.8, 134 requests a second.
_REQUEST_BYTES: Mapping[Tier, int] = {"T1": 1_300, "T2": 560, "T3": 2_800}
_DAY_S = 86_400


def find_tier(request_log: bool, partition_debug: bool, completion_trace: bool, highest: str) -> Tier:
    """Return how much a broker logged: T0 to T3.

    Args:
        request_log: True if records of its request log were parsed.
        partition_debug: True if it has DEBUG records of ``kafka.cluster.Partition``.
        completion_trace: True if it has TRACE records of ``DelayedProduce`` or of the partition logger, which show each
            completion check.
        highest: highest tier to return.
    """
    reached = 0
    for there in (request_log, partition_debug, completion_trace):
        if not there:
            break
        reached += 1
    return min(TIERS[reached], next(tier for tier in TIERS if tier == highest))


def select_counting(tiers: Mapping[Node, Tier], controllers: Iterable[Node] = ()) -> dict[Node, Tier]:
    """Return the tiers of the nodes that decide which rules can be checked.

    Controller-only nodes and files without a known broker count only if there are no other nodes.
    """
    passed_over = set(controllers)
    of_brokers = {node: tier for node, tier in tiers.items() if node[1] != UNKNOWN_BROKER and node not in passed_over}
    return of_brokers or dict(tiers)


def explain_not_checkable(
    rule: Rule, brokers: Sequence[Broker], highest: str, requests_per_s: float | None = None
) -> NotCheckable | None:
    """Return the log detail that a rule lacks, and the command that enables it. None if nothing is missing.

    Args:
        brokers: brokers whose tiers count.
        highest: highest tier that was used.
        requests_per_s: request rate per broker. None without a request log.
    """
    below = [broker for broker in brokers if broker.tier < rule.texts.tier]
    if brokers and not below:
        return None
    needed = f"needs evidence {rule.texts.tier} ({rule.texts.needs})"
    if rule.texts.tier > highest:
        reason = f"{needed}; none above {highest} is used, as configured"
        return NotCheckable(
            rule_id=rule.rule_id, reason=reason, needs=f"set replay.evidence_tier_max to {rule.texts.tier} or above"
        )
    if not below:
        return NotCheckable(rule_id=rule.rule_id, reason=f"{needed}; no broker's log was read", needs=_NO_BROKER)
    have = ", ".join(f"{_name_broker(broker.broker_id)} has {broker.tier}" for broker in below[:_NAMED_MAX])
    more = f" and {len(below) - _NAMED_MAX} more have less" if len(below) > _NAMED_MAX else ""
    remedy = _make_remedy(below, rule.texts.tier, requests_per_s)
    return NotCheckable(rule_id=rule.rule_id, reason=f"{needed}; {have}{more}", **remedy)


def _name_broker(broker_id: int) -> str:
    return "files of no known broker" if broker_id == UNKNOWN_BROKER else f"broker {broker_id}"


def _make_remedy(brokers: Sequence[Broker], tier: Tier, requests_per_s: float | None) -> dict[str, str]:
    """Return by field name the command for the first broker, the other brokers that need it, and its cost.

    Args:
        tier: the tier that is needed.
        requests_per_s: request rate per broker. None without a request log.
    """
    named = [broker for broker in brokers if broker.broker_id != UNKNOWN_BROKER]
    if not named:
        return {"needs": _NO_BROKER}
    first, lowest = named[0], min(broker.tier for broker in named)
    command = _raise_level(first.broker_id, first.kafka_version, lowest, tier)
    others = ", ".join(dict.fromkeys(str(broker.broker_id) for broker in named[1:]))
    return {
        "needs": f"{command}; likewise for broker {others}" if others else command,
        "cost": _describe_cost(first.kafka_version, lowest, tier, requests_per_s),
    }


def make_not_checkable(broker_id: int, kafka_version: str | None) -> NotCheckable:
    """Return what cannot be checked without the request log of a broker, and the command that enables the log."""
    what = "delayed operations cannot be replayed, blamed or timed without its request log at DEBUG"
    return NotCheckable(
        rule_id=DELAYED_OPERATIONS,
        reason=f"{_name_broker(broker_id)}: {what}",
        needs=_NO_BROKER if broker_id == UNKNOWN_BROKER else _raise_level(broker_id, kafka_version),
        cost=None if broker_id == UNKNOWN_BROKER else _describe_cost(kafka_version, "T0", "T1", None),
    )


def find_in_seconds(files: Iterable[Mapping[str, Any]]) -> list[int]:
    """Return ids of brokers with log files in whole seconds, ascending. -1 for an unknown broker.

    Args:
        files: rows of ``bronze.log_files``.
    """
    coarse = (file["broker_id"] for file in files if file["resolution_us"] == SECOND_US)
    return sorted({UNKNOWN_BROKER if broker_id is None else broker_id for broker_id in coarse})


def explain_coarse_times(rule_id: str, brokers: Sequence[int]) -> NotCheckable:
    """Return what cannot be checked with times in whole seconds.

    Args:
        rule_id: a rule that compares times, or `DELAYED_OPERATIONS`.
        brokers: result of `in_seconds`, at least one.
    """
    what = (
        "it judges durations"
        if rule_id != DELAYED_OPERATIONS
        else ("which answer came late, what it waited for and how near it came to its prediction cannot be shown")
    )
    who = ", ".join(_name_broker(broker_id) for broker_id in brokers[:_NAMED_MAX])
    more = f" and {len(brokers) - _NAMED_MAX} more" if len(brokers) > _NAMED_MAX else ""
    return NotCheckable(rule_id=rule_id, reason=f"times have whole seconds ({who}{more}): {what}", needs=FINER_TIMES)


def _describe_cost(kafka_version: str | None, have: Tier, wanted: Tier, requests_per_s: float | None) -> str:
    """Return a text: cost of raising the log detail from `have` to `wanted`, for how long, and how to undo it."""
    version = _parse_version(kafka_version)
    between = [tier for tier in TIERS if have < tier <= wanted]
    request_bytes = sum(_REQUEST_BYTES[tier] for tier in between)
    said = f"It writes about {request_bytes / 1000:.1f} KB of log per request that a broker answers"
    if requests_per_s:
        a_day = byte_size(round(request_bytes * requests_per_s * _DAY_S))
        said += f", {a_day} a day at the {requests_per_s:,.0f} requests a second of these logs"
    if len(between) > 1:
        first = ",".join(f"{logger}={level}" for logger, level in _list_levels(version, have, between[0]).items())
        said += f"; begin with {first} alone, about {_REQUEST_BYTES[between[0]] / 1000:.1f} KB"
    if version and version < _DYNAMIC_LEVELS:
        return f"{said}. Undo it in config/log4j.properties, with a restart."
    return (
        f"{said}. A restart of the broker ends it. Undo it with kafka-configs.sh --bootstrap-server HOST:PORT "
        f"--entity-type broker-loggers --entity-name ID --alter --delete-config "
        f"{','.join(_list_levels(version, have, wanted))}"
    )


def _parse_version(kafka_version: str | None) -> tuple[int, ...] | None:
    # The report's version begins with the release that it is built on.
    release = release_of((kafka_version or "").partition(" ")[0])
    return release.oldest if release is not None else None


def _list_levels(version: tuple[int, ...] | None, have: Tier, wanted: Tier) -> dict[str, str]:
    """Return the log level by logger that raises the log detail from `have` to `wanted`."""
    levels: dict[str, str] = {}
    for tier in TIERS:
        if have < tier <= wanted:
            levels |= _LEVELS[tier]
    if version and version >= _MOVED_IN:
        levels.pop(_MOVED, None)
    if version and version < _DYNAMIC_LEVELS and _REQUEST_LOG in levels:
        levels[_REQUEST_LOG] = "TRACE"
    return levels


def _raise_level(broker_id: int, kafka_version: str | None, have: Tier = "T0", wanted: Tier = "T1") -> str:
    version = _parse_version(kafka_version)
    levels = _list_levels(version, have, wanted)
    if version and version < _DYNAMIC_LEVELS:
        lines = ", ".join(f"log4j.logger.{logger}={level}" for logger, level in levels.items())
        return f"set {lines} in config/log4j.properties and restart the broker"
    return (
        "kafka-configs.sh --bootstrap-server HOST:PORT --entity-type broker-loggers "
        f"--entity-name {broker_id} --alter --add-config {','.join(f'{name}={it}' for name, it in levels.items())}"
    )
