"""What default levels show of a loss: high watermarks and log ends of replicas above where a later epoch begins."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.rules.registry import BY_ID
from highwater.pipelines.rules.rule import OPEN, VIOLATION, Case, Settings
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact
from tests.examples import examples
from tests.unit.rules.facts import acked, cases, decided, fact, follows, leads
from tests.unit.rules.replicated import BROKERS, Partition

RULE = BY_ID["committed-data-lost"]

ZK28 = Settings(version=lambda *_: "2.8.2")


def loaded(second: float, broker_id: int, high_watermark: int | None, end: int | None = None) -> Fact:
    return fact(a.LOADED, second, broker_id, high_watermark=high_watermark, offset=end)


def cut(second: float, broker_id: int, offset: int, **fields: object) -> Fact:
    return fact(a.TRUNCATION, second, broker_id, **({"name": "log", "offset": offset} | fields))


TWO = {"replicas": (1, 2)}
#: unclean28, two replicas: broker 1 is alone in the ISR as it dies. Broker 2, elected from outside, begins epoch 3 at
#: 115. Broker 1 comes back with a checkpointed high watermark of 333 and a log up to 341, and cuts it.
UNCLEAN = [
    decided(1, 0, 0, 1, (1, 2), **TWO),
    leads(2, 1, 0, 0),
    decided(10, 1, 1, 1, (1,), **TWO),
    leads(11, 1, 1, 145, high_watermark=115, previous=0),
    decided(20, 2, 2, -1, (1,), **TWO),
    decided(30, 3, 3, 2, (2,), **TWO),
    leads(31, 2, 3, 115, high_watermark=113, previous=-1),
    loaded(40, 1, None, 341),
    loaded(41, 1, 333),
    follows(42, 1, 3, offset=341, high_watermark=333, previous=-1),
    cut(43, 1, 115),
]


def told(facts: Sequence[Fact], settings: Settings = ZK28) -> list[tuple[str, int | None, int | None]]:
    return [(case.severity, case.offset_start, case.offset_end) for case in cases(RULE, list(facts), settings)]


def test_a_replica_that_was_alone_in_the_isr_cuts_what_it_had_committed() -> None:
    (case,) = cases(RULE, UNCLEAN, ZK28)
    assert (case.severity, case.offset_start, case.offset_end, case.leader_epoch) == (VIOLATION, 115, 341, 1)
    assert case.cause == "unclean_election"
    assert "had a high watermark of 333" in case.message
    assert "roker 1, whose log ended at 341, had been alone in the ISR" in case.message
    assert case.records is None, "no answer says how many produces were acknowledged"


def test_deleting_any_lines_makes_no_other_loss() -> None:
    """A range may become shorter, and a violation open."""
    for count in (1, 2, 3):
        for gone in combinations(range(len(UNCLEAN)), count):
            for severity, start, end in told([line for at, line in enumerate(UNCLEAN) if at not in gone]):
                assert (start, end) in ((115, 333), (115, 341)) or severity == OPEN, gone


def test_recovery_of_a_damaged_end_is_no_cut_of_a_follower() -> None:
    assert told([*UNCLEAN[:-1], cut(43, 1, 115, detail="corruption")]) == told(UNCLEAN[:-1])


def test_without_the_cut_the_mark_may_be_of_the_later_epoch() -> None:
    assert told(UNCLEAN[:-1]) == [(OPEN, 115, 341)]


def test_a_replica_that_comes_back_within_an_epoch_has_what_it_copied() -> None:
    """It followed epoch 3 before it restarted: its mark is of that epoch."""
    before = [follows(35, 1, 3, offset=115, previous=-1)]
    assert told([*UNCLEAN[:7], *before, *UNCLEAN[7:-1]]) == [], "its log was no longer than where epoch 3 begins"
    # Nothing is known of where it was before: what is usual where logs begin with a restart.
    first = [line for line in UNCLEAN[:-1] if line.name != "leader_start" or line.broker_id != 1]
    assert told(first) == [(OPEN, 115, None)], "of the unclean election alone"


#: As `UNCLEAN`, with no high watermark above where epoch 3 begins: the log end of broker 1 is all there is.
LOG_END = [line._replace(high_watermark=110) if line.high_watermark == 333 else line for line in UNCLEAN]


def changed(facts: Sequence[Fact], epoch: int, **fields: object) -> list[Fact]:
    """Return facts with other values in the line by which the leader of an epoch starts."""
    return [
        line._replace(**fields) if (line.name, line.leader_epoch) == ("leader_start", epoch) else line  # type: ignore[arg-type]
        for line in facts
    ]


def test_a_log_end_of_a_leader_with_followers_in_sync_is_no_mark() -> None:
    """A follower cuts what was never committed, at any fail-over."""
    in_sync = [
        line._replace(isr=(1, 2)) if line.leader_epoch in (1, 2) and line.isr == (1,) else line for line in LOG_END
    ]
    assert told(in_sync) == []


def test_a_log_end_of_a_leader_alone_in_the_isr_is_committed() -> None:
    (case,) = cases(RULE, LOG_END, ZK28)
    assert (case.severity, case.offset_start, case.offset_end) == (VIOLATION, 115, 341)
    assert {"broker 1, loaded", "broker 2, leadership"} <= set(case.witnesses)


def test_deleting_any_lines_of_a_log_end_makes_no_other_loss() -> None:
    for count in (1, 2, 3):
        for gone in combinations(range(len(LOG_END)), count):
            for severity, start, end in told([line for at, line in enumerate(LOG_END) if at not in gone]):
                assert (start, end) == (115, 341) or severity == OPEN, gone


@pytest.mark.parametrize(
    ("start", "high_watermark", "severity"),
    [
        (115, 113, VIOLATION),
        (145, 144, VIOLATION),  # nothing that broker 1 answered as leader of epoch 1 reached broker 2
        (145, 145, OPEN),  # caught up once: broker 1's high watermark may have waited for broker 2
        (145, None, OPEN),
        (160, 113, OPEN),  # it copied records of epoch 1
    ],
)
def test_a_next_leader_that_may_have_caught_up_leaves_it_open(
    start: int, high_watermark: int | None, severity: str
) -> None:
    facts = changed(LOG_END, 3, offset=start, high_watermark=high_watermark)
    facts = [line._replace(offset=start) if line.kind == a.TRUNCATION else line for line in facts]
    assert told(facts) == [(severity, start, 341)]


def test_a_third_replica_may_have_caught_up_unless_it_is_behind() -> None:
    """A high watermark waits for it, too, before it joins the ISR."""
    of_three = [line._replace(replicas=(1, 2, 3)) if line.replicas else line for line in LOG_END]
    assert told(of_three) == [(OPEN, 115, 341)]
    with_mark = [line._replace(replicas=(1, 2, 3)) if line.replicas else line for line in UNCLEAN]
    assert told(with_mark) == [(VIOLATION, 115, 333)]
    for offset, high_watermark, severity in ((130, 100, VIOLATION), (145, 140, VIOLATION), (145, None, OPEN)):
        third = follows(33, 3, 3, offset=offset, high_watermark=high_watermark, previous=1)
        assert (severity, 115, 341) in told([*of_three, third])
    # Without replicas that lines assign, those of the first ISR are all.
    unnamed = [line._replace(replicas=None) for line in LOG_END]
    assert told(unnamed) == [(VIOLATION, 115, 341)]
    assert told(unnamed[1:]) == [(OPEN, 115, 341)]


def test_a_leader_that_asked_for_another_replica_leaves_it_open() -> None:
    asked = {"name": "expand", "isr": (1, 2)}
    assert told([*LOG_END, fact(a.ISR_CHANGE, 15, 1, **asked)]) == [(OPEN, 115, 341)]
    assert told([*LOG_END, fact(a.ISR_CHANGE, 50, 1, **asked)]) == [(VIOLATION, 115, 341)]


def test_a_lone_leader_that_comes_back_epochs_later() -> None:
    """Broker 2 leads on in epoch 4, as another replica left the ISR."""
    later = [line._replace(leader_epoch=4) if line.name == "follower_start" else line for line in LOG_END]
    again = [decided(35, 4, 4, 2, (2,), **TWO), leads(36, 2, 4, 150, high_watermark=150, previous=3)]
    assert told([*later, *again]) == [(VIOLATION, 115, 341)]
    # With nothing written in epoch 3 the cut does not show whose records broker 1 had.
    assert told([*later, again[0], again[1]._replace(offset=115)]) == [(OPEN, 115, 341)]
    third = [again[0]._replace(leader=3, isr=(3,)), leads(36, 3, 4, 150, high_watermark=150, previous=3)]
    assert VIOLATION not in {severity for severity, _, _ in told([*later, *third])}


def test_a_lone_leader_that_is_paused_names_its_epoch() -> None:
    """It never restarts, and no line of a cut is left."""
    paused = [line for line in LOG_END[:-1] if line.kind != a.LOADED]
    assert told([line._replace(previous=1) if line.name == "follower_start" else line for line in paused]) == [
        (VIOLATION, 115, 341)
    ]
    assert told(paused) == [(OPEN, 115, 341)]


def test_without_a_leader_nothing_is_committed_whatever_the_isr() -> None:
    """KRaft with eligible leader replicas: the ISR is empty, and brokers' lines name the partition epoch alone."""
    empty = [line._replace(isr=()) if line.partition_epoch == 2 else line for line in LOG_END]
    assert told(empty) == [(VIOLATION, 115, 341)]
    named = follows(25, 2, 2, partition_epoch=2, leader=-1, offset=115, high_watermark=113)
    topic = [line._replace(topic_id="t") for line in LOG_END if line.partition_epoch != 2]
    assert told([*topic, named]) == [(VIOLATION, 115, 341)]
    assert told(topic) == []


def test_alone_below_min_isr_nothing_is_committed() -> None:
    """KAFKA-15583: since 3.7 a leader's high watermark stands still there."""
    for value, end in ((2, 333), (1, 341), (None, 333)):
        settings = Settings(version=lambda *_: "3.9.1", min_insync_replicas=lambda *_, value=value: value)
        assert told(UNCLEAN, settings) == [(VIOLATION, 115, end)]


def test_without_an_id_and_with_a_state_missing_it_may_be_another_topic() -> None:
    gap = [line for line in UNCLEAN if line.partition_epoch != 2]
    assert told(gap) == [(OPEN, 115, 333)]
    named = [line._replace(topic_id="t") if line.name in ("leader_start", "follower_start") else line for line in gap]
    assert told(named) == [(VIOLATION, 115, 333)]
    # A topic of the same name that was created while the broker was down: its log is another one.
    anew = [line._replace(topic_id="new") if line.leader_epoch == 3 and line.topic_id else line for line in named]
    empty = {"offset": 0, "high_watermark": 0}
    ours = [line._replace(**empty) if (line.broker_id, line.topic_id) == (1, "new") else line for line in anew[:-1]]
    assert told(ours) == []


def test_lines_of_one_second_in_two_files_have_no_order() -> None:
    """Whole seconds: by its place in one file a line is before another one, else not at all."""
    at = [line._replace(time_us=40_000_000) if line.time_us >= 40_000_000 else line for line in UNCLEAN]
    assert told(at) == [(VIOLATION, 115, 341)]
    apart = [line._replace(file_id="state-change") if line.kind == a.LEADERSHIP else line for line in at]
    assert [severity for severity, _, _ in told(apart)] in ([], [OPEN])


def test_a_leaders_high_watermark_in_its_shrink() -> None:
    shrink = fact(a.ISR_CHANGE, 15, 1, name="shrink", isr=(1,), high_watermark=300, offset=350)
    facts = [*UNCLEAN[:7], shrink, follows(42, 1, 3, offset=350)]
    assert told(facts) == [(VIOLATION, 115, 300)]
    # It may have led again: no line bounds its tenure.
    assert told(facts[:-1]) == [(OPEN, 115, 300)]


def test_a_follower_that_names_its_epoch_before() -> None:
    facts = [*UNCLEAN[:7], follows(42, 1, 3, offset=341, high_watermark=333, previous=1)]
    assert told(facts) == [(VIOLATION, 115, 341)]
    # 3.6 and later print the new epoch in its place.
    assert [severity for severity, _, _ in told([*facts[:-1], facts[-1]._replace(previous=3)])] == [OPEN]


@pytest.mark.parametrize("end", [341, 360])
def test_a_high_watermark_that_steps_back_loses_nothing(end: int) -> None:
    """KIP-207: the new leader's high watermark lags one fetch round; its log does not."""
    step = fact(a.HIGH_WATERMARK, 44, 1, name="non_monotonic", previous=341, high_watermark=330)
    facts = [line._replace(offset=end) if line.leader_epoch == 3 and line.offset == 115 else line for line in UNCLEAN]
    assert told([*facts[:-1], step]) == []


def test_a_wiped_replica_has_no_mark() -> None:
    facts = [*UNCLEAN[:7], loaded(40, 1, None, 0), follows(42, 1, 3, offset=0, high_watermark=0, previous=-1)]
    assert told([*facts, cut(43, 1, 0)]) == [(OPEN, 115, None)], "what it had no line tells any more"


def test_a_leader_that_ends_below_a_followers_high_watermark() -> None:
    """Up to 0.10: no line says where an epoch begins, followers cut to their high watermark, and one that is ahead of
    its leader halts (KAFKA-3410)."""
    old = Settings(version=lambda *_: "0.10.1.1", deletable=False)
    request = {"name": "request", "leader": 1, "leader_epoch": 12, "partition_epoch": 8, "isr": (1,)}
    halts = cut(33, 2, 700, name="out_of_range", end_offset=830, detail="not_allowed")
    facts: list[Fact] = [
        fact(a.LEADERSHIP, 20, 1, **request),
        fact(a.LEADERSHIP, 30, 2, **request),
        cut(31, 2, 830),
        halts,
        fact(a.LEADERSHIP, 30, 3, **request),
        cut(31, 3, 830),
    ]
    assert told(facts, old) == [(VIOLATION, 700, 830)]
    assert told([line for line in facts if line is not halts], old) == []
    # Later ones cut to where the logs part: whether that was committed, no line tells.
    assert told(facts, Settings(version=lambda *_: "1.0.0", deletable=False)) == [(OPEN, 700, 830)]


#: After a power loss (KAFKA-3919): broker 1 is back first, with less than its followers had committed.
POWER_LOSS = [
    loaded(20, 1, None, 602),
    fact(a.LEADERSHIP, 26, 1, name="request", leader=1, leader_epoch=12, isr=(1,)),
    loaded(50, 2, None, 844),
    fact(a.LEADERSHIP, 56.2, 2, name="request", leader=1, leader_epoch=12, isr=(1,)),
    cut(56.3, 2, 830),
]
OLD = Settings(version=lambda *_: "0.9.0.1", deletable=False)


def test_a_leader_that_loaded_less_than_its_followers_had_committed() -> None:
    """That it copied nothing before it led no line can tell: a line of it may be missing."""
    (case,) = cases(RULE, POWER_LOSS, OLD)
    assert (case.severity, case.offset_start, case.offset_end, case.leader_epoch) == (OPEN, 602, 830, 12)
    assert "Broker 1's log ended at 602 as it was loaded, before it led in epoch 12" in case.message
    assert "broker 2 to 830" in case.message
    # Times in whole seconds, in two files.
    seconds = [line._replace(time_us=line.time_us // 1_000_000 * 1_000_000) for line in POWER_LOSS]
    apart = [line._replace(file_id="state-change") if line.kind == a.LEADERSHIP else line for line in seconds]
    assert told(apart, OLD) == [(OPEN, 602, 830)]


def test_a_leader_that_followed_before_it_led_has_what_it_copied() -> None:
    follows_first = fact(a.LEADERSHIP, 23, 1, name="request", leader=3, leader_epoch=11, isr=(3,))
    assert told([*POWER_LOSS, follows_first], OLD) == []
    created = [
        line._replace(offset=0) if line.broker_id == 1 and line.kind == a.LOADED else line for line in POWER_LOSS
    ]
    assert told(created, OLD) == [], "a log is made as its replica is assigned"
    again = [loaded(60, 2, None, 844), cut(62, 2, 900)]
    assert told([*POWER_LOSS[:-1], *again], OLD) == [], "it restarts within the epoch"


def test_answers_tell_what_was_committed() -> None:
    """With a request log nothing is open: what was acknowledged is known."""
    facts = [*UNCLEAN[:7], acked(15, 1, 100, 110)]
    assert told(UNCLEAN[:7]) == [(OPEN, 115, None)]
    assert told(facts) == []


def test_one_line_that_is_misread_accuses_nobody() -> None:
    case: Case
    (case,) = cases(RULE, UNCLEAN, ZK28)
    assert len(case.witnesses) >= 2


class Unclean(Partition):
    """Now and then a replica leads that was not in sync; `lost` are the committed offsets that it had not."""

    committed = 0
    lost: frozenset[int] = frozenset()

    def _advance(self) -> None:
        super()._advance()
        # A new leader's high watermark lags behind.
        self.committed = max(self.committed, self.high_watermark)

    def _elect(self) -> None:
        outside = sorted(set(BROKERS) - self.isr)
        if not outside or self.random.random() < 0.3:
            super()._elect()
            return
        leader = self.random.choice(outside)
        log = self.replicas[leader]
        self.lost |= set(range(log.end, self.committed))
        self.committed = min(log.end, self.committed)
        log.epoch, self.isr = self.epoch, {leader}
        self._lead(leader)


class Joining(Unclean):
    """A follower that catches up may wait for its place in the ISR, and the high watermark waits for it (KIP-497)."""

    def _create(self) -> None:
        self.joining: set[int] = set()
        super()._create()

    def _lead(self, leader: int) -> None:
        self.joining = set()
        super()._lead(leader)

    def _restart(self) -> None:
        self.joining = set()
        connections = {broker: log.connection for broker, log in self.replicas.items()}
        super()._restart()
        for broker, log in self.replicas.items():
            if log.connection != connections[broker]:
                log.epoch = -1  # A broker without the end of its log does not know its epoch either.

    def _commit(self, isr: set[int], *, by_controller: bool = False) -> None:
        if isr > self.isr and self.random.random() < 0.5:
            self.joining |= isr - self.isr
        else:
            self.joining -= isr
            super()._commit(isr, by_controller=by_controller)

    def _advance(self) -> None:
        committed, self.isr = self.isr, self.isr | self.joining
        super()._advance()
        self.isr = committed


def unclean(seed: int, ids: bool) -> tuple[list[Fact], frozenset[int]]:
    """Return what default levels show of a partition, and which committed offsets it lost."""
    history = (Joining if seed % 2 else Unclean)(Random(seed), ids)
    at_default = (a.LEADERSHIP, a.ISR_CHANGE, a.PARTITION_STATE, a.TRUNCATION, a.LOADED)
    return [fact for fact in history.run(200, recreated=False) if fact.kind in at_default], history.lost


@given(st.integers(0, 1 << 32), st.booleans(), st.sampled_from((1.0, 0.9, 0.5)))
@examples(200)
def test_nothing_is_said_to_be_lost_that_was_not(seed: int, ids: bool, left: float) -> None:
    facts, lost = unclean(seed, ids)
    random = Random(seed)
    for case in cases(RULE, [line for line in facts if random.random() < left], ZK28):
        assert case.severity != VIOLATION or lost >= set(range(case.offset_start or 0, case.offset_end or 0))


def test_half_of_what_unclean_elections_lose_is_shown_at_default_levels() -> None:
    lost = shown = 0
    for seed in range(60):
        facts, offsets = unclean(seed, ids=True)
        found = cases(RULE, facts, ZK28)
        lost += bool(offsets)
        shown += any(case.severity == VIOLATION for case in found)
        assert found or not offsets, "what is not proven is open"
    assert shown > lost / 2 > 10
