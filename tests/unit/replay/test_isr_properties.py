"""Random histories: against an oracle that asks at every instant, and against a leader that acts as Kafka's does."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from highwater.pipelines.base.instants import NEVER_US
from highwater.pipelines.replay import isr_outcome as o
from highwater.pipelines.replay.isr import IsrWatch
from highwater.pipelines.replay.isr_events import ISR_SHRINK, RANK
from highwater.pipelines.replay.isr_evidence import FETCH_GAP_US, Gap, IsrEvidence
from highwater.pipelines.replay.isr_outcome import IsrOutcome
from highwater.schemas import events as e
from highwater.schemas.events import Event
from tests.examples import examples
from tests.unit.replay.histories import LEADER, MS, context, fetch, isr_update, leader_start, produce

FOLLOWERS = (2, 3)
LAG_MS = 6_000
PERIOD_MS = LAG_MS // 2
STEP_MS = 100


def evidence_of(history: list[Event]) -> IsrEvidence:
    """Where followers' connections fell silent, as the stage would find it."""
    gaps: dict[str, tuple[Gap, ...]] = {}
    for replica in FOLLOWERS:
        times = [event.time_us for event in history if event.kind == e.FETCH and event.replica_id == replica]
        found = [Gap(before, before, after) for before, after in pairwise(times) if after - before > FETCH_GAP_US]
        if times:
            gaps[f"c{replica}"] = (*found, Gap(times[-1], times[-1], NEVER_US))
    return IsrEvidence(kraft=False, gaps=gaps)


def replay(history: list[Event], version: str) -> list[IsrOutcome]:
    watching = IsrWatch(context(version, LAG_MS), evidence_of(history))
    ordered = sorted(history, key=lambda event: (event.time_us, (e.RANK | RANK)[event.kind]))
    return [*(outcome for event in ordered for outcome in watching.observe(event)), *watching.finish()]


@st.composite
def quiet_histories(draw: st.DrawFn) -> list[Event]:
    """A leader that never changes its ISR, and followers that lag at random, more than a second between fetches."""
    now, end = 0, 0
    positions = dict.fromkeys(FOLLOWERS, 0)
    history = [leader_start(0, (LEADER, *FOLLOWERS))]
    for _ in range(draw(st.integers(1, 25))):
        now += draw(st.integers(11, 45)) * STEP_MS
        if draw(st.booleans()):
            history.append(produce(now, end, took_ms=0))
            end += draw(st.integers(1, 3))
        else:
            replica = draw(st.sampled_from(FOLLOWERS))
            starts = [event.offset for event in history if event.kind == e.PRODUCE] + [end]
            positions[replica] = draw(st.sampled_from([x for x in starts if x is not None and x >= positions[replica]]))
            history.append(fetch(now, replica, positions[replica], sequence=now, chain=f"c{replica}#0", took_ms=0))
    return history


def overdue(history: list[Event], replica: int, spares_the_end: bool) -> list[tuple[int, int]]:
    """[from, until) in ms over which a replica is out of sync: asked at each step, from the whole history before it."""
    asks = [
        now
        for now in range(0, history[-1].time_us // MS, STEP_MS)
        if _out_of_sync(history, replica, now, spares_the_end)
    ]
    spans: list[tuple[int, int]] = []
    for now in asks:
        if spans and spans[-1][1] == now:
            spans[-1] = (spans[-1][0], now + STEP_MS)
        else:
            spans.append((now, now + STEP_MS))
    return spans


def _out_of_sync(history: list[Event], replica: int, now_ms: int, spares_the_end: bool) -> bool:
    """``Partition.isFollowerOutOfSync``, from the start, by the letter of ``Replica.updateFetchStateOrThrow``."""
    position, leader_end, caught_up, end_then, fetched = -1, 0, 0, -1, 0
    sizes = [event.offset or 0 for event in history if event.kind == e.PRODUCE]
    reached = [event.offset for event in history if event.kind == e.FETCH and event.offset is not None]
    for event in history:
        if event.time_us > now_ms * MS:
            break
        if event.kind == e.PRODUCE:
            following = [base for base in sizes if base > (event.offset or 0)]
            leader_end = min(following, default=max([*reached, (event.offset or 0) + 1]))
        elif event.kind == e.FETCH and event.replica_id == replica:
            position = event.offset or 0
            if position >= leader_end:
                caught_up = max(caught_up, event.time_us)
            elif position >= end_then:
                caught_up = max(caught_up, fetched)
            end_then, fetched = leader_end, event.time_us
    behind = position != leader_end
    return (behind or not spares_the_end) and now_ms * MS - caught_up > LAG_MS * MS


@examples(200)
@given(quiet_histories(), st.sampled_from(("0.10.2", "2.8.2")))
def test_the_rule_asks_when_the_oracle_does(history: list[Event], version: str) -> None:
    found = replay(history, version)
    assert {(one.change, one.class_) for one in found} <= {(o.SHRINK, o.NOT_OBSERVED)}
    for replica in FOLLOWERS:
        rows = [one for one in found if one.replica_id == replica]
        expected = overdue(history, replica, spares_the_end=version != "0.10.2")
        long = [span for span in expected if span[1] - span[0] > PERIOD_MS + STEP_MS]
        for one in rows:
            assert any(abs((one.lowest_us or 0) // MS - since) <= STEP_MS for since, _ in expected), (
                replica,
                one,
                expected,
            )
        for since, _ in long:
            assert any(abs((one.lowest_us or 0) // MS - since) <= STEP_MS for one in rows), (
                replica,
                since,
                rows,
                expected,
            )


@dataclass
class Leader:
    """A leader that does what Kafka's does, and writes it down."""

    random: Random
    isr: set[int] = field(default_factory=lambda: {LEADER, *FOLLOWERS})
    end: int = 0
    watermark: int = 0
    position: dict[int, int] = field(default_factory=lambda: dict.fromkeys(FOLLOWERS, -1))
    caught_up: dict[int, int] = field(default_factory=lambda: dict.fromkeys(FOLLOWERS, 0))
    end_then: dict[int, int] = field(default_factory=lambda: dict.fromkeys(FOLLOWERS, -1))
    fetched_ms: dict[int, int] = field(default_factory=lambda: dict.fromkeys(FOLLOWERS, 0))
    stopped_until: dict[int, int] = field(default_factory=lambda: dict.fromkeys(FOLLOWERS, 0))
    busy_until: int = 0
    history: list[Event] = field(default_factory=lambda: [leader_start(0, (LEADER, *FOLLOWERS))])
    changes: int = 0

    def run(self, seconds: int) -> list[Event]:
        phase = self.random.randrange(PERIOD_MS)
        for now in range(1, seconds * 1_000):
            if now == self.busy_until:
                self.history.append(isr_update(now, sorted(self.isr)))
            if self.random.random() < 0.003:
                self.history.append(produce(now, self.end, took_ms=0))
                self.end += self.random.randint(1, 3)
                self.move_watermark()
            for replica in FOLLOWERS:
                self.follow(replica, now)
            if now % PERIOD_MS == phase:
                self.shrink(now)
        return self.history

    def follow(self, replica: int, now: int) -> None:
        if self.random.random() < 0.000_1:
            self.stopped_until[replica] = now + self.random.randint(1_000, 20_000)
        waited = now - self.fetched_ms[replica]
        news = self.end > self.position[replica]
        if now < self.stopped_until[replica] or not (waited >= 500 or (news and waited >= 5)):
            return
        known = self.position[replica]
        if news:
            starts = [event.offset for event in self.history if event.kind == e.PRODUCE] + [self.end]
            self.position[replica] = min(x for x in starts if x is not None and x > known) if known >= 0 else 0
        if self.position[replica] >= self.end:
            self.caught_up[replica] = now
        elif self.position[replica] >= self.end_then[replica]:
            self.caught_up[replica] = max(self.caught_up[replica], self.fetched_ms[replica])
        self.end_then[replica], self.fetched_ms[replica] = self.end, now
        self.history.append(fetch(now, replica, self.position[replica], sequence=now, chain=f"c{replica}#0", took_ms=0))
        self.move_watermark()
        if replica not in self.isr and self.position[replica] >= self.watermark and now > self.busy_until:
            self.change({*self.isr, replica}, now)

    def shrink(self, now: int) -> None:
        out = {r for r in self.isr - {LEADER} if self.position[r] != self.end and now - self.caught_up[r] > LAG_MS}
        if not out or now <= self.busy_until:
            return
        for replica in out:
            self.history.append(Event(now * MS, ISR_SHRINK, now * MS, isr=tuple(self.isr - out), replica_id=replica))
        self.change(self.isr - out, now)

    def change(self, isr: set[int], now: int) -> None:
        self.isr, self.busy_until = isr, now + self.random.randint(1, 400)
        self.changes += 1

    def move_watermark(self) -> None:
        self.watermark = max(self.watermark, min([self.end, *(self.position[r] for r in self.isr - {LEADER})]))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1 << 32))
def test_what_a_correct_leader_does_is_predicted(seed: int) -> None:
    found = replay(Leader(Random(seed)).run(60), "3.9.1")
    assert [one for one in found if one.class_ != o.PREDICTED] == []
    assert all(one.made_by == o.LEADER for one in found)


def test_the_simulated_leader_has_something_to_do() -> None:
    assert sum(len(replay(Leader(Random(seed)).run(60), "3.9.1")) for seed in range(8)) > 20


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1 << 32))
def test_every_change_that_was_observed_has_one_row(seed: int) -> None:
    leader = Leader(Random(seed))
    history = leader.run(60)
    members, changed = {LEADER, *FOLLOWERS}, 0
    for event in history:
        if event.kind == e.ISR_UPDATE:
            changed += len(members ^ set(event.isr or ()))
            members = set(event.isr or ())
    committed = [one for one in replay(history, "3.9.1") if one.committed_us is not None]
    assert len(committed) == changed
