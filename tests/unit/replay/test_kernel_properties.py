"""Random histories against a slow oracle that recomputes everything from the whole history at every instant."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.replay import outcome as o
from highwater.schemas import events as e
from highwater.schemas.events import Event
from tests.examples import examples
from tests.unit.replay.histories import LEADER, MS, context, fetch, fold, isr_update, leader_start, produce

FOLLOWERS = (2, 3, 4)
TIMEOUT_MS = 2_000


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """A leader with three followers: appends, fetches that lag at random, shrinks and expansions of the ISR."""
    now, end, sequence = 1.0, 0, 0
    positions = dict.fromkeys(FOLLOWERS, 0)
    isr = {LEADER, *FOLLOWERS}
    history = [leader_start(0, sorted(isr))]
    for _ in range(draw(st.integers(1, 40))):
        now += draw(st.integers(1, 400))
        action = draw(st.sampled_from(("append", "fetch", "fetch", "fetch", "isr")))
        if action == "append":
            size = draw(st.integers(1, 3))
            history.append(produce(now, end, timeout_ms=TIMEOUT_MS, answered_ms=now, took_ms=0))
            end += size
        elif action == "fetch":
            replica = draw(st.sampled_from(FOLLOWERS))
            # Batches are replicated whole: positions are starts of batches, or the end.
            starts = [event.offset for event in history if event.kind == e.PRODUCE] + [end]
            reachable = [offset for offset in starts if offset is not None and offset >= positions[replica]]
            positions[replica] = draw(st.sampled_from(reachable))
            sequence += 1
            history.append(fetch(now, replica, positions[replica], sequence=sequence, took_ms=0))
        else:
            isr = {LEADER, *draw(st.sets(st.sampled_from(FOLLOWERS)))}
            history.append(isr_update(now, sorted(isr)))
    return history


def oracle(history: list[Event], produced: Event) -> int | None:
    """When a produce is answered: at each event of the history, from the whole history up to it.

    Of version 0.10.1: the high watermark is the least position of the ISR, nobody else counts.
    """
    deadline = produced.time_us + TIMEOUT_MS * MS
    moments = sorted({event.time_us for event in history if event.time_us >= produced.time_us})
    for moment in moments:
        if moment >= deadline:
            break
        past = [event for event in history if event.time_us <= moment]
        isr = [event.isr for event in past if event.isr is not None][-1]
        positions = {r: max([f.offset for f in past if f.replica_id == r], default=None) for r in isr if r != LEADER}
        end = max(p.offset for p in past if p.kind == e.PRODUCE) + 1
        if None not in positions.values() and min([end, *positions.values()]) > produced.offset:
            return moment
        # The high watermark never goes back within an epoch, so an earlier instant would have been found before.
    return deadline if any(event.time_us >= deadline for event in history) else None


@examples(300)
@given(histories())
def test_the_kernel_agrees_with_the_oracle(history: list[Event]) -> None:
    outcomes = fold(history, context("0.10.1.0"))
    for event in history:
        if event.kind != e.PRODUCE:
            continue
        outcome = outcomes[event.request_id]
        expected = oracle(history, event)
        if expected is None:
            assert outcome.lowest_us is None or outcome.missing is not None or outcome.highest_us is None
            continue
        # A line's clock, and the timer's, tick in milliseconds.
        tick = MS if outcome.cause in (o.ISR_CHANGE, o.TIMER) else 0
        assert outcome.highest_us == expected + tick
        assert (outcome.lowest_us or 0) <= outcome.highest_us


@examples(200)
@given(histories())
def test_every_produce_has_exactly_one_outcome_and_intervals_are_in_order(history: list[Event]) -> None:
    outcomes = fold(history)
    produced = [event.request_id for event in history if event.kind == e.PRODUCE]
    assert sorted(outcomes) == sorted(produced)
    for outcome in outcomes.values():
        if outcome.highest_us is not None:
            assert outcome.handled_us <= (outcome.lowest_us or 0) <= outcome.highest_us


@examples(100)
@given(histories(), st.randoms(use_true_random=False))
def test_taking_lines_away_never_proves_anything(history: list[Event], random: Random) -> None:
    left = [event for event in history if event.kind == e.LEADER_START or random.random() > 0.3]
    assert not any(outcome.proven_early for outcome in fold(left).values())


@examples(200)
@given(histories())
def test_required_offsets_are_the_starts_of_the_batches_that_follow(history: list[Event]) -> None:
    outcomes = fold(history)
    bases = sorted(event.offset for event in history if event.kind == e.PRODUCE)
    for base, following in pairwise(bases):
        assert outcomes[f"r{base}"].required_offset_derived == following
