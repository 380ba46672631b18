"""Changes of the ISR by hand: what the leader did, beside what the rules ask for."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from highwater.pipelines.base.instants import NEVER_US
from highwater.pipelines.replay import isr_outcome as o
from highwater.pipelines.replay.isr import IsrWatch
from highwater.pipelines.replay.isr_events import ISR_EXPAND, ISR_FROM, ISR_REFUSED, ISR_SHRINK, RANK
from highwater.pipelines.replay.isr_evidence import (
    FENCED,
    SHUTTING_DOWN,
    UNFENCED,
    Gap,
    IsrEvidence,
    evaluation_period_us,
)
from highwater.pipelines.replay.isr_outcome import IsrOutcome, isr_row
from highwater.schemas import events as e
from highwater.schemas.events import Event
from highwater.schemas.isr import ISR_TIMELINE
from tests.unit.replay.histories import MS, context, fetch, isr_update, leader_end, leader_start, produce

#: Values of `ISR_TIMELINE.class`.
CLASSES = ("predicted", "early", "late", "not_predicted", "not_observed", "unobservable", "outside_rule")
NOT_KRAFT = IsrEvidence(kraft=False)


def line(kind: str, ms: float, isr: Iterable[int] | None, replica: int | None = None, **shown: int) -> Event:
    """A leader's line about its ISR."""
    at = round(ms * MS)
    return Event(at, kind, at, isr=None if isr is None else tuple(isr), replica_id=replica, **shown)


def shrink(ms: float, isr: Iterable[int], replica: int, end: int | None = None, leader_end: int | None = None) -> Event:
    return line(ISR_SHRINK, ms, isr, replica)._replace(offset=end, required_offset=leader_end)


def watch(
    events: Iterable[Event],
    version: str = "2.8.2",
    evidence: IsrEvidence = NOT_KRAFT,
    lag_ms: int = 6_000,
    min_isr: int = 1,
) -> list[IsrOutcome]:
    watching = IsrWatch(context(version, lag_ms, min_isr), evidence)
    found: list[IsrOutcome] = []
    for event in sorted(events, key=lambda event: (event.time_us, (e.RANK | RANK)[event.kind])):
        found += watching.observe(event)
    return [*found, *watching.finish()]


def follow(replica: int, times_ms: Iterable[float], offset: int) -> list[Event]:
    return [fetch(ms, replica, offset, sequence=round(ms * 10)) for ms in times_ms]


def stuck(until_ms: int = 10_000) -> list[Event]:
    """Follower 2 keeps up; follower 3 is last seen at 1 s, and the log grows at 1.5 s."""
    return [
        leader_start(0, (1, 2, 3)),
        *follow(2, (500, 1_000), 0),
        *follow(3, (500, 1_000), 0),
        produce(1_500, 0),
        *follow(2, range(2_000, until_ms, 500), 1),
    ]


def dead(replica: int) -> IsrEvidence:
    """The connection of one follower ends at 1 s."""
    return IsrEvidence(kraft=False, gaps={f"c{replica}": (Gap(1_000 * MS, 1_000 * MS, NEVER_US),)})


def chained(events: Iterable[Event]) -> list[Event]:
    """Chains as the timeline names them: connection and number."""
    return [event._replace(chain=f"{event.chain}#0") if event.chain else event for event in events]


def test_a_shrink_in_time_is_predicted() -> None:
    found = watch(
        chained([*stuck(), shrink(8_000, (1, 2), 3, end=0, leader_end=1), isr_update(8_010, (1, 2))]), evidence=dead(3)
    )
    assert len(found) == 1
    outcome = found[0]
    assert (outcome.change, outcome.replica_id, outcome.class_, outcome.reason) == (o.SHRINK, 3, o.PREDICTED, None)
    assert (outcome.lowest_us, outcome.highest_us) == (7_000 * MS - 100, 10_000 * MS)
    assert (outcome.proposed_us, outcome.committed_us) == (8_000 * MS, 8_010 * MS)
    assert (outcome.isr_before, outcome.isr_after, outcome.made_by) == ((1, 2, 3), (1, 2), o.LEADER)
    assert (outcome.end_offset_logged, outcome.end_offset_predicted) == (0, 0)
    assert outcome.residual_us == 0


@pytest.mark.parametrize(
    ("at_ms", "class_"),
    [(3_900, o.EARLY), (4_100, o.PREDICTED), (6_900, o.PREDICTED), (12_900, o.PREDICTED), (13_100, o.LATE)],
)
def test_the_interval_is_widened_by_one_evaluation_period(at_ms: int, class_: str) -> None:
    found = watch(chained([*stuck(20_000), shrink(at_ms, (1, 2), 3)]), evidence=dead(3))
    assert [outcome.class_ for outcome in found] == [class_]


def test_late_while_the_leader_stood_still_says_so() -> None:
    silent = IsrEvidence(kraft=False, gaps=dead(3).gaps, silences=((9_000 * MS, 19_900 * MS),))
    found = watch(chained([*stuck(9_000), shrink(20_000, (1, 2), 3)]), evidence=silent)
    assert [(outcome.class_, outcome.reason) for outcome in found] == [(o.LATE, o.LEADER_PAUSED)]


def test_a_replica_at_the_end_of_the_log_is_spared_since_2_1() -> None:
    idle = [leader_start(0, (1, 2)), *follow(2, (500, 1_000), 0), shrink(9_000, (1,), 2, end=0, leader_end=0)]
    assert watch(chained(idle), "2.8.2", dead(2))[0].class_ == o.NOT_PREDICTED
    assert watch(chained(idle), "2.0.0", dead(2))[0].class_ == o.PREDICTED


def test_an_append_that_only_the_line_itself_shows() -> None:
    idle = [leader_start(0, (1, 2)), *follow(2, (500, 1_000), 0), shrink(9_000, (1,), 2, end=0, leader_end=4)]
    found = watch(chained(idle), evidence=dead(2))
    assert [(outcome.class_, outcome.reason) for outcome in found] == [(o.PREDICTED, o.APPEND_NOT_LOGGED)]


def test_a_shrink_that_never_comes_is_a_row() -> None:
    found = watch(chained(stuck(15_000)), evidence=dead(3))
    assert [(outcome.class_, outcome.change, outcome.replica_id, outcome.reason) for outcome in found] == [
        (o.NOT_OBSERVED, o.SHRINK, 3, o.LOG_ENDS)
    ]
    assert found[0].isr_after == (1, 2)


def test_a_lag_shorter_than_a_period_asks_for_nothing() -> None:
    assert watch(chained([*stuck(12_000), *follow(3, (9_500,), 1)]), evidence=dead(3)) == []


def test_without_a_request_log_nothing_is_claimed() -> None:
    blind = IsrEvidence(kraft=False, fetches_logged=())
    lines = [leader_start(0, (1, 2, 3)), shrink(9_000, (1, 2), 3), isr_update(9_010, (1, 2))]
    found = watch([*lines, isr_update(20_000, (1, 2, 3)), leader_end(40_000)], evidence=blind)
    assert [(outcome.change, outcome.class_, outcome.reason) for outcome in found] == [
        (o.SHRINK, o.UNOBSERVABLE, o.FETCH_NOT_LOGGED),
        (o.EXPAND, o.UNOBSERVABLE, o.FETCH_NOT_LOGGED),
    ]


def test_a_new_epoch_calls_members_of_the_isr_caught_up() -> None:
    restarted = [*stuck(5_000), leader_start(5_000, (1, 2, 3), epoch=1, offset=1), shrink(12_000, (1, 2), 3)]
    found = watch(chained([*restarted, *follow(2, range(5_500, 13_000, 500), 1)]), evidence=dead(3))
    assert found[0].class_ == o.PREDICTED
    assert found[0].lowest_us == 11_000 * MS


def test_a_refused_shrink_is_asked_for_again() -> None:
    found = watch(
        chained(
            [
                *stuck(13_000),
                shrink(8_000, (1, 2), 3),
                line(ISR_REFUSED, 8_100, None),
                shrink(11_000, (1, 2), 3),
                isr_update(11_010, (1, 2)),
            ]
        ),
        evidence=dead(3),
    )
    assert [(one.class_, one.reason, one.committed_us) for one in found] == [
        (o.PREDICTED, o.REFUSED, None),
        (o.PREDICTED, None, 11_010 * MS),
    ]
    assert found[1].lowest_us == 8_100 * MS


def outside() -> list[Event]:
    """Follower 3 is outside the ISR, far behind, and reaches the high watermark at 3 s."""
    return [
        leader_start(0, (1, 2)),
        produce(10, 0),
        produce(20, 10),
        *follow(2, (5,), 0),
        *follow(2, range(30, 6_000, 500), 20),
        *follow(3, (1_000,), 0),
        *follow(3, (2_000,), 10),
        *follow(3, (3_000,), 20),
    ]


def test_an_expansion_is_predicted_at_the_first_fetch_from_the_high_watermark() -> None:
    found = watch(chained([*outside(), isr_update(3_020, (1, 2, 3))]))
    assert [(one.change, one.replica_id, one.class_, one.made_by) for one in found] == [
        (o.EXPAND, 3, o.PREDICTED, o.LEADER)
    ]
    assert (found[0].lowest_us, found[0].highest_us) == (3_000 * MS - 100, 3_000 * MS)


def test_the_line_of_the_intent_can_come_before_its_fetch_is_handled() -> None:
    found = watch(
        chained([*outside(), line(ISR_EXPAND, 2_999.95, (1, 2, 3), 3), isr_update(2_999.97, (1, 2, 3))]), "2.4.1"
    )
    assert [(one.class_, one.residual_us) for one in found] == [(o.PREDICTED, 0)]


def test_nothing_asks_for_a_replica_that_lies_behind() -> None:
    found = watch(chained([*outside(), isr_update(1_500, (1, 2, 3))]))
    assert [(one.change, one.class_) for one in found] == [(o.EXPAND, o.NOT_PREDICTED)]


def test_the_start_of_the_epoch_gates_since_2_0_1() -> None:
    """A leader whose high watermark lags behind where it started."""
    start = leader_start(0, (1, 2), offset=20)._replace(high_watermark=10)
    events = [start, *follow(2, (5,), 10), *follow(3, (1_000,), 15), isr_update(1_010, (1, 2, 3))]
    assert watch(chained(events), "2.8.2")[0].class_ == o.NOT_PREDICTED
    assert watch(chained(events), "1.1.1")[0].class_ == o.PREDICTED


def test_an_expansion_that_never_comes_is_a_row() -> None:
    found = watch(chained([*outside(), *follow(2, (9_000,), 20)]))
    assert [(one.class_, one.change, one.replica_id) for one in found] == [(o.NOT_OBSERVED, o.EXPAND, 3)]


def test_a_commit_that_takes_long_says_what_is_not_logged() -> None:
    found = watch(chained([*outside(), isr_update(9_000, (1, 2, 3))]))
    assert [(one.class_, one.reason) for one in found] == [(o.LATE, o.COMMIT_DELAYED)]


def kraft(standing: dict[int, tuple[tuple[int, str], ...]]) -> IsrEvidence:
    return IsrEvidence(standing={id_: tuple((ms * MS, state) for ms, state in told) for id_, told in standing.items()})


def test_a_fenced_replica_has_to_wait() -> None:
    told = kraft({3: ((-9_000, FENCED), (20_000, UNFENCED))})
    events = [*outside(), *follow(3, range(3_500, 21_000, 500), 20), isr_update(20_100, (1, 2, 3))]
    found = watch(chained(events), "3.9.1", told)
    assert [(one.class_, one.reason) for one in found] == [(o.PREDICTED, None)]
    assert (found[0].lowest_us or 0) >= 19_000 * MS
    assert watch(chained(events), "3.2.0", told)[0].class_ == o.LATE


def test_a_replica_that_was_only_out_of_reach_joins_without_being_listed() -> None:
    """The controller fences an idle replica and lets it back in: no request lists the partition meanwhile."""
    told = kraft({2: ((-9_000, UNFENCED), (10_000, FENCED), (14_000, UNFENCED))})
    events = [leader_start(0, (1, 2)), *follow(2, (500, 1_000), 0), isr_update(10_010, (1,), controller=True)]
    found = watch(chained([*events, isr_update(14_200, (1, 2))]), "3.9.1", told)
    assert [(one.change, one.class_, one.made_by, one.reason) for one in found] == [
        (o.SHRINK, o.OUTSIDE_RULE, o.CONTROLLER, o.CONTROLLER_FENCED),
        (o.EXPAND, o.PREDICTED, o.LEADER, None),
    ]


def test_the_controller_is_told_apart() -> None:
    told = kraft({3: ((-9_000, UNFENCED), (4_990, SHUTTING_DOWN))})
    events = [*stuck(6_000), isr_update(5_000, (1, 2), controller=True), leader_start(7_000, (1,), epoch=1, offset=1)]
    found = watch(chained(events), "3.9.1", told)
    assert [(one.replica_id, one.made_by, one.reason) for one in found] == [
        (3, o.CONTROLLER, o.CONTROLLER_SHUTDOWN),
        (2, o.CONTROLLER, o.CONTROLLER_NEW_EPOCH),
    ]


def test_where_no_line_tells_the_commit_the_intent_stands_for_it() -> None:
    """Up to 2.3, at default levels."""
    events = [*stuck(13_000), shrink(8_000, (1, 2), 3), *follow(3, (9_000,), 1), line(ISR_EXPAND, 9_000, (1, 2, 3), 3)]
    found = watch(chained(events), "2.3.1", dead(3))
    assert [(one.change, one.class_, one.isr_before) for one in found] == [
        (o.SHRINK, o.PREDICTED, (1, 2, 3)),
        (o.EXPAND, o.PREDICTED, (1, 2)),
    ]


@pytest.mark.parametrize(("version", "period_ms"), [((0, 10, 1), 6_000), ((0, 10, 2), 3_000), ((4, 3, 1), 3_000)])
def test_the_evaluation_period(version: tuple[int, int, int], period_ms: int) -> None:
    assert evaluation_period_us(version, 6_000 * MS) == period_ms * MS


def test_a_row_has_the_columns_of_the_table() -> None:
    found = watch(chained([*stuck(15_000), shrink(8_000, (1, 2), 3, end=0, leader_end=1)]), evidence=dead(3))
    row = isr_row(found[0], cluster_id="c", broker_id=1, topic="t", partition=0)
    assert tuple(row) == ISR_TIMELINE.column_names
    assert row["change_time"] == 8_000 * MS
    assert row["class"] in CLASSES
    needed = [field.name for field in ISR_TIMELINE.columns if not field.nullable]
    assert all(row[name] is not None for name in needed)


def test_a_line_that_says_where_it_starts_from_tells_the_isr() -> None:
    """The start of the leadership is not in the log."""
    events = [
        *follow(3, (500, 1_000), 0),
        produce(1_500, 0),
        line(ISR_FROM, 8_000, (1, 2, 3)),
        shrink(8_000, (1,), 2),
        shrink(8_000, (1,), 3),
    ]
    found = watch(chained(events), evidence=dead(3))
    assert [(one.replica_id, one.isr_before, one.class_, one.reason) for one in found] == [
        (2, (1, 2, 3), o.UNOBSERVABLE, o.LOG_BEGINS),
        (3, (1, 2, 3), o.PREDICTED, o.LOG_ENDS),
    ]
