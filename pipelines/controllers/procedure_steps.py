"""Steps of a controller's procedure: which ones the logs show, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from highwater.pipelines.base.instants import SECOND_US
from highwater.pipelines.kafka.controller_rows import NOWHERE, EventRow, LeadershipRow, StateRow
from highwater.pipelines.kafka.partition_history import Moment, moment_of
from highwater.schemas.fields import Int, Long

SEEN: Final = "seen"
NOT_SEEN: Final = "not_seen"
OUT_OF_ORDER: Final = "out_of_order"

BROKER_CHANGE: Final = "broker_change"
BROKER_FAILURE: Final = "broker_failure"
BROKER_STARTUP: Final = "broker_startup"
CONTROLLED_SHUTDOWN: Final = "controlled_shutdown"
TOPIC_DELETION: Final = "topic_deletion"

#: Steps of an election, of each the broker on whose clock it is: the controller takes the first two.
_ELECTION: Final = {
    "elected": "elected_clock",
    "sent": "elected_clock",
    "received": "new_leader",
    "taken_up": "new_leader",
    "serving": "new_leader",
}
#: Columns of ``gold.failovers`` that `elections` takes.
OF_ELECTIONS: Final = (
    *("cluster_id", "strategy", "failed_broker_id", "new_leader", "detected_time", "elected_clock"),
    *(f"{step}_time" for step in _ELECTION),
)


class ProcedureStep(NamedTuple):
    """A row of gold `controller_procedures`; the shell adds the cluster.

    `partitions` counts what lines show of this step: partitions, or replicas; null where it is not about any.
    """

    procedure: str
    subject_broker_id: Int | None
    topic: str | None
    controller: Int
    started_time_us: Long
    step: str
    step_no: Int
    seen: str
    time_us: Long | None
    clock: Int | None
    partitions: Long | None


class SeenStep(NamedTuple):
    """What was found of a step: its first line, and how many partitions or replicas it shows.

    `answer`: brokers do it, beside the controller's thread, even where it is the controller's own broker.
    """

    name: str
    moment: Moment | None
    partitions: int | None = None
    answer: bool = False


def step_of(
    name: str, rows: Iterable[EventRow | StateRow | LeadershipRow], counted: bool = True, answer: bool = False
) -> SeenStep:
    """A step that these rows show; events count nothing."""
    moments = sorted(moment_of(row) for row in rows)
    return SeenStep(name, moments[0] if moments else None, len(moments) if counted else None, answer)


def procedure(
    name: str, controller: int, steps: Sequence[SeenStep], broker_id: int | None = None, topic: str | None = None
) -> list[ProcedureStep]:
    """Rows of one procedure, whose steps come in the order in which Kafka takes them.

    A step is out of order if it was seen before an earlier one, on the same clock and by the same thread; instants of
    two clocks are not compared.
    """
    started = min((step.moment.time_us for step in steps if step.moment is not None), default=0)
    rows: list[ProcedureStep] = []
    latest: dict[int, int] = {}
    for number, step in enumerate(steps, 1):
        moment = step.moment
        seen = NOT_SEEN
        if moment is not None and step.answer:
            seen = SEEN
        elif moment is not None:
            seen = OUT_OF_ORDER if moment.time_us < latest.get(moment.broker_id, moment.time_us) else SEEN
            latest[moment.broker_id] = max(latest.get(moment.broker_id, moment.time_us), moment.time_us)
        rows.append(
            ProcedureStep(
                procedure=name,
                subject_broker_id=broker_id,
                topic=topic,
                controller=controller,
                started_time_us=started,
                step=step.name,
                step_no=number,
                seen=seen,
                time_us=None if moment is None else moment.time_us,
                clock=None if moment is None else moment.broker_id,
                partitions=step.partitions,
            )
        )
    return rows


def elections(handovers: Iterable[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    """Steps of elections: partitions whose leaders one controller elected out of one cause are one procedure.

    Args:
        handovers: rows of ``gold.failovers`` (`OF_ELECTIONS`), instants in microseconds.
    """
    elections: dict[tuple[Any, ...], list[SeenStep]] = {}
    for row in handovers:
        elected_us, detected_us = row["elected_time"], row["detected_time"]
        if row["strategy"] is None or elected_us is None:
            continue
        cause = elected_us // SECOND_US if detected_us is None else detected_us
        key = (row["cluster_id"], row["elected_clock"], row["strategy"], row["failed_broker_id"], cause)
        known = elections.get(key) or [SeenStep(name, None, 0, name not in ("elected", "sent")) for name in _ELECTION]
        elections[key] = [
            step
            if (time_us := row[f"{step.name}_time"]) is None
            else _earlier(step, time_us, row[_ELECTION[step.name]])
            for step in known
        ]
    for (cluster_id, controller, strategy, broker_id, _), steps in sorted(elections.items()):
        for of_election in procedure(f"election_{strategy}", controller, steps, broker_id):
            yield {"cluster_id": cluster_id, **of_election._asdict()}


def _earlier(step: SeenStep, time_us: int, clock: int) -> SeenStep:
    """A step of an election with one partition more, as its first instant tells it."""
    moment = Moment(time_us, clock, NOWHERE)
    first = moment if step.moment is None else min(step.moment, moment)
    return step._replace(moment=first, partitions=(step.partitions or 0) + 1)
