"""Facts that rules are given: reads past their limit, and each metadata record once."""

from __future__ import annotations

from random import Random

import pytest

from pipelines.rules.facts.selection import selected
from schemas import audit_facts as a
from schemas.audit_facts import Fact


def read(correlation_id: int, offset: int, limit: int | None, connection: str = "x", **other: object) -> Fact:
    fact = Fact(a.READ, correlation_id * 10, 1, a.READ_UNCOMMITTED, leader_epoch=4, size_bytes=9, connection=connection)
    return fact._replace(correlation_id=correlation_id, offset=offset, high_watermark=limit)._replace(**other)


def is_beyond(fact: Fact, limit: int | None) -> bool:
    return limit is not None and limit >= 0 and (fact.offset or 0) >= limit and (fact.size_bytes or 0) > 0


def limit_of(fact: Fact) -> int | None:
    return fact.end_offset if fact.name == "read_committed" else fact.high_watermark


def oracle(facts: list[Fact]) -> list[Fact]:
    """Of each read all others are looked through for the one that comes next."""
    expected = []
    for fact in facts:
        if not is_beyond(fact, limit_of(fact)):
            continue
        chain = [
            other
            for other in facts
            if (other.connection, other.topic_id) == (fact.connection, fact.topic_id)
            and (other.correlation_id or 0) > (fact.correlation_id or 0)
        ]
        after = min(chain, key=lambda other: other.correlation_id or 0, default=None)
        of_epoch = after is not None and after.leader_epoch == fact.leader_epoch and (fact.leader_epoch or -1) >= 0
        follows = after is not None and of_epoch and after.time_us >= fact.time_us
        expected.append(fact._replace(previous=limit_of(after) if follows and after is not None else None))
    return expected


@pytest.mark.parametrize("seed", range(50))
def test_reads_past_their_limit_with_the_limit_of_the_next_answer(seed: int):
    random = Random(seed)
    facts = []
    for connection in "wxyz":
        for correlation_id in sorted(random.sample(range(40), 12)):
            fact = read(
                correlation_id,
                random.randrange(4),
                random.choice((None, -1, 0, 1, 2, 3, 4)),
                connection,
                end_offset=random.randrange(4),
                name=random.choice(("read_committed", "read_uncommitted")),
                topic_id=random.choice((None, None, "i")),
                leader_epoch=random.choice((None, -1, 1, 1, 1, 2)),
                size_bytes=random.choice((None, 0, 5, 5, 5)),
                time_us=correlation_id * 10 if random.random() < 0.8 else random.randrange(400),
            )
            facts.append(fact)
    answered = Fact(a.ANSWER, 1)
    made = list(selected([*facts, answered]))
    # Two topic ids of a connection may come one before the other.
    assert sorted(made, key=repr) == sorted([*oracle(facts), answered], key=repr)


def test_the_same_line_in_two_files_is_no_later_answer():
    first, second = read(1, 5, 5), read(2, 5, 5, size_bytes=None, high_watermark=8)
    copies = [first, first._replace(file_id="other"), second]
    assert list(selected(copies)) == [first._replace(previous=8)]


def test_a_metadata_record_is_that_of_the_lowest_node():
    def record(node: int, offset: int) -> Fact:
        return Fact(a.METADATA, offset, node, "PartitionChangeRecord", previous=offset, file_id=f"f{node}")

    leads = Fact(a.LEADERSHIP, 2, 1)
    facts = [record(2, 1), record(3, 1), leads, record(1, 2), record(2, 2), record(3, 3)]
    assert list(selected(facts)) == [record(2, 1), leads, record(1, 2), record(3, 3)]
    # A record may say several things of a partition.
    assert list(selected([record(1, 1), record(1, 1), record(2, 1)])) == [record(1, 1), record(1, 1)]
