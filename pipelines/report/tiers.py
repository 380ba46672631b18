"""How much a broker logged, and the command that makes it log more. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pipelines.report.model import NotCheckable, Tier
from pipelines.report.values import UNKNOWN_BROKER

TIERS: tuple[Tier, ...] = ("T0", "T1", "T2", "T3")

#: Cluster and broker id.
Node = tuple[str, int]

DELAYED_OPERATIONS = "delayed-operations"
#: Kafka before this has no dynamic logger levels (KIP-412).
_DYNAMIC_LEVELS = (2, 4)


def tier_of(request_log: bool, partition_debug: bool, completion_trace: bool, highest: str) -> Tier:
    """Tier of one broker.

    Args:
        request_log: it has records of the request log that were understood.
        partition_debug: and DEBUG records of the partition logger (``kafka.cluster.Partition``).
        completion_trace: and TRACE records of ``DelayedProduce`` or of the partition logger: each completion check.
        highest: evidence above this tier is not used.
    """
    reached = 0
    for there in (request_log, partition_debug, completion_trace):
        if not there:
            break
        reached += 1
    return min(TIERS[reached], next(tier for tier in TIERS if tier == highest))


def overall(tiers: Mapping[Node, Tier], controllers: Iterable[Node] = ()) -> Tier:
    """The lowest tier of the brokers that have any log.

    Controller-only nodes lead no partition, and files that nothing assigns to a broker are nobody's: neither counts
    unless there is nothing else.
    """
    passed_over = set(controllers)
    counting = [tier for node, tier in tiers.items() if node[1] != UNKNOWN_BROKER and node not in passed_over]
    return min(counting or tiers.values(), default="T0")


def not_checkable(broker_id: int, kafka_version: str | None) -> NotCheckable:
    """What a broker without a request log leaves open, and the command that would change that."""
    if broker_id == UNKNOWN_BROKER:
        who, needs = "files of no known broker", "put each broker's server.log into the folder of its other logs"
    else:
        who, needs = f"broker {broker_id}", _raise_level(broker_id, kafka_version)
    return NotCheckable(
        rule_id=DELAYED_OPERATIONS,
        reason=f"{who}: delayed operations cannot be replayed, blamed or timed without its request log at DEBUG",
        needs=needs,
    )


def _raise_level(broker_id: int, kafka_version: str | None) -> str:
    version = re.match(r"(\d+)\.(\d+)", kafka_version or "")
    if version and (int(version[1]), int(version[2])) < _DYNAMIC_LEVELS:
        return "set log4j.logger.kafka.request.logger=TRACE in config/log4j.properties and restart the broker"
    return (
        "kafka-configs.sh --bootstrap-server HOST:PORT --entity-type broker-loggers "
        f"--entity-name {broker_id} --alter --add-config kafka.request.logger=DEBUG"
    )
