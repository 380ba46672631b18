"""Elections, membership, truncations, acknowledgements: one case each, and what is legal beside it."""

from __future__ import annotations

import pickle
from dataclasses import replace

from highwater.pipelines.rules.guarantees import replica_files
from highwater.pipelines.rules.history import FactHistory
from highwater.pipelines.rules.registry import BY_ID
from highwater.pipelines.rules.rule import OBSERVATION, OPEN, VIOLATION, Settings
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact
from tests.unit.rules.facts import SECOND, acked, cases, decided, fact, follows, leads, min_isr, outcome


def severities(rule_id: str, facts: list[Fact], *given: Settings) -> list[str]:
    return [case.severity for case in cases(BY_ID[rule_id], facts, *given)]


def test_unclean_election() -> None:
    before, after = decided(0, 0, 5, 1, (1,)), decided(9, 1, 6, 2, (2,))
    (case,) = cases(BY_ID["unclean-election"], [before, after])
    assert (case.severity, case.leader_epoch, case.brokers) == (OBSERVATION, 1, (1, 2))
    # A state may be missing between: nothing is known.
    assert cases(BY_ID["unclean-election"], [before, after._replace(partition_epoch=7)]) == []
    # A reassignment may add a replica to the ISR and elect it in one change.
    moved = decided(9, 1, 6, 3, (3, 4, 5), replicas=(3, 4, 5))
    assert cases(BY_ID["unclean-election"], [before, moved]) == []
    assert cases(BY_ID["unclean-election"], [decided(0, 0, 5, 1, (1, 2)), after]) == []


def test_the_end_of_a_reassignment_is_no_unclean_election_whatever_the_controller_calls_it() -> None:
    """m-4.0.2: the new replica joins the ISR, the old one leaves it and the new one leads, all in one change."""
    changed = "UNCLEAN partition change for scratch-0 with topic ID Uirf1KahSrWjdL898_tcSA: {}, leaderEpoch: 2 -> 3"
    told = {"leader": 3, "leader_epoch": 3}
    texts = {
        "replicas: [3, 2, 1] -> [3, 2], isr: [2, 1] -> [2, 3], removingReplicas: [1] -> [], leader: 1 -> 3": (2, 3),
        "replicas: [3, 1] -> [3], isr: [1] -> [3], removingReplicas: [1] -> [], leader: 1 -> 3": (3,),
        "isr: [2, 1] -> [2, 3], leader: 1 -> 3": (2, 3),
    }
    for text, isr in texts.items():
        line = fact(a.ELECTION, 40, 9, isr=isr, detail=changed.format(text), **told)
        assert cases(BY_ID["unclean-election"], [leads(41, 3, 3, 80), line]) == []
    line = fact(a.ELECTION, 40, 9, isr=(3,), detail=changed.format("isr: [1, 2] -> [3], leader: 1 -> 3"), **told)
    assert len(cases(BY_ID["unclean-election"], [leads(41, 3, 3, 80), line])) == 1


def test_two_leaders() -> None:
    both = [leads(1, 1, 4, 10, topic_id="t"), leads(2, 2, 4, 10, topic_id="t")]
    (case,) = cases(BY_ID["two-leaders-one-epoch"], both)
    assert (case.severity, case.brokers) == (VIOLATION, (1, 2))
    # Without an id it may be another topic of that name.
    assert [
        one.severity for one in cases(BY_ID["two-leaders-one-epoch"], [leads(1, 1, 4, 10), leads(2, 2, 4, 10)])
    ] == [OPEN]
    assert cases(BY_ID["two-leaders-one-epoch"], [leads(1, 1, 4, 10), leads(3, 1, 4, 10), leads(2, 2, 5, 10)]) == []
    # The topic was created anew, on a clock that is a little ahead.
    anew = leads(0.9, 3, 4, 0, topic_id="u")
    assert cases(BY_ID["two-leaders-one-epoch"], [anew, both[0]]) == []
    assert [one.brokers for one in cases(BY_ID["two-leaders-one-epoch"], [anew, *both])] == [(1, 2)]
    # Lines of broker 2 before and after tell the id that this one does not name.
    around = [leads(at, 2, 4, 10, topic_id="t")._replace(name="leader_update") for at in (1.5, 2.5)]
    assert severities("two-leaders-one-epoch", [both[0], leads(2, 2, 4, 10), *around]) == [VIOLATION]


def test_membership() -> None:
    line = decided(0, 1, 1, 1, (2, 3))
    assert severities("leader-outside-isr", [line, line._replace(broker_id=2)]) == [VIOLATION]
    # One line may be misread; and where another one contradicts it, one of them is.
    assert severities("leader-outside-isr", [line]) == [OPEN]
    other = decided(0, 1, 1, 1, (1, 2, 3))._replace(broker_id=3)
    apart = [line, line._replace(broker_id=2), other]
    assert severities("leader-outside-isr", apart) == [OPEN]
    assert cases(BY_ID["leader-outside-isr"], [decided(0, 1, 1, -1, (2, 3)), decided(0, 2, 2, 1, ())]) == []
    first = [decided(0, 0, 0, 1, (1, 7)), decided(5, 0, 0, 1, (7, 1))._replace(broker_id=1)]
    (case,) = cases(BY_ID["isr-outside-replicas"], first)
    assert (case.severity, case.brokers) == (VIOLATION, (7,))
    # A state before without it: it joined though it was no replica. With the state before missing nothing is proven.
    later = [decided(0, 1, 1, 1, (1,))._replace(broker_id=1), decided(5, 1, 2, 1, (1, 7))]
    assert severities("isr-outside-replicas", later) == [VIOLATION]
    assert severities("isr-outside-replicas", later[1:]) == [OPEN]
    # Lines of one partition epoch that contradict each other.
    apart = [*later, decided(6, 1, 2, 1, (1, 2))]
    assert severities("isr-outside-replicas", apart) == [OPEN]


def test_a_reassignment_leaves_removed_replicas_in_the_isr() -> None:
    """ZooKeeper, zk25-rolls: the assignment is [1, 3] while the ISR is [1, 2, 3] still, one leader epoch long."""
    steps = [
        decided(0, 0, 0, 1, (1, 2), replicas=(1, 2)),
        decided(10, 1, 1, 1, (1, 2), replicas=(1, 3, 2)),
        decided(30, 2, 3, 1, (1, 2, 3), replicas=(1, 3)),
        decided(31, 3, 4, 1, (1, 3), replicas=(1, 3)),
    ]
    for gone in range(len(steps)):
        facts = [one for at, one in enumerate(steps) if at != gone]
        assert all(one.severity == OPEN for one in cases(BY_ID["isr-outside-replicas"], facts))
    assert cases(BY_ID["isr-outside-replicas"], steps) == []


def test_truncation_below_the_high_watermark() -> None:
    line = fact(a.TRUNCATION, 5, 2, name="below_high_watermark", offset=10, high_watermark=20)
    cut = fact(a.TRUNCATION, 5, 2, name="log", offset=10)
    new, old = (Settings(version=lambda *_, version=version: version) for version in ("3.9.1", "2.8.2"))
    assert [(case.severity, case.known_bug) for case in cases(BY_ID["truncation-below-hw"], [line, cut], new)] == [
        (VIOLATION, None)
    ]
    assert severities("truncation-below-hw", [line], new) == [OPEN]
    assert [case.known_bug for case in cases(BY_ID["truncation-below-hw"], [line], old)] == ["KAFKA-14704"]
    upgraded = Settings(version=lambda _, time_us: "2.8.2" if time_us < 9 * SECOND else "3.9.1")
    assert [case.severity for case in cases(BY_ID["truncation-below-hw"], [line, cut], upgraded)] == [OBSERVATION]


def _answer(second: float, broker_id: int, offset: int, size: int, **fields: object) -> Fact:
    micros = int(second * SECOND)
    given = {"error_code": 0, "name": "all", "client": "p", "earliest_us": micros, "latest_us": micros + 1000} | fields
    return fact(a.ANSWER, second, broker_id, offset=offset, size_bytes=size, **given)


def test_acked_as_the_duplicate_of_another_batch() -> None:
    first = _answer(10, 3, 1714, 296, error_code=6)
    taken = _answer(10.5, 2, 1714, 183, log_append_time_us=10 * SECOND)
    epochs = [leads(1, 3, 3, 1464), leads(10.2, 2, 4, 1715), follows(30, 2, 5), decided(29, 5, 9, -1, (2,))]
    (case,) = cases(BY_ID["acked-as-duplicate-of-another-batch"], [*epochs, first, taken])
    assert (case.severity, case.offset_start, case.brokers) == (VIOLATION, 1714, (2, 3))
    # The new leader did not have the first batch, or it is not known.
    shorter = [epochs[0], leads(10.2, 2, 4, 1714), *epochs[2:]]
    assert cases(BY_ID["acked-as-duplicate-of-another-batch"], [*shorter, first, taken]) == []
    assert severities("acked-as-duplicate-of-another-batch", [first, taken]) == [OPEN]
    # An honest retry is as large as its first attempt.
    assert cases(BY_ID["acked-as-duplicate-of-another-batch"], [first, taken._replace(size_bytes=296)]) == []
    # Appended anew where the first one had been lost: its own append time, at or after it was read.
    anew = taken._replace(log_append_time_us=None)
    assert cases(BY_ID["acked-as-duplicate-of-another-batch"], [first, anew]) == []
    # The first attempt of the same size may be the one that failed elsewhere.
    other = _answer(9.9, 3, 1714, 183, error_code=6)
    assert cases(BY_ID["acked-as-duplicate-of-another-batch"], [first, other, taken]) == []


def test_an_error_whose_record_is_there() -> None:
    failed = _answer(10, 1, 50, 100, error_code=7)
    (case,) = cases(BY_ID["error-yet-committed"], [leads(1, 1, 0, 0), failed, leads(60, 2, 1, 80)])
    assert (case.severity, case.offset_start, case.records) == (OBSERVATION, 50, 1)
    assert cases(BY_ID["error-yet-committed"], [leads(1, 1, 0, 0), failed, leads(60, 2, 1, 50)]) == []
    assert cases(BY_ID["error-yet-committed"], [leads(1, 1, 0, 0), failed]) == []


def _isr(second: float, version: int, isr: tuple[int, ...]) -> Fact:
    return fact(
        a.LEADERSHIP, second, 1, name="leader_update", leader=1, leader_epoch=0, partition_epoch=version, isr=isr
    )


def test_an_answer_under_min_isr() -> None:
    lines = [_isr(1, 4, (1, 2)), _isr(5, 5, (1,)), _isr(20, 6, (1, 2))]
    late, early, near = _answer(10, 1, 7, 100), _answer(3, 1, 6, 100), _answer(5.5, 1, 6, 100)
    rule = BY_ID["ack-under-min-isr"]
    assert [(case.severity, case.offset_start) for case in cases(rule, [*lines, late, early], min_isr(2))] == [
        (OPEN, 7)
    ]
    # Its line may have been written late: it may have been appended before the ISR shrank.
    assert cases(rule, [*lines, near], min_isr(2)) == []
    # A version is missing between: the ISR may have been larger meanwhile.
    assert cases(rule, [*lines[:2], _isr(20, 7, (1,)), late], min_isr(2)) == []
    assert cases(rule, [*lines, late], min_isr(1)) == []


def _new(broker_id: int, time_us: int) -> str:
    return "3.9.1"


def test_late_and_early_acknowledgements() -> None:
    told = {"detail": "lost_wake_up|KAFKA-13091|PRODUCE", "previous": 5000, "latest_us": 14 * SECOND, "isr": (1,)}
    late = acked(20, 1, 7, name="late", **told)
    committed = fact(a.ISR_CHANGE, 30, 1, name="committed", partition_epoch=6, isr=(1, 2))
    known = [_isr(1, 4, (1, 2)), _isr(15, 5, (1,)), committed]
    old = Settings(version=lambda *_: "2.8.2")
    (case,) = cases(BY_ID["late-completion"], [*known, late], old)
    assert (case.severity, case.known_bug) == (VIOLATION, "KAFKA-13091")
    # Since 3.7 it may have waited for min.insync.replicas, which a line that is missing had raised; where none tells
    # it, nothing is known to have been due.
    told_min = min_isr(1)
    assert [
        one.severity for one in cases(BY_ID["late-completion"], [*known, late], replace(told_min, version=_new))
    ] == [OPEN]
    assert cases(BY_ID["late-completion"], [*known, late], Settings(version=_new)) == []
    whole = [one._replace(replicas=one.isr) for one in known[1:]]
    same = [one._replace(isr=(1, 2), replicas=(1, 2)) for one in (known[0], *whole)]
    assert severities("late-completion", [*same, late], Settings(version=_new)) == [VIOLATION]
    # A version is missing: another replica may have been in the ISR.
    assert severities("late-completion", [known[0], known[2], late], old) == [OPEN]
    # zk25-rolls: no line had told the replay the ISR of a new leader, and it took who fetched for its members.
    assert cases(BY_ID["late-completion"], [*known, late._replace(isr=None)], old) == []
    # A coordinator's record: where it lies is counted.
    assert cases(BY_ID["late-completion"], [*known, late._replace(derived=a.COMPUTED_PARTITION)], old) == []
    # By the rules of the release that it ran then, whatever it runs since.
    upgraded = Settings(version=lambda _, time_us: "2.8.2" if time_us < 90 * SECOND else "3.5.2")
    assert (
        cases(BY_ID["late-completion"], [*known, late], upgraded)
        == cases(BY_ID["late-completion"], [*known, late], old)
        != []
    )
    stalled = late._replace(detail="leader_stalled||PRODUCE")
    assert cases(BY_ID["late-completion"], [*known, stalled]) == []
    early = acked(20, 1, 7, name="contradicted", latest_us=14 * SECOND)
    assert severities("ack-before-commit", [*known, early]) == [VIOLATION]


def _entry(broker_id: int, name: str, offset: int, epoch: int | None = None) -> Fact:
    kind = a.CHECKPOINT if epoch is None else a.EPOCH_ENTRY
    return fact(kind, 0, broker_id, name=name, offset=offset, leader_epoch=epoch)._replace(time_us=a.NO_TIME_US)


def _batch(broker_id: int, offset: int, end: int, checksum: int = 7, epoch: int = 0, name: str = "intact") -> Fact:
    return fact(a.BATCH, 0, broker_id, offset=offset, end_offset=end, checksum=checksum, leader_epoch=epoch, name=name)


def test_a_checkpoint_beyond_the_log() -> None:
    batches = [_batch(1, 0, 50), _batch(1, 50, 100)]
    ahead = _entry(1, replica_files.HIGH_WATERMARK, 101)
    (case,) = cases(BY_ID["checkpoint-ahead-of-log"], [*batches, ahead])
    assert (case.severity, case.offset_start, case.offset_end) == (OPEN, 100, 101)
    assert case.cause == replica_files.HIGH_WATERMARK
    # The partition is in two log directories: one of the entries is left over.
    assert cases(BY_ID["checkpoint-ahead-of-log"], [*batches, ahead, _entry(1, replica_files.HIGH_WATERMARK, 20)]) == []
    assert cases(BY_ID["checkpoint-ahead-of-log"], [*batches, ahead._replace(offset=100)]) == []
    # Without its segments nothing is known of the log's end.
    assert cases(BY_ID["checkpoint-ahead-of-log"], [ahead]) == []


def test_epochs_that_start_at_two_offsets() -> None:
    same = [_entry(1, "e", 0, 0), _entry(1, "e", 70, 3), _entry(2, "e", 5, 0), _entry(2, "e", 70, 3)]
    assert cases(BY_ID["epoch-history-diverged"], same) == []
    moved = [*same[:3], _entry(2, "e", 75, 3)]
    (case,) = cases(BY_ID["epoch-history-diverged"], moved, Settings(compacted=False))
    assert (case.severity, case.leader_epoch, case.offset_start, case.offset_end) == (VIOLATION, 3, 70, 75)
    assert severities("epoch-history-diverged", moved) == [OPEN]
    assert cases(BY_ID["epoch-history-diverged"], moved, Settings(compacted=True)) == []


def test_epochs_of_a_broker_with_two_files_or_of_another_topic_of_that_name_are_not_compared() -> None:
    told = Settings(compacted=False)
    one = [_entry(1, "e", 0, 0)._replace(file_id="d1"), _entry(1, "e", 70, 3)._replace(file_id="d1")]
    other = [_entry(2, "e", 5, 0)._replace(file_id="d2"), _entry(2, "e", 75, 3)._replace(file_id="d2")]
    assert len(cases(BY_ID["epoch-history-diverged"], [*one, *other], told)) == 1
    # A log directory failed, and the partition went on in another one, from a later start on.
    left_over = _entry(2, "e", 75, 2)._replace(file_id="d3")
    assert cases(BY_ID["epoch-history-diverged"], [*one, *other, left_over], told) == []
    # The broker was away while the topic was deleted and created anew.
    named = [one[0], one[1]._replace(topic_id="new"), other[0], other[1]._replace(topic_id="old")]
    assert cases(BY_ID["epoch-history-diverged"], named, told) == []


def test_replicas_that_hold_other_bytes() -> None:
    marks = [_entry(1, replica_files.HIGH_WATERMARK, 100), _entry(2, replica_files.HIGH_WATERMARK, 100)]
    one, other = _batch(1, 50, 60), _batch(2, 50, 60, checksum=8)
    (case,) = cases(BY_ID["replica-bytes-diverged"], [*marks, one, other], Settings(compacted=False))
    assert (case.severity, case.offset_start, case.offset_end, case.brokers) == (VIOLATION, 50, 60, (1, 2))
    assert [found.severity for found in cases(BY_ID["replica-bytes-diverged"], [*marks, one, other])] == [OPEN]
    # Cleaners of two replicas rewrite a batch each by itself.
    assert cases(BY_ID["replica-bytes-diverged"], [*marks, one, other], Settings(compacted=True)) == []
    # One of them does not count it as committed: a tail may differ until its leader is heard.
    assert (
        cases(BY_ID["replica-bytes-diverged"], [marks[0], _entry(2, replica_files.HIGH_WATERMARK, 55), one, other])
        == []
    )
    # Of one topic each, one of which is deleted; and of a log directory that a partition was moved from.
    ids = [one._replace(topic_id="old"), other._replace(topic_id="new")]
    assert cases(BY_ID["replica-bytes-diverged"], [*marks, *ids], Settings(compacted=False)) == []
    moved = other._replace(broker_id=1)
    assert cases(BY_ID["replica-bytes-diverged"], [marks[0], one, moved], Settings(compacted=False)) == []
    assert cases(BY_ID["replica-bytes-diverged"], [*marks, marks[1]._replace(offset=70), one, other]) == []
    torn = _batch(1, 0, 5, name="corrupt")
    (case,) = cases(BY_ID["replica-bytes-diverged"], [*marks, torn, _batch(2, 0, 5)])
    assert (case.cause, len(case.witnesses)) == ("corrupt", 2)
    # A tail that was not flushed when the broker was killed is cut as it starts.
    assert cases(BY_ID["replica-bytes-diverged"], [torn]) == []


def test_replicas_that_differ_for_a_while_are_one_case_with_the_bug_that_parted_them() -> None:
    """KIP-279, kip279-11: broker 1 never had epoch 2, and answers with the start of epoch 3."""
    marks = [_entry(1, replica_files.HIGH_WATERMARK, 200), _entry(2, replica_files.HIGH_WATERMARK, 200)]
    epochs = [_entry(1, "e", *at) for at in ((0, 0), (76, 1), (146, 3))]
    epochs += [_entry(2, "e", *at) for at in ((0, 0), (76, 1), (128, 2), (137, 3))]
    batches = [
        one for at in range(120, 128) for one in (_batch(1, at, at + 1, epoch=1), _batch(2, at, at + 1, epoch=1))
    ]
    batches += [one for at in range(128, 137) for one in (_batch(1, at, at + 1, 8, 1), _batch(2, at, at + 1, 9, 2))]
    old = Settings(version=lambda *_: "1.1.1", compacted=False)
    (case,) = cases(BY_ID["replica-bytes-diverged"], [*marks, *epochs, *batches], old)
    assert (case.severity, case.offset_start, case.offset_end, case.records) == (VIOLATION, 128, 137, 9)
    assert case.known_bug == "KAFKA-6361"
    # Another cause, where the leader knew the epoch, and in a release that asks again.
    knew = [_entry(1, "e", 128, 2), *epochs]
    assert [one.known_bug for one in cases(BY_ID["replica-bytes-diverged"], [*marks, *knew, *batches], old)] == [None]
    new = Settings(version=lambda *_: "2.3.1", compacted=False)
    assert [one.known_bug for one in cases(BY_ID["replica-bytes-diverged"], [*marks, *epochs, *batches], new)] == [None]


def test_files_of_another_topic_of_that_name_prove_no_loss() -> None:
    """The topic was created anew after the last line, or files are left of the one before."""
    lines = [leads(1, 1, 0, 0), acked(10, 1, 500), leads(30, 2, 1, 700), follows(31, 1, 1), follows(60, 2, 2)]
    lines = [one._replace(topic_id="now") if one.kind == a.LEADERSHIP else one for one in lines]
    entry = _entry(1, "e", 20, 1)
    assert cases(BY_ID["committed-data-lost"], [*lines, entry._replace(topic_id="later")]) == []
    # Without an id: its epoch begins before its leader's log ended.
    assert cases(BY_ID["committed-data-lost"], [*lines, entry]) == []
    # Of the same topic the line would say so, too.
    told = [one._replace(offset=20) if one.offset == 700 else one for one in lines]
    assert severities("committed-data-lost", [*told, entry]) == [VIOLATION]


def test_a_rule_that_fails_is_told_and_takes_no_other_with_it() -> None:
    def broken(history: object, told: object) -> object:
        raise ZeroDivisionError("no")

    found = outcome(replace(BY_ID["two-leaders-one-epoch"], make=broken), [leads(1, 1, 0, 0)])  # type: ignore[arg-type]
    assert found.error == "ZeroDivisionError: no"
    assert found.cases == []


#: Broker 1 leads, acknowledges with acks=1 what nobody has fetched, and broker 2 begins at 100.
LEADER_ONLY = [
    leads(1, 1, 0, 0, topic_id="t"),
    leads(41, 2, 1, 100, topic_id="t"),
    follows(60, 1, 1),
    fact(a.TRUNCATION, 61, 1, name="log", offset=100),
    *[_answer(20 + n, 1, 95 + n, 100, name="1") for n in range(10)],
]


def test_what_only_the_leader_had_acknowledged_is_cut_off() -> None:
    (case,) = cases(BY_ID["acked-by-leader-only-lost"], LEADER_ONLY)
    assert (case.severity, case.offset_start, case.offset_end, case.records) == (OBSERVATION, 100, 105, 5)
    assert (case.leader_epoch, case.brokers, case.cause) == (0, (1, 2), "acks_1")


def test_what_was_below_the_high_watermark_was_committed_and_is_no_legal_loss() -> None:
    told = {"leader_epoch": 0, "high_watermark": 103, "offset": 103, "replica_id": 3, "error_code": 0}
    fetch = fact(a.FETCH, 39, 1, connection="c", correlation_id=1, topic_id="t", **told)
    (case,) = cases(BY_ID["acked-by-leader-only-lost"], [*LEADER_ONLY, fetch])
    assert (case.offset_start, case.records) == (103, 2)
    (lost,) = cases(BY_ID["committed-data-lost"], [*LEADER_ONLY, fetch])
    assert (lost.severity, lost.offset_start, lost.offset_end) == (VIOLATION, 100, 103)


def test_in_which_of_its_own_epochs_it_was_acknowledged_need_not_be_known() -> None:
    """zk23-faults, clicks-3: the controller gave the paused leader another epoch, which it never logged."""
    paused = [leads(1, 1, 4, 0, topic_id="t"), decided(25, 5, 7, 1, (1,), topic_id="t"), *LEADER_ONLY[1:]]
    known = [one._replace(leader_epoch=7) if one.leader_epoch == 1 else one for one in paused]
    (case,) = cases(BY_ID["acked-by-leader-only-lost"], known)
    assert (case.leader_epoch, case.records) == (4, 5)
    # But it is not lost by an epoch after which it may have been acknowledged: the broker may have led epoch 8.
    later = [one._replace(leader_epoch=9) if one.name == "follower_start" else one for one in known]
    assert cases(BY_ID["acked-by-leader-only-lost"], later) == []


def test_a_file_with_epochs_from_before_and_after_shows_that_the_topic_is_the_same() -> None:
    """zk23-faults, clicks-3: before topic ids, and a zkVersion that nobody logged lies between."""
    lines = [one._replace(topic_id=None) for one in LEADER_ONLY]
    assert cases(BY_ID["acked-by-leader-only-lost"], lines) == []
    later = leads(80, 1, 2, 140)
    file = [_entry(1, "e", *at)._replace(file_id="f") for at in ((0, 0), (100, 1), (140, 2))]
    assert len(cases(BY_ID["acked-by-leader-only-lost"], [*lines, later, *file])) == 1
    # Its epoch 2 replaced epoch 1, in which nothing was written.
    assert len(cases(BY_ID["acked-by-leader-only-lost"], [*lines, later, file[0], file[2]])) == 1
    # It begins after the loss, or otherwise than a leader's line says: of another topic, for all that is known.
    assert cases(BY_ID["acked-by-leader-only-lost"], [*lines, later, *file[1:]]) == []
    assert cases(BY_ID["acked-by-leader-only-lost"], [*lines, leads(80, 1, 2, 141), file[0], file[2]]) == []


def test_what_is_not_shown_to_be_cut_off_is_not_lost() -> None:
    rule = BY_ID["acked-by-leader-only-lost"]
    uncut = [one for one in LEADER_ONLY if one.kind != a.TRUNCATION]
    assert cases(rule, uncut) == []
    # It truncated before it acknowledged them; or to beyond them, having led on.
    assert cases(rule, [*uncut, fact(a.TRUNCATION, 5, 1, name="log", offset=100)]) == []
    assert cases(rule, [*uncut, fact(a.TRUNCATION, 61, 1, name="log", offset=105)]) == []
    # The next leader had them: what a follower cuts off it fetches again (before KIP-101).
    whole = [one for one in LEADER_ONLY if one.broker_id != 2]
    assert cases(rule, [*whole, leads(41, 2, 1, 105, topic_id="t")]) == []
    assert cases(rule, whole) == []
    # acks=all is another rule's.
    assert cases(rule, [one._replace(name="all") if one.kind == a.ANSWER else one for one in LEADER_ONLY]) == []


def test_a_million_answers_take_no_memory() -> None:
    checker = BY_ID["acked-by-leader-only-lost"].make(_history(LEADER_ONLY[:4]), Settings())
    answer = _answer(20, 1, 100, 100, name="1")
    kept = 0
    for n in range(100_000):
        assert checker.observe(answer._replace(offset=100 + n, time_us=answer.time_us + n)) is None
        if n == 10:
            kept = len(pickle.dumps(checker.__dict__ | {"_history": None, "_settings": None}))
    assert len(pickle.dumps(checker.__dict__ | {"_history": None, "_settings": None})) <= kept + 50
    (case,) = checker.finish()
    assert (case.offset_start, case.offset_end, case.records) == (100, 100_100, 100_000)


def _history(facts: list[Fact]) -> FactHistory:
    history = FactHistory()
    for one in facts:
        history.add(one)
    history.close()
    return history


def test_brokers_that_never_name_each_other_are_probably_of_two_clusters():
    def led(second: float, broker_id: int, other: int) -> Fact:
        return leads(second, broker_id, 3, 8900, isr=(broker_id, other))

    (case,) = cases(BY_ID["two-leaders-one-epoch"], [led(1, 1, 2), led(2, 11, 12)])
    assert case.severity == OPEN
    assert "No line of leaders or ISRs by brokers 1, 2 names one of 11, 12" in case.message
    assert "ingest.clusters" in case.message
    (one_cluster,) = cases(
        BY_ID["two-leaders-one-epoch"], [led(1, 1, 2), led(2, 11, 12), leads(3, 2, 4, 9000, isr=(2, 11))]
    )
    assert "ingest.clusters" not in one_cluster.message
