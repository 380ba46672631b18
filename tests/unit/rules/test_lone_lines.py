"""What one broker alone says hides nothing and proves nothing; what two say counts."""

from __future__ import annotations

import pytest

from pipelines.rules.history import FactHistory
from pipelines.rules.partition_audit import CannotGoOn, PartitionAudit
from pipelines.rules.proofs.lone_lines import lone_lines
from pipelines.rules.registry import BY_ID
from pipelines.rules.rule import OPEN, VIOLATION
from schemas import audit_facts as a
from schemas.audit_facts import Fact
from tests.unit.rules.facts import acked, cases, fact, follows, leads, settings
from tests.unit.rules.test_committed_data_lost import UNCLEAN

RULE = BY_ID["committed-data-lost"]


def deleted(second: float, broker_id: int) -> Fact:
    return fact(a.LEADERSHIP, second, broker_id, name="stopped")


def severities(*facts: Fact) -> list[str]:
    return [case.severity for case in cases(RULE, list(facts))]


def lone(*facts: Fact) -> list[Fact]:
    history = FactHistory()
    for one in sorted(facts, key=lambda each: each.time_us):
        history.add(one)
    return list(lone_lines(history).lines)


def test_one_line_of_a_deletion_leaves_a_loss_open() -> None:
    (case,) = cases(RULE, [*UNCLEAN, deleted(20.5, 1)])
    assert (case.severity, case.offset_start, case.offset_end) == (OPEN, 100, 120)
    assert case.message.endswith("as broker 1 says, and nobody else, that the topic was deleted or created anew.")
    assert (1, 20_500_000) in {(ref.broker_id, ref.time_us) for ref in case.evidence}


def test_a_deletion_that_another_broker_tells_counts() -> None:
    assert severities(*UNCLEAN, deleted(20.5, 1), deleted(20.6, 2)) == []
    # An hour later it is another one.
    assert severities(*UNCLEAN, deleted(20.5, 1), deleted(4000, 2)) == [OPEN]


def test_a_deletion_of_a_replica_that_was_moved_away_counts() -> None:
    away = fact(a.LEADERSHIP, 20, 9, name="controller", leader=2, leader_epoch=0, replicas=(2, 3))
    assert severities(*UNCLEAN, deleted(20.5, 1), away) == []


def test_one_brokers_log_alone_is_taken_as_it_is() -> None:
    alone = [one for one in UNCLEAN if one.broker_id == 1]
    assert severities(*alone, deleted(20.5, 1)) == []


IDS = [
    leads(1, 1, 0, 0, topic_id="t"),
    acked(30, 1, 150),
    leads(40, 2, 1, 100, topic_id="t"),
    follows(60, 1, 1, topic_id="t"),
]


def test_a_topic_id_that_one_broker_names_once_begins_no_life_for_sure() -> None:
    assert severities(*IDS) == [VIOLATION]
    assert severities(*IDS, follows(35, 3, 0, topic_id="forged")) == [OPEN]
    named = [follows(35, 3, 0, topic_id="new"), leads(35, 2, 0, 0, topic_id="new")]
    assert severities(*IDS, *named) == []


def test_a_fall_to_an_earlier_epoch_that_one_broker_tells_begins_no_life_for_sure() -> None:
    later = [
        one._replace(leader_epoch=one.leader_epoch + 1) if one.leader_epoch is not None else one for one in UNCLEAN
    ]
    known = [follows(1.5, 2, 1), *later]
    assert severities(*known) == [VIOLATION]
    forged = leads(22.5, 1, 0, 0)
    assert OPEN in severities(*known, forged)
    assert VIOLATION not in severities(*known, forged)
    assert lone(*known, forged) == [forged]
    assert lone(*known, forged, deleted(22.4, 2)) == []


def test_the_metadata_log_is_no_text() -> None:
    record = fact(a.METADATA, 35, 3, topic_id="new", leader_epoch=0, partition_epoch=0, leader=3, isr=(3,))
    assert severities(*IDS, follows(35, 3, 0, topic_id="new"), record) == []


def test_such_a_partition_is_judged_whole() -> None:
    audit = PartitionAudit(settings(), [RULE])
    for one in sorted([*UNCLEAN, deleted(20.5, 1)], key=lambda each: (a.RANK[each.kind], each.time_us)):
        audit.add(one)
    with pytest.raises(CannotGoOn, match="one broker alone"):
        audit.freeze()


def test_an_epoch_that_one_broker_alone_names_proves_no_loss() -> None:
    """A client's text in a line of broker 3: it led in epoch 7, from offset 0."""
    life = {"topic_id": "t"}
    known = [leads(1, 1, 0, 0, **life), follows(2, 2, 0, **life), acked(21, 1, 99), follows(60, 1, 1, **life)]
    forged = leads(30, 3, 7, 0, **life)
    assert lone(*known, forged) == [forged]
    (case,) = cases(RULE, [*known, forged])
    assert (case.severity, case.offset_start) == (OPEN, 0)
    assert case.message.endswith("Open, as broker 3 says, and nobody else, that it led in such an epoch.")
    assert lone(*known, forged, follows(31, 2, 7)) == []
    assert severities(*known, forged, follows(31, 2, 7)) == [VIOLATION]


def test_epochs_that_a_file_names_are_known() -> None:
    entry = fact(a.EPOCH_ENTRY, 99, 3, leader_epoch=7, offset=0)
    lines = [leads(30, 3, 7, 0), follows(60, 2, 1)]
    assert lone(*lines) == lines[:1]
    assert lone(*lines, entry) == []


def test_an_epoch_that_nobody_else_names_is_as_logged_if_none_below_comes_later() -> None:
    assert lone(leads(1, 1, 0, 0), leads(2, 2, 1, 100), follows(3, 1, 1)) == []
    assert lone(leads(1, 1, 0, 0), leads(20, 2, 1, 100)) == []
