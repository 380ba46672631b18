"""Committed records that a later leader epoch does not have, and what must not be mistaken for it."""

from __future__ import annotations

from itertools import combinations

from highwater.pipelines.rules.registry import BY_ID
from highwater.pipelines.rules.rule import OPEN, VIOLATION, Settings
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact
from tests.unit.rules.facts import acked, cases, decided, fact, follows, leads, settings

RULE = BY_ID["committed-data-lost"]

#: Broker 1 leads and acknowledges up to 120; broker 2, elected from outside the ISR, starts at 100.
UNCLEAN = [
    decided(0, 0, 0, 1, (1, 2)),
    leads(1, 1, 0, 0),
    decided(20, 0, 1, 1, (1,)),
    acked(21, 1, 99),
    acked(22, 1, 100, 110),
    acked(23, 1, 110, 120),
    decided(40, 1, 2, 2, (2,)),
    leads(41, 2, 1, 100),
    follows(60, 1, 1),
]


def test_acknowledged_records_beyond_the_next_epochs_start_are_lost() -> None:
    (case,) = cases(RULE, UNCLEAN)
    assert (case.severity, case.offset_start, case.offset_end, case.leader_epoch) == (VIOLATION, 100, 120, 0)
    assert (case.cause, case.records) == ("unclean_election", 2)
    assert "out-of-sync broker 2 became leader (ISR [1]) in epoch 1." in case.message


def test_a_clean_failover_loses_nothing() -> None:
    kept = [one for one in UNCLEAN if not (one.name == "leader_start" and one.broker_id == 2)]
    assert cases(RULE, [*kept, leads(41, 2, 1, 120)]) == []


def test_deleting_any_two_lines_changes_no_case_into_another() -> None:
    whole = {(100, 120)}
    for gone in combinations(range(len(UNCLEAN)), 2):
        for case in cases(RULE, [one for at, one in enumerate(UNCLEAN) if at not in gone]):
            assert (case.offset_start, case.offset_end) in whole | {(100, 110)}


def test_a_missing_epoch_of_the_same_broker_leaves_it_open() -> None:
    """Broker 1 led again later; the line that says so is gone, and what it acknowledged then is beyond a start."""
    facts = [leads(1, 1, 0, 0), leads(10, 2, 1, 100), acked(30, 1, 150), follows(60, 1, 3)]
    (case,) = cases(RULE, facts)
    assert case.severity == OPEN
    # With the line there is nothing to object.
    assert cases(RULE, [*facts, leads(25, 1, 2, 140)]) == []


def test_lines_before_and_after_leave_no_room_for_another_epoch() -> None:
    life = {"topic_id": "t"}
    facts = [leads(1, 1, 0, 0, **life), acked(30, 1, 150), leads(10, 2, 1, 100, **life), follows(60, 1, 1)]
    assert [case.severity for case in cases(RULE, facts)] == [VIOLATION]


def test_a_fetch_answered_later_in_the_epoch_shows_it_too() -> None:
    life = {"topic_id": "t"}
    told = {"leader_epoch": 0, "high_watermark": 90, "offset": 90, "replica_id": 3, "error_code": 0, "connection": "x"}
    facts = [leads(1, 1, 0, 0, **life), acked(30, 1, 150), leads(10, 2, 1, 100, **life)]
    fetches = [fact(a.FETCH, 40, 1, correlation_id=1, **told), fact(a.FETCH, 41, 1, correlation_id=2, **told)]
    assert [case.severity for case in cases(RULE, facts)] == [OPEN]
    assert [case.severity for case in cases(RULE, [*facts, *fetches])] == [VIOLATION]
    # The first one alone may have been under way since before.
    assert [case.severity for case in cases(RULE, [*facts, fetches[0]])] == [OPEN]


def test_without_an_id_and_with_a_version_missing_it_may_be_another_topic() -> None:
    assert [case.severity for case in cases(RULE, UNCLEAN)] == [VIOLATION]
    assert [case.severity for case in cases(RULE, [one for one in UNCLEAN if one.partition_epoch != 1])] == [OPEN]
    later = [one._replace(partition_epoch=3) if one.partition_epoch == 2 else one for one in UNCLEAN]
    assert [case.severity for case in cases(RULE, later)] == [OPEN]


def test_where_topics_cannot_be_deleted_it_is_the_same_one() -> None:
    """lib-0.9: lines name no topic id and no partition epoch, and delete.topic.enable is false everywhere."""
    bare = [one._replace(partition_epoch=None) for one in UNCLEAN]
    assert [case.severity for case in cases(RULE, bare)] == [OPEN]
    assert [case.severity for case in cases(RULE, bare, Settings(deletable=False))] == [VIOLATION]


def test_a_topic_created_anew_begins_at_zero() -> None:
    facts = [
        leads(1, 1, 3, 0, topic_id="old"),
        acked(5, 1, 500),
        leads(60, 2, 0, 0, topic_id="new"),
        leads(70, 1, 4, 10, topic_id="new"),
    ]
    assert cases(RULE, facts) == []


def test_a_high_watermark_is_a_promise_too() -> None:
    told = fact(a.FETCH, 5, 1, leader_epoch=0, high_watermark=130, offset=130, replica_id=2, error_code=0)
    life = {"topic_id": "t"}
    (case,) = cases(RULE, [leads(1, 1, 0, 0, **life), told, leads(41, 2, 1, 100, **life)])
    assert (case.severity, case.offset_start, case.offset_end) == (VIOLATION, 100, 130)
    refused = told._replace(error_code=74)
    assert cases(RULE, [leads(1, 1, 0, 0), refused, leads(41, 2, 1, 100)]) == []


def test_a_derived_place_proves_nothing() -> None:
    """A group's partition that is computed, an offset that is counted: nothing was lost because of them."""
    for how in (a.COMPUTED_PARTITION, a.COUNTED_OFFSET):
        facts = [one._replace(derived=how) if one.kind == a.OPERATION else one for one in UNCLEAN]
        assert cases(RULE, facts) == []
    # Where there are no answers, an offset that a line of an append gives counts only below the high watermark.
    facts = [one._replace(derived=a.MATCHED_APPEND) if one.kind == a.OPERATION else one for one in UNCLEAN]
    assert cases(RULE, facts) == []
    told = fact(a.FETCH, 25, 1, leader_epoch=0, high_watermark=110, offset=110, replica_id=2, error_code=0)
    (case,) = cases(RULE, [*facts, told])
    assert (case.severity, case.offset_start, case.offset_end, case.records) == (VIOLATION, 100, 110, 1)


def request(second: float, broker_id: int, epoch: int, leader: int, isr: tuple[int, ...]) -> Fact:
    """A LeaderAndIsr request; here each epoch is one state."""
    state = {"name": "request", "leader": leader, "leader_epoch": epoch, "partition_epoch": epoch, "isr": isr}
    return fact(a.LEADERSHIP, second, broker_id, **state)


def test_the_chain_of_kip_101() -> None:
    """Broker 3 truncated to its own high watermark, then led; no line tells where its epoch starts, but its write."""
    facts: list[Fact] = [
        request(1, 1, 0, leader=1, isr=(1, 2, 3)),
        fact(a.HIGH_WATERMARK, 10, 1, name="updated", high_watermark=119),
        acked(10, 1, 118, error_code=None, derived=a.MATCHED_APPEND),
        request(20, 3, 1, leader=2, isr=(2, 3)),
        fact(a.TRUNCATION, 20.1, 3, name="log", offset=118),
        fact(a.TRUNCATION, 20.1, 3, name="replayed", offset=118, leader=2, leader_epoch=1, detail="to_high_watermark"),
        request(50, 3, 2, leader=3, isr=(3,)),
        request(70, 1, 2, leader=3, isr=(3,)),
        fact(a.APPEND, 60, 3, offset=118, end_offset=120),
    ]
    (case,) = cases(RULE, facts, settings(version=lambda *_: "0.10.2.2"))
    assert (case.offset_start, case.offset_end, case.cause) == (118, 119, "truncated_to_high_watermark")
    assert case.known_bug == "KAFKA-1211"
    # A later release truncates there only for want of an epoch to ask for: not for this bug.
    assert [one.known_bug for one in cases(RULE, facts, settings(version=lambda *_: "2.3.1"))] == [None]
    assert "when it started to follow broker 2 (truncated to its high watermark 118), and was later" in case.message


def test_segments_show_what_is_there_instead() -> None:
    batch = fact(a.BATCH, 99, 3, offset=100, end_offset=140, leader_epoch=1, name="intact")
    (case,) = cases(RULE, [*UNCLEAN, batch])
    assert "segments of broker 3 hold a later record" in case.message
    # Also without the line that says where the epoch starts.
    silent = [one for one in UNCLEAN if not (one.name == "leader_start" and one.broker_id == 2)]
    assert [(one.offset_start, one.offset_end) for one in cases(RULE, [*silent, batch])] == [(100, 120)]


def test_evidence_is_in_the_order_of_time_and_short() -> None:
    many = [acked(22 + n / 1000, 1, 100 + n) for n in range(500)]
    (case,) = cases(RULE, [*UNCLEAN[:3], *many, *UNCLEAN[6:]])
    assert case.records == 500
    assert len(case.evidence) <= 20
    assert [ref.time_us for ref in case.evidence] == sorted(ref.time_us for ref in case.evidence)


#: A rack without power (4.3): broker 1 had acknowledged up to 702. It comes back with 646, and leads on in epoch 0.
POWER = [
    leads(1, 1, 0, 0, topic_id="t"),
    follows(2, 2, 0, offset=0, high_watermark=0, topic_id="t"),
    acked(10, 1, 640, 650),
    acked(11, 1, 650, 702),
    fact(a.TRUNCATION, 30, 1, name="log", offset=646, detail="corruption"),
    fact(a.LOADED, 30.1, 1, offset=646),
    leads(35, 1, 0, 646, topic_id="t"),
    fact(a.LOADED, 30.2, 2, offset=690),
    follows(36, 2, 0, offset=690, high_watermark=640, topic_id="t"),
    fact(a.TRUNCATION, 36.1, 2, name="log", offset=646),
]


def in_epoch_1(facts: list[Fact]) -> list[Fact]:
    """Return facts with an election between: the leader that comes back leads in epoch 1."""
    return [
        line._replace(leader_epoch=1) if line.leader_epoch == 0 and line.time_us >= 35_000_000 else line
        for line in facts
    ]


def test_a_crash_takes_what_no_disk_had() -> None:
    for facts in (POWER, in_epoch_1(POWER)):
        (case,) = cases(RULE, facts)
        assert (case.severity, case.offset_start, case.offset_end, case.cause) == (VIOLATION, 646, 702, "crash")
        assert (
            "Broker 1's log ended at 646 as it was loaded, with a damaged end; before, it had reached" in case.message
        )
        assert "(power or host), not an election" in case.message
        assert "broker 2 up to 690" in case.message


def test_a_replica_in_sync_whose_own_lines_before_are_gone_lost_its_end_in_a_crash() -> None:
    """Broker 1 acknowledged; broker 2, in sync, comes back with a shorter log and leads."""
    before = [decided(3, 0, 0, 1, (1, 2), topic_id="t"), leads(1, 1, 0, 0, topic_id="t"), acked(11, 1, 650, 702)]
    after = [fact(a.LOADED, 30, 2, offset=646), decided(34, 1, 1, 2, (2,), topic_id="t")]
    facts = [*before, *after, leads(35, 2, 1, 646, topic_id="t"), follows(50, 1, 1, offset=702, topic_id="t")]
    (case,) = cases(RULE, facts)
    assert (case.severity, case.cause) == (VIOLATION, "crash")
    assert "broker 1 up to 702" in case.message
    # From outside the ISR it may never have had them.
    outside = [line._replace(isr=(1,)) if line.partition_epoch == 0 else line for line in facts]
    assert [one.cause for one in cases(RULE, outside)] == ["unclean_election"]
    # It cut its log as a follower (KIP-101).
    cut = fact(a.TRUNCATION, 25, 2, name="log", offset=646)
    assert "crash" not in {one.cause for one in cases(RULE, [*facts, cut])}


def test_changes_within_an_epoch_say_nothing_about_its_election() -> None:
    """A leader is in its own ISR: only the state before the election shows whether it was in sync."""
    elected = [decided(3, 0, 0, 1, (1,)), leads(1, 1, 0, 0), acked(11, 1, 240, 286), fact(a.LOADED, 20, 2, offset=240)]
    elected += [decided(34, 1, 1, 2, (2,)), leads(35, 2, 1, 240), follows(50, 1, 1, offset=286)]
    later = [decided(60, 1, 2, 2, (2, 1)), decided(70, 1, 3, 2, (2,)), decided(80, 2, 4, 2, (2,))]
    for count in range(len(later) + 1):
        (case,) = cases(RULE, [*elected, *later[:count]])
        assert (case.cause, "crash" in case.message) == ("unclean_election", False)
        unknown = [line for line in elected if line.partition_epoch != 0]
        assert {one.cause for one in cases(RULE, [*unknown, *later[:count]], Settings(deletable=False))} <= {
            "shorter_log"
        }


def test_a_log_that_comes_back_empty_is_no_crash() -> None:
    empty = [line._replace(offset=0) if line.offset == 646 and line.broker_id == 1 else line for line in POWER]
    (case,) = cases(RULE, [line for line in empty if line.detail != "corruption"])
    assert (case.offset_start, case.cause) == (0, "disk")


def test_without_an_id_a_second_start_may_be_of_a_new_topic() -> None:
    bare = [line._replace(topic_id=None) for line in POWER]
    assert [case.severity for case in cases(RULE, bare)] == [OPEN]
    assert [case.severity for case in cases(RULE, bare, settings(deletable=False))] == [VIOLATION]


def test_a_restart_that_kept_all_loses_nothing() -> None:
    kept = [line._replace(offset=702) if line.offset == 646 else line for line in POWER]
    assert cases(RULE, [line for line in kept if line.kind != a.TRUNCATION]) == []


def test_deleting_lines_of_a_crash_makes_no_other_range() -> None:
    for facts in (POWER, in_epoch_1(POWER)):
        for gone in combinations(range(len(facts)), 2):
            for case in cases(RULE, [line for at, line in enumerate(facts) if at not in gone]):
                assert case.severity == OPEN or (case.offset_start, case.offset_end) in ((646, 702), (646, 650)), gone


#: Before KIP-101: broker 3 cut its log to follow epoch 1, and led epoch 2. Broker 1 came back with a longer log.
CUT = [
    decided(3, 0, 0, 1, (1, 2, 3)),
    decided(10, 1, 1, 2, (2, 3)),
    follows(10.1, 3, 1, leader=2),
    fact(a.TRUNCATION, 10.2, 3, name="log", offset=118),
    decided(20, 2, 2, 3, (3,)),
    fact(a.LEADERSHIP, 20.1, 3, name="request", leader=3, leader_epoch=2),
    fact(a.LOADED, 30, 1, offset=119),
    follows(31, 1, 2, leader=3),
    fact(a.TRUNCATION, 31.1, 1, name="log", offset=108),
]
CHAIN = {"connection": "c", "correlation_id": 1, "replica_id": 3}
OLD = settings(version=lambda *_: "0.10.2.2")


def test_a_leader_that_cut_its_log_and_fetched_nothing_may_lack_committed_records() -> None:
    asked_before = fact(a.FETCH, 5, 1, offset=118, **CHAIN)
    (case,) = cases(RULE, [*CUT, asked_before], OLD)
    assert (case.severity, case.leader_epoch, case.offset_start, case.offset_end) == (OPEN, 2, 118, 119)
    assert cases(RULE, [*CUT, fact(a.FETCH, 15, 2, offset=118, **CHAIN)], OLD) == []
    # Later releases ask their leader where to cut.
    assert cases(RULE, [*CUT, asked_before], settings(version=lambda *_: "2.8.2")) == []
    assert cases(RULE, CUT, OLD) == [], "without requests nothing is known of any fetch"
