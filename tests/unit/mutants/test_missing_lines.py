"""Small histories in which nothing is wrong, and a line of which is missing: no rule may find a violation in either."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from highwater.pipelines.kafka.context import Contexts
from highwater.pipelines.rules.partition_audit import PartitionAudit
from highwater.pipelines.rules.registry import RULES
from highwater.pipelines.rules.rule import VIOLATION
from highwater.pipelines.rules.worker import settings_of
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import RANK, Fact

SECOND = 1_000_000
MIN_ISR = "min.insync.replicas"
Changes = tuple[tuple[int, str], ...]


def leads(at_s: float, broker: int, epoch: int, offset: int, isr: tuple[int, ...] = (1, 2, 3), **more: Any) -> Fact:
    """A broker's own line that it starts to lead."""
    fact = Fact(a.LEADERSHIP, int(at_s * SECOND), broker, "leader_start", broker, epoch, offset=offset, isr=isr)
    return fact._replace(replicas=(1, 2, 3), **more)


def follows(at_s: float, broker: int, epoch: int, leader: int, **more: Any) -> Fact:
    """A broker's own line that it starts to follow."""
    return Fact(a.LEADERSHIP, int(at_s * SECOND), broker, "follower_start", leader, epoch)._replace(**more)


def acked(at_s: float, broker: int, offset: int) -> Fact:
    """An acks=all produce, as replayed."""
    at_us = int(at_s * SECOND)
    fact = Fact(a.OPERATION, at_us, broker, "explained", offset=offset, error_code=0, latest_us=at_us - 1000)
    return fact._replace(log_append_time_us=at_us, connection="c", correlation_id=offset, client="p")


def answer(at_s: float, broker: int, offset: int, **more: Any) -> Fact:
    """The answer to an acks=all produce."""
    at_us = int(at_s * SECOND)
    fact = Fact(a.ANSWER, at_us, broker, "all", offset=offset, error_code=0, size_bytes=100, client="p")
    fact = fact._replace(earliest_us=at_us - 3000, latest_us=at_us - 2000, connection=f"c{broker}")
    return fact._replace(correlation_id=int(at_s * 10), **more)


def commits(at_s: float, broker: int, version: int, isr: tuple[int, ...]) -> Fact:
    """A leader's line that a change of its ISR is committed."""
    return Fact(a.ISR_CHANGE, int(at_s * SECOND), broker, "committed", partition_epoch=version, isr=isr)


def created(at_s: float) -> Fact:
    """The controller's line that a partition comes into being."""
    return Fact(a.PARTITION_STATE, int(at_s * SECOND), 9, "NewPartition", detail="NonExistentPartition")


def steps(at_s: float, broker: int, before: int, after: int) -> Fact:
    """A leader's line that its high watermark goes on."""
    at_us = int(at_s * SECOND)
    fact = Fact(a.HIGH_WATERMARK, at_us, broker, "updated", high_watermark=after, previous=before)
    return fact._replace(file_id="f", byte_offset=at_us)


@dataclass(frozen=True)
class History:
    """What happened, all of it right; and which lines of it are missing."""

    lines: tuple[Fact, ...]  #: the whole log
    lost: Callable[[Fact], bool] = lambda fact: False  #: whether a line is missing
    version: str = "2.7.2"  #: Kafka version of all brokers
    #: min.insync.replicas of the topic by instant in seconds; entries that are `lost_config` are missing
    min_isr: Changes = ()
    lost_config: frozenset[int] = field(default_factory=frozenset)


ID: Mapping[str, Any] = {"topic_id": "T"}
HISTORIES: Mapping[str, History] = {
    # Broker 1 leads in epoch 0, broker 2 in epoch 1, broker 1 again in epoch 2; broker 2 was paused and logs both late.
    "a paused broker logs its leadership when another one has succeeded it": History(
        (leads(0, 1, 0, 0), leads(100, 1, 2, 100), acked(150, 1, 130), leads(200, 2, 1, 100), follows(210, 2, 2, 1)),
        lambda fact: (fact.broker_id, fact.leader_epoch) == (1, 2),
    ),
    "a topic is created anew, and the controller's log is missing": History(
        (
            created(0),
            leads(1, 1, 0, 0),
            acked(50, 1, 150),
            leads(100, 1, 1, 200),
            created(500),
            leads(501, 1, 0, 0),
            acked(600, 1, 250),
            leads(700, 1, 1, 300),
        ),
        lambda fact: fact.broker_id == 9,
    ),
    "a topic is created anew with other leaders, and the controller's log is missing": History(
        (
            created(0),
            leads(1, 1, 0, 0),
            leads(100, 2, 1, 200),
            created(500),
            leads(501, 1, 0, 0),
            leads(600, 3, 1, 50),
        ),
        lambda fact: fact.broker_id == 9,
    ),
    "min.insync.replicas was lowered, and the line about it is missing": History(
        (
            leads(0, 1, 0, 0, (1, 2), partition_epoch=0),
            commits(20, 1, 1, (1,)),
            answer(60, 1, 10),
            commits(80, 1, 2, (1,)),
        ),
        version="3.9.1",
        min_isr=((0, "2"), (40, "1")),
        lost_config=frozenset({40}),
    ),
    # The first batch did not survive the failover; the second one took its offset and was sent twice.
    "an honest retry, and the line of its first attempt is missing": History(
        (
            leads(0, 3, 3, 1464),
            leads(100.2, 2, 4, 1714),
            answer(100, 3, 1714, size_bytes=296, error_code=6),
            answer(100.8, 2, 1714, size_bytes=183),
            answer(102.5, 2, 1714, size_bytes=183, log_append_time_us=int(100.797 * SECOND)),
        ),
        lambda fact: fact.kind == a.ANSWER and fact.time_us == int(100.8 * SECOND),
        version="3.9.1",
    ),
    # As broker 2 of kraft43-faults does at 15:31:55: its session had not expired.
    "a leader restarts within its epoch, from the high watermark of its checkpoint": History(
        (
            leads(0, 2, 2, 0, **ID),
            steps(10, 2, 10, 14),
            leads(50, 2, 2, 20, high_watermark=10, **ID),
            steps(60, 2, 10, 14),
            leads(69, 1, 3, 20, **ID),
            follows(70, 2, 3, 1, **ID),
        ),
        lambda fact: fact.name == "leader_start" and fact.time_us == 50 * SECOND,
        version="4.3.1",
    ),
}


def violations(history: History, *, damaged: bool) -> list[str]:
    """What the rules find in a history."""
    told = tuple((at * SECOND, value) for at, value in history.min_isr if not (damaged and at in history.lost_config))
    contexts = Contexts(
        versions={("c", broker): history.version for broker in (1, 2, 3)},
        broker_configs={("c", broker, MIN_ISR): ((0, "1"),) for broker in (1, 2, 3)},
        topic_configs={("c", broker, "t", MIN_ISR): told for broker in (1, 2, 3)} if told else {},
    )
    audit = PartitionAudit(settings_of(contexts, "c", "t", SECOND), RULES)
    lines = [fact for fact in history.lines if not (damaged and history.lost(fact))]
    for fact in sorted(lines, key=lambda fact: (RANK[fact.kind], fact.time_us)):
        audit.add(fact)
    return [case.message for found in audit.finish() for case in found.cases if case.severity == VIOLATION]


@pytest.mark.parametrize("name", HISTORIES)
@pytest.mark.parametrize("damaged", [False, True], ids=["whole", "damaged"])
def test_what_is_right_is_no_violation(name: str, damaged: bool) -> None:
    assert violations(HISTORIES[name], damaged=damaged) == []
