"""Clocks of brokers that differ."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from highwater.pipelines.incidents.facts import Facts, Row, place
from highwater.pipelines.incidents.incident import MINOR, LoggedIncident
from highwater.pipelines.incidents.kind import kind
from highwater.pipelines.incidents.words import brokers, clock, lasting, number

#: Clocks that differ by more are skewed, milliseconds.
_SKEWED_MS = 1_000
_ADVICE = "Look at the time service of broker {}. Sessions, retention and record timestamps follow it."


@kind(
    meaning="The clocks of two brokers differ by more than a second, as lines show that must have come in one order.",
    source="gold.clock_bounds: a follower's first fetch of an epoch, a state and its receipt; registrations of a "
    "broker and the controller's lines about them",
)
def clock_skewed(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield one incident for each broker whose clock differs from the clocks of other brokers."""
    skewed: dict[str, list[Row]] = defaultdict(list)
    for row in facts.clocks:
        if _skew_ms(row):
            skewed[row["cluster_id"]].append(row)
    for cluster_id, rows in skewed.items():
        while rows:
            # The broker with the most skewed pairs is the one whose clock is wrong.
            pairs = {(row["broker_a"], row["broker_b"]) for row in rows}
            most = Counter(broker_id for pair in sorted(pairs) for broker_id in pair).most_common(1)[0][0]
            of_broker = [row for row in rows if most in (row["broker_a"], row["broker_b"])]
            rows = [row for row in rows if row not in of_broker]
            if (cluster_id, most) not in facts.clock_offsets:
                yield _skewed(cluster_id, most, of_broker)
    for (cluster_id, broker_id), offset_us in facts.clock_offsets.items():
        yield _corrected(facts, cluster_id, broker_id, offset_us)


def _corrected(facts: Facts, cluster_id: str, broker_id: int, offset_us: int) -> LoggedIncident:
    """Return the incident of a broker whose times are corrected by `offset_us`: how far its clock is ahead, us."""
    rows = facts.life((cluster_id, broker_id), "registered")
    elections = [
        row["elected_time"]
        for row in facts.failovers
        if row["cluster_id"] == cluster_id
        and broker_id in (row["new_leader"], row["elected_clock"])
        and None not in (row["elected_time"], row["taken_up_time"])
        and row["new_leader"] != row["elected_clock"]
    ]
    times = sorted([*elections, *(row["time"] for row in rows)])
    shown = number(len(elections), "election") if elections else number(len(rows), "registration")
    shown += " shows" if shown.startswith("1 ") else " show"
    whose = "the other brokers' clocks" if elections else "the controller's"
    direction = "ahead of" if offset_us > 0 else "behind"
    return LoggedIncident(
        severity=MINOR,
        cluster_id=cluster_id,
        start_us=times[0],
        end_us=times[-1],
        broker_ids=(broker_id,),
        sentence=(
            f"The clock of broker {broker_id} was {lasting(abs(offset_us))} {direction} {whose}, as "
            f"{shown}. Its times are corrected by that here, not in its lines."
        ),
        advice=_ADVICE.format(broker_id),
        figures={"ahead_s": offset_us / 1e6},
        places=tuple(map(place, rows)),
        weight=abs(offset_us) / 1e6,
    )


def _skew_ms(row: Row) -> float:
    """Return how far the clock of `broker_b` is at least ahead of `broker_a`, ms. Negative if behind, 0 if unsure."""
    lowest_ms, highest_ms = row["lowest_ms"], row["highest_ms"]
    if lowest_ms is not None and lowest_ms > _SKEWED_MS:
        return float(lowest_ms)
    return float(highest_ms) if highest_ms is not None and highest_ms < -_SKEWED_MS else 0.0


def _skewed(cluster_id: str, broker_id: int, rows: list[Row]) -> LoggedIncident:
    others = {other for row in rows for other in (row["broker_a"], row["broker_b"])} - {broker_id}
    ahead_ms = max((_skew_ms(row) * (1 if row["broker_b"] == broker_id else -1) for row in rows), key=abs)
    times = [time for row in rows for time in (row["lowest_time"], row["highest_time"]) if time is not None]
    direction = "ahead of" if ahead_ms > 0 else "behind"
    return LoggedIncident(
        severity=MINOR,
        cluster_id=cluster_id,
        start_us=min(times),
        end_us=max(times),
        broker_ids=(broker_id,),
        sentence=(
            f"The clock of broker {broker_id} was {lasting(abs(ahead_ms) * 1000)} or more {direction} that of "
            f"{brokers(others)} at {clock(min(times))}: times of its lines do not compare with theirs."
        ),
        advice=_ADVICE.format(broker_id),
        figures={"ahead_s": ahead_ms / 1000},
        weight=abs(ahead_ms) / 1000,
    )
