"""The active controller changed: who took over, and for how long nobody decided anything."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from pipelines.incidents.facts import Facts, Row, place
from pipelines.incidents.incident import INFO, MAJOR, MINOR, Incident, Place
from pipelines.incidents.kind import Kind
from pipelines.incidents.kinds.broker_died import deaths
from pipelines.incidents.kinds.broker_stopped import shutdown_times
from pipelines.incidents.words import clock, lasting, span

#: Without a controller for longer, elections and ISR changes waited noticeably, microseconds.
_LONG_US = 5_000_000


class Term(NamedTuple):
    """One node's time as the active controller.

    Attributes:
        elected_us: its first line of it, else another node's.
        epoch: of the controller; None where no line tells it.
    """

    controller: int
    elected_us: int
    place: Place
    epoch: int | None = None


def terms(facts: Facts) -> dict[str, list[Term]]:
    """Who was the active controller of each cluster, in order; an observer that repeats it late changes nothing."""
    by_cluster: dict[str, list[Row]] = defaultdict(list)
    for row in facts.controller_events:
        if row["event"] == "controller_elected" and row["subject_broker_id"] is not None:
            by_cluster[row["cluster_id"]].append(row)
    of_cluster: dict[str, list[Term]] = {}
    for cluster_id, rows in by_cluster.items():
        by_own_line = [row for row in rows if row["broker_id"] == row["subject_broker_id"]]
        in_order: list[Term] = []
        for row in by_own_line or rows:
            if not in_order or _is_another(in_order[-1], row):
                in_order.append(Term(row["subject_broker_id"], row["time"], place(row), row.get("controller_epoch")))
        of_cluster[cluster_id] = in_order
    return of_cluster


def _is_another(last: Term, row: Row) -> bool:
    """Another node took over, or the same one again, in a newer epoch."""
    epoch = row.get("controller_epoch")
    is_newer = epoch is not None and last.epoch is not None and epoch > last.epoch
    return last.controller != row["subject_broker_id"] or is_newer


def detect(facts: Facts) -> Iterable[Incident]:
    """Each change from one controller to another, and each time in which there was none."""
    ends, died = shutdown_times(facts), deaths(facts)
    for cluster_id, in_order in terms(facts).items():
        for before, after in pairwise(in_order):
            if after.elected_us < ends.get(cluster_id, after.elected_us + 1):
                of_node = [death.last_us for death in died if death.node == (cluster_id, before.controller)]
                lost = [time_us for time_us in of_node if before.elected_us < time_us < after.elected_us]
                if lost or before.controller != after.controller or _signs(facts, cluster_id, before, after):
                    yield _changed(facts, cluster_id, before, after, lost)


def _signs(facts: Facts, cluster_id: str, before: Term, after: Term) -> list[int]:
    """Lines by which a controller resigned, or a node of the quorum saw that nobody leads it."""
    return [
        row["time"]
        for row in facts.controller_events
        if row["cluster_id"] == cluster_id
        and before.elected_us < row["time"] <= after.elected_us
        and (
            (row["event"] == "controller_resigned" and row["subject_broker_id"] == before.controller)
            or (row["event"] == "other" and (row["detail"] or "").endswith("the leader is (none)."))
        )
    ]


def _changed(facts: Facts, cluster_id: str, before: Term, after: Term, lost: list[int]) -> Incident:
    start = min([*_signs(facts, cluster_id, before, after), *lost], default=after.elected_us)
    gap = after.elected_us - start
    without = f"; no controller was active for {lasting(gap)}" if gap >= 1_000 else ""
    resigned = any(
        row["event"] in ("shutting_down", "controlled_shutdown", "signal")
        and row["broker_id"] == before.controller
        and row["cluster_id"] == cluster_id
        and abs(row["time"] - start) < 30_000_000
        for row in facts.lifecycle
    )
    if before.controller == after.controller:
        what = f"Node {after.controller} became the active controller again at {clock(after.elected_us)}"
    else:
        changed = f"from node {before.controller} to node {after.controller}"
        what = f"The active controller changed {changed} at {clock(after.elected_us)}"
    severity = MAJOR if gap >= _LONG_US else INFO if resigned else MINOR
    return Incident(
        kind=KIND.name,
        severity=severity,
        cluster_id=cluster_id,
        start_us=start,
        end_us=after.elected_us,
        broker_ids=(after.controller,),
        sentence=f"{what}{without}.",
        unexplained=(
            f"While there was none ({span(start, after.elected_us)}), no leader was elected and no ISR changed: look "
            f"at node {before.controller} and at the quorum."
            if severity == MAJOR
            else ""
        ),
        figures={"without_controller_s": gap / 1e6},
        places=(after.place,),
        weight=gap / 1e6,
        by=(before.controller,),
    )


KIND = Kind(
    name="controller_changed",
    meaning="Another node became the active controller, or the same one again: until then none was.",
    source="kafka.controller.KafkaController.elect; org.apache.kafka.controller.QuorumController.claim and renounce",
    detect=detect,
    causes=(
        *("broker_died", "broker_halted", "broker_stalled", "broker_stopped", "controller_renounced"),
        "session_expired",
    ),
)
