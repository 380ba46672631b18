"""The kernel and the fetch sessions against a cluster that is simulated millisecond by millisecond."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.kafka.versions import rules_for
from highwater.pipelines.replay.fetch_rules import FetchOutcome
from highwater.pipelines.replay.fetch_sessions import FetchSession
from highwater.pipelines.replay.judge import EXPLAINED, Tolerances, judge
from highwater.pipelines.replay.kernel import finish, step
from highwater.pipelines.replay.outcome import PartitionOutcome
from highwater.pipelines.replay.state import State
from highwater.pipelines.replay.wakes import BATCH, Wake
from highwater.schemas import session_events as s
from highwater.schemas.session_events import SessionEvent
from tests.examples import examples
from tests.unit.replay.cluster import (
    CONSUMER_CONNECTION,
    FOLLOWER,
    FOLLOWER_CONNECTION,
    TOPIC,
    Append,
    Cluster,
    Logged,
    Reader,
)
from tests.unit.replay.histories import context

UNTIL_MS = 400
LIMITS = Tolerances(tolerance_us=0, late_us=100_000)
#: Versions whose rules differ where such a history can show it.
VERSIONS = ("0.10.2.2", "2.6.3", "3.9.1")


@st.composite
def clusters(draw: st.DrawFn) -> Logged:
    """What a healthy cluster logs, and what happened in it."""
    appends = draw(
        st.lists(
            st.builds(Append, st.integers(1, UNTIL_MS), st.integers(0, 1), st.integers(1, 4), st.integers(50, 900)),
            max_size=40,
        )
    )
    pauses = st.lists(st.integers(1, 40), min_size=1, max_size=6)
    follower = Reader(FOLLOWER_CONNECTION, FOLLOWER, 1, 60, draw(pauses))
    consumer = Reader(CONSUMER_CONNECTION, -1, draw(st.sampled_from((1, 400, 3_000))), 80, draw(pauses))
    return Cluster(appends, follower, consumer, UNTIL_MS).run()


def replay(logged: Logged, version: str) -> tuple[dict[str, PartitionOutcome], dict[int, list[Wake]]]:
    outcomes, wakes = {}, {}
    for partition, events in logged.partitions.items():
        state = State(context(version))
        given = [output for event in events for output in step(state, event)]
        given += finish(state)
        outcomes |= {output.request_id: output for output in given if isinstance(output, PartitionOutcome)}
        wakes[partition] = [output for output in given if isinstance(output, Wake)]
    return outcomes, wakes


def session_events(logged: Logged, wakes: dict[int, list[Wake]], connection: str) -> list[SessionEvent]:
    """Fetches of a connection and what can complete them, in the order in which a session takes them."""
    events = list(logged.fetches.get(connection, ()))
    for partition, woken in wakes.items():
        for wake in woken:
            follows = connection == FOLLOWER_CONNECTION
            lowest = wake.appended_lowest_us if follows else wake.committed_lowest_us
            highest = wake.appended_highest_us if follows else wake.committed_highest_us
            if wake.kind == BATCH and lowest is not None:
                batch = {"base_offset": wake.base_offset, "size_bytes": wake.size_bytes}
                events.append(SessionEvent(lowest, s.BATCH, highest, topic=TOPIC, partition=partition, **batch))
    return sorted(events, key=lambda event: (event.time_us, s.RANK[event.kind]))


def sessions(logged: Logged, wakes: dict[int, list[Wake]], version: str) -> list[FetchOutcome]:
    outcomes: list[FetchOutcome] = []
    for connection in logged.fetches:
        session = FetchSession(rules_for(version))
        for event in session_events(logged, wakes, connection):
            outcomes += session.observe(event)
        outcomes += session.finish()
    return outcomes


@examples(150)
@given(clusters(), st.sampled_from(VERSIONS))
def test_every_fetch_is_answered_when_and_why_the_cluster_answered_it(logged: Logged, version: str) -> None:
    _, wakes = replay(logged, version)
    fetches = sessions(logged, wakes, version)
    assert len(fetches) == sum(len(asked) for asked in logged.fetches.values())
    for fetch in fetches:
        answer = logged.answers.get(fetch.event.operation_id or "")
        if answer is None:
            continue  # the history ends before it
        assert fetch.cause == answer.cause
        assert fetch.lowest_us is not None
        assert fetch.highest_us is not None
        verdict = judge(
            fetch.lowest_us,
            fetch.highest_us,
            answer.completed_us,
            errors_agree=True,
            missing=fetch.missing,
            proven_early=False,
            limits=LIMITS,
        )
        assert (verdict.operation_class, verdict.residual_us) == (EXPLAINED, 0)


@examples(150)
@given(clusters(), st.sampled_from(VERSIONS))
def test_every_batch_is_committed_when_the_cluster_committed_it(logged: Logged, version: str) -> None:
    outcomes, wakes = replay(logged, version)
    for partition, given_wakes in wakes.items():
        for wake in given_wakes:
            if wake.kind == BATCH:
                committed_us = logged.committed_us.get((partition, wake.base_offset or 0))
                assert wake.committed_highest_us == committed_us
                produced = outcomes[f"p{partition}-{wake.base_offset}"]
                assert produced.highest_us == committed_us
                assert not produced.proven_early
