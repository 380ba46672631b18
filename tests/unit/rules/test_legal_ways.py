"""Every rule is silent about what Kafka does legally: by hand, way by way, and on facts of real brokers."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from highwater.pipelines.rules.partition_audit import PartitionAudit
from highwater.pipelines.rules.registry import BY_ID, RULES
from highwater.pipelines.rules.rule import OBSERVATION, VIOLATION, Settings
from highwater.pipelines.rules.texts import TEXTS, WAYS
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact
from tests.unit.rules.facts import acked, decided, fact, follows, leads

FACTS = Path(__file__).parents[2] / "data" / "facts"
ID = {"topic_id": "t"}


def _entry(broker_id: int, epoch: int, offset: int) -> Fact:
    return fact(a.EPOCH_ENTRY, 0, broker_id, name="e", leader_epoch=epoch, offset=offset)._replace(time_us=a.NO_TIME_US)


def _mark(broker_id: int, offset: int, name: str = "replication-offset-checkpoint") -> Fact:
    return fact(a.CHECKPOINT, 0, broker_id, name=name, offset=offset)._replace(time_us=a.NO_TIME_US)


def _comes_back(second: float, broker_id: int, epoch: int, high_watermark: int, end: int) -> list[Fact]:
    """A broker restarts and follows, with what its lines say of its replica at default levels."""
    return [
        fact(a.LOADED, second, broker_id, offset=end),
        fact(a.LOADED, second + 1, broker_id, high_watermark=high_watermark),
        follows(second + 2, broker_id, epoch, offset=end, high_watermark=high_watermark, previous=-1, **ID),
    ]


def _batch(broker_id: int, offset: int, end: int, checksum: int, epoch: int = 0, name: str = "intact") -> Fact:
    at = {"offset": offset, "end_offset": end, "checksum": checksum}
    return fact(a.BATCH, 0, broker_id, leader_epoch=epoch, name=name, **at)._replace(time_us=a.NO_TIME_US)


def _fetch(second: float, leader: int, replica: int, epoch: int, offset: int, high_watermark: int, no: int) -> Fact:
    told = {"leader_epoch": epoch, "offset": offset, "high_watermark": high_watermark, "replica_id": replica}
    return fact(a.FETCH, second, leader, connection=f"c{replica}", correlation_id=no, error_code=0, **told, **ID)


def _answer(second: float, leader: int, offset: int, size: int, **fields: Any) -> Fact:
    at = round(second * 1_000_000)
    given = {"name": "all", "error_code": 0, "client": "p", "earliest_us": at, "latest_us": at + 1000} | fields
    return fact(a.ANSWER, second, leader, offset=offset, size_bytes=size, **given)


def _failover(start: int, *more: Fact) -> list[Fact]:
    """Broker 1 leads and commits up to 100, broker 2 follows it at `start`."""
    return [
        decided(0, 0, 0, 1, (1, 2, 3)),
        leads(1, 1, 0, 0, **ID),
        acked(20, 1, 98, 100),
        _fetch(21, 1, 2, 0, 100, 99, 1),
        _fetch(22, 1, 2, 0, 100, 100, 2),
        decided(40, 1, 1, 2, (2, 3)),
        leads(41, 2, 1, start, **ID),
        follows(60, 1, 1, **ID),
        *more,
    ]


COMPACTED = Settings(compacted=True, version=lambda *_: "3.9.1")
KEPT = Settings(compacted=False, version=lambda *_: "3.9.1")

#: By way: facts of a partition, and what the configuration says.
SCENARIOS: dict[str, list[tuple[list[Fact], Settings]]] = {
    "compaction": [
        # zk25-rolls, balances-0: one replica copied what was left of epoch 2; batches were rewritten on each.
        (
            [
                _entry(1, 0, 0),
                _entry(1, 2, 499),
                _entry(2, 0, 0),
                _entry(2, 2, 420),
                _mark(1, 900),
                _mark(2, 900),
                _batch(1, 400, 410, 7),
                _batch(2, 400, 410, 8),
                _batch(2, 420, 430, 9, 2),
                _batch(1, 499, 503, 3, 2),
            ],
            COMPACTED,
        ),
    ],
    "log start moves": [
        (
            [
                _entry(1, 0, 70),
                _entry(1, 3, 90),
                _entry(2, 0, 0),
                _entry(2, 3, 90),
                _mark(1, 95),
                _mark(2, 95),
                _mark(1, 97, "log-start-offset-checkpoint"),
                _batch(2, 0, 70, 4),
                _batch(1, 70, 95, 5),
            ],
            KEPT,
        ),
    ],
    "follower out of range": [
        (
            [
                *_failover(100, fact(a.TRUNCATION, 70, 3, name="log", offset=0), _fetch(71, 2, 3, 1, 60, 100, 9)),
                _entry(3, 1, 100),
                _entry(2, 0, 0),
                _entry(2, 1, 100),
            ],
            KEPT,
        ),
        # Its log is emptied and begins past all that it had.
        ([*_failover(100), *_comes_back(70, 1, 1, 98, 100), fact(a.TRUNCATION, 75, 1, name="log", offset=400)], KEPT),
    ],
    "reassignment, ZooKeeper": [
        # zk25-rolls, journal-0.
        (
            [
                decided(0, 0, 0, 1, (1, 2), replicas=(1, 2)),
                decided(10, 1, 1, 1, (1, 2), replicas=(1, 3, 2)),
                decided(30, 2, 3, 1, (1, 2, 3), replicas=(1, 3)),
                decided(31, 3, 4, 1, (1, 3), replicas=(1, 3)),
                decided(30, 2, 3, 1, (1, 2, 3), replicas=(1, 3))._replace(broker_id=1),
            ],
            KEPT,
        ),
    ],
    "reassignment, KRaft": [
        (
            [
                decided(0, 0, 0, 1, (1, 2), replicas=(1, 2)),
                decided(10, 0, 1, 1, (1, 2), replicas=(4, 5, 1, 2)),
                decided(30, 1, 2, 4, (4, 5), replicas=(4, 5)),
                leads(31, 4, 1, 100, **ID),
            ],
            KEPT,
        ),
    ],
    "preferred election": [
        # The former leader cuts off what it had acknowledged with acks=1 alone.
        (
            [
                *_failover(100, _answer(30, 1, 100, 90, name="1"), fact(a.TRUNCATION, 61, 1, name="log", offset=100)),
                fact(a.HIGH_WATERMARK, 62, 1, name="non_monotonic", previous=100, high_watermark=99),
            ],
            KEPT,
        ),
        # kraft43-ops: the new leader's high watermark lags one fetch round behind that of a follower (KIP-207).
        (
            [
                *_failover(100)[:-1],
                follows(60, 1, 1, offset=104, high_watermark=100, previous=0, **ID),
                fact(a.TRUNCATION, 61, 1, name="log", offset=100),
                fact(a.HIGH_WATERMARK, 62, 3, name="non_monotonic", previous=100, high_watermark=97),
                follows(63, 3, 1, offset=100, high_watermark=100, previous=0, **ID),
            ],
            KEPT,
        ),
    ],
    "unclean election": [
        # Asked for by a tool, and nothing was lost by it.
        (
            [
                decided(0, 0, 0, 1, (1,)),
                leads(1, 1, 0, 0, **ID),
                acked(20, 1, 98, 100),
                decided(40, 1, 1, 2, (2,)),
                fact(a.ELECTION, 40, 9, name="ELECT_LEADERS", leader=2, leader_epoch=1),
                leads(41, 2, 1, 100, **ID),
            ],
            KEPT,
        ),
    ],
    "topic created anew": [
        (
            [
                *_failover(100),
                leads(80, 3, 0, 0, topic_id="new"),
                decided(79, 0, 0, 3, (3,), replicas=(3,)),
                acked(85, 3, 5, 6),
                leads(90, 1, 1, 6, topic_id="new"),
            ],
            KEPT,
        ),
        # A broker was down meanwhile: the replica that it loads is of the old topic, and is no longer anybody's.
        (
            [
                *_failover(100),
                leads(80, 3, 0, 0, topic_id="new"),
                leads(90, 2, 1, 6, topic_id="new"),
                fact(a.LOADED, 95, 1, high_watermark=98),
                follows(97, 1, 1, offset=0, high_watermark=0, previous=-1, topic_id="new"),
                fact(a.TRUNCATION, 98, 1, name="log", offset=0),
            ],
            KEPT,
        ),
        # Without topic ids.
        (
            [
                *[leads(1, 1, 0, 0), leads(30, 2, 1, 100), leads(80, 2, 0, 0), leads(90, 2, 1, 5)],
                *[line._replace(topic_id=None) for line in _comes_back(95, 1, 1, 98, 100)],
                fact(a.TRUNCATION, 98, 1, name="log", offset=5),
            ],
            KEPT,
        ),
        (
            [leads(1, 1, 0, 0), acked(20, 1, 98, 100), leads(30, 2, 1, 100), leads(80, 2, 0, 0), leads(90, 1, 1, 5)],
            KEPT,
        ),
    ],
    "log directories": [
        # kraft37-disk: the replica's first directory failed; what is left of it is beside the new one.
        (
            _failover(100, _mark(3, 100), _mark(3, 40), _batch(3, 0, 60, 5), _fetch(70, 2, 3, 1, 0, 100, 20)),
            KEPT,
        ),
        # A replica that was wiped, one that comes back with what it copied, and one that was moved (jbod38).
        (
            [
                *_failover(100),
                *_comes_back(70, 3, 1, 0, 0),
                *_comes_back(80, 3, 1, 180, 190),
                fact(a.LOADED, 85, 1, high_watermark=150, offset=160),
            ],
            KEPT,
        ),
    ],
    "tiered storage": [
        (
            [
                _entry(1, 0, 0),
                _entry(1, 4, 500),
                _entry(2, 4, 500),
                _mark(1, 600),
                _mark(2, 600),
                _batch(1, 480, 500, 1),
                _batch(1, 500, 520, 2, 4),
                _batch(2, 500, 520, 2, 4),
            ],
            KEPT,
        ),
        # tiered40: a replica is built anew, from where the remote part ends.
        (
            [
                *_failover(100),
                *_comes_back(70, 1, 1, 0, 0),
                fact(a.TRUNCATION, 75, 1, name="log", offset=480),
                *_comes_back(80, 1, 1, 600, 610),
            ],
            KEPT,
        ),
    ],
    "eligible leader replicas": [
        # kraft40-elr, ledger-0: the ISR ran empty, and the leader came from the eligible leader replicas.
        (
            [
                decided(0, 2, 5, 3, (3,)),
                leads(1, 3, 2, 283, **ID),
                _answer(5, 3, 283, 90, name="1"),
                decided(20, 3, 6, -1, ()),
                decided(30, 4, 7, 2, (2,)),
                leads(31, 2, 4, 283, **ID),
                follows(50, 3, 4, **ID),
                fact(a.TRUNCATION, 51, 3, name="log", offset=283),
            ],
            KEPT,
        ),
    ],
    "several releases": [
        # A broker of 2.0 does not compare epochs; one of 3.9 does.
        (
            _failover(100, _fetch(70, 1, 3, 0, 100, 100, 30)),
            replace(KEPT, version=lambda broker_id, _: "2.0.1" if broker_id == 1 else "3.9.1"),
        ),
        # zk23-faults: up to 2.4 a fetch session forgets which epoch a fetch names, and answers it in a later one
        # (KAFKA-9338).
        (
            [
                decided(0, 0, 0, 2, (1, 2, 3)),
                leads(1, 2, 0, 0, **ID),
                leads(40, 2, 1, 100, **ID),
                *[_fetch(45 + no, 2, 1, 0, 120 + no, 119 + no, no) for no in range(9)],
                leads(80, 3, 2, 129, **ID),
            ],
            replace(KEPT, version=lambda *_: "2.3.1"),
        ),
    ],
    "controllers resend": [
        (
            _failover(100, decided(61, 1, 1, 2, (2, 3)), decided(62, 1, 1, 2, (2, 3)), leads(63, 2, 1, 130, **ID)),
            KEPT,
        ),
    ],
    "zombies": [
        # m-0.10.0.1: broker 1 answers acks=1 in epoch 0 long after broker 2 leads in epoch 1.
        (
            [
                decided(0, 0, 0, 1, (1, 2, 3)),
                leads(1, 1, 0, 0, **ID),
                decided(40, 1, 1, 2, (2, 3)),
                leads(41, 2, 1, 100, **ID),
                _answer(45, 1, 100, 90, name="1"),
                _answer(46, 2, 100, 80),
                fact(a.ISR_CHANGE, 47, 1, name="refused", isr=(1,), replicas=(1, 2, 3)),
                follows(60, 1, 1, **ID),
            ],
            KEPT,
        ),
    ],
    "follower fetching": [
        (
            _failover(
                100,
                fact(a.READ, 70, 3, name="read_uncommitted", offset=90, previous=98, leader_epoch=1)._replace(
                    high_watermark=97, size_bytes=500, client="c", connection="x", correlation_id=4, topic_id="t"
                ),
            ),
            KEPT,
        ),
    ],
    "retries": [
        (
            _failover(
                100,
                _answer(20, 1, 98, 90, error_code=7),
                _answer(70, 2, 98, 90, log_append_time_us=20_000_500),
            ),
            KEPT,
        ),
    ],
    "unclean shutdown": [
        # A torn tail above the checkpointed high watermark; the leader begins again at that within its epoch.
        (
            [
                *_failover(
                    100, _mark(1, 90), _mark(2, 100), _batch(1, 95, 99, 1, name="corrupt"), _batch(2, 95, 99, 2)
                ),
                fact(a.HIGH_WATERMARK, 80, 1, name="updated", previous=80, high_watermark=95),
            ],
            KEPT,
        ),
        # A follower comes back with less than it had, within the epoch; the former leader, with a tail that nobody had.
        (
            [
                *_failover(100),
                *_comes_back(70, 3, 1, 150, 160),
                *_comes_back(80, 1, 1, 99, 104),
                fact(a.TRUNCATION, 84, 1, name="log", offset=100),
            ],
            KEPT,
        ),
    ],
    "late lines": [
        # A paused broker writes of its old epoch after everybody else has gone on.
        (_failover(100, acked(75, 1, 96, 98, latest_us=20_000_000), _fetch(76, 1, 3, 0, 97, 98, 1)), KEPT),
    ],
}


def _found(facts: list[Fact], told: Settings) -> Counter[tuple[str, str]]:
    audit = PartitionAudit(told, RULES)
    for one in sorted(facts, key=_order):
        audit.add(one)
    found: Counter[tuple[str, str]] = Counter()
    for outcome in audit.finish():
        assert outcome.error is None, f"{outcome.rule_id}: {outcome.error}"
        found.update((case.severity, outcome.rule_id) for case in outcome.cases)
    return found


def _order(one: Fact) -> tuple[Any, ...]:
    """As `pipelines.rules.facts.columns.ORDER`."""
    by_offset = one.kind in (a.OPERATION, a.ANSWER, a.BATCH)
    by_connection = one.kind in (a.FETCH, a.READ)
    chain = (_no(one.broker_id), one.connection or "", _no(one.correlation_id)) if by_connection else (-1, "", -1)
    place = (one.time_us, _no(one.broker_id), _no(one.byte_offset), _no(one.offset))
    return (a.RANK[one.kind], _no(one.offset) if by_offset else -1, *chain, one.kind != a.BATCH, *place, one.name or "")


def _no(number: int | None) -> int:
    return -1 if number is None else number


@pytest.mark.parametrize("way", WAYS)
def test_no_rule_takes_a_legal_way_for_a_fault(way: str) -> None:
    for facts, told in SCENARIOS[way]:
        assert not [found for found in _found(facts, told) if found[0] == VIOLATION]


@pytest.mark.parametrize("way", WAYS)
def test_nor_where_lines_are_missing(way: str) -> None:
    for facts, told in SCENARIOS[way]:
        for gone in range(len(facts)):
            left = [one for at, one in enumerate(facts) if at != gone]
            assert not [found for found in _found(left, told) if found[0] == VIOLATION]


def test_every_rule_says_why_it_is_silent() -> None:
    assert set(TEXTS) == set(BY_ID)
    assert set(WAYS) == set(SCENARIOS)
    assert {way for texts in TEXTS.values() for way in texts.silent} == set(WAYS)
    assert all(reason.strip() for texts in TEXTS.values() for reason in texts.silent.values())


#: Facts of partitions of real clusters, with what is true of them.
REAL: dict[str, Callable[[Counter[tuple[str, str]]], bool]] = {
    path.name.removesuffix(".jsonl.gz"): (lambda found: not [one for one in found if one[0] != OBSERVATION])
    for path in sorted(FACTS.glob("*.jsonl.gz"))
}


def _read(name: str) -> tuple[list[Fact], Settings]:
    with gzip.open(FACTS / f"{name}.jsonl.gz") as lines:
        head = orjson.loads(next(lines))
        facts = [Fact(**{key: _tuple(value) for key, value in orjson.loads(line).items()}) for line in lines]
    return facts, Settings(compacted=head["compacted"], version=lambda *_: head["version"])


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@pytest.mark.parametrize("name", REAL)
def test_what_real_brokers_did_is_no_violation(name: str) -> None:
    facts, told = _read(name)
    assert len(facts) > 20
    assert REAL[name](_found(facts, told))


def test_there_are_real_facts_of_what_is_hard() -> None:
    assert len(REAL) >= 8
