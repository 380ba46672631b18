"""Steps of a controller's procedure: which ones the logs show, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from pipelines.controllers.leaderships import Moment, moment_of
from pipelines.kafka.controller_rows import EventRow, LeadershipRow, StateRow
from schemas.fields import Int, Long

SEEN: Final = "seen"
NOT_SEEN: Final = "not_seen"
OUT_OF_ORDER: Final = "out_of_order"

BROKER_CHANGE: Final = "broker_change"
BROKER_FAILURE: Final = "broker_failure"
BROKER_STARTUP: Final = "broker_startup"
CONTROLLED_SHUTDOWN: Final = "controlled_shutdown"
TOPIC_DELETION: Final = "topic_deletion"


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
