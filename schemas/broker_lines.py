"""Lines in which a broker tells of its control plane, as the fold of a broker takes them: plain tuples, no Spark."""

from __future__ import annotations

from typing import Final, NamedTuple

from schemas.fields import Int, Long

# Sources, in the order in which lines of one instant are told apart.
#: A line of `LEADERSHIP` that says that the broker took up an epoch; comes once more, before all others.
BEGUN: Final = "begun"
#: ``silver.leader_and_isr``.
LEADERSHIP: Final = "leadership"
#: ``silver.isr_changes``.
ISR_CHANGE: Final = "isr_change"
#: ``silver.fetcher_events``.
FETCHER: Final = "fetcher"
#: ``silver.broker_lifecycle``.
LIFE: Final = "life"


class BrokerLine(NamedTuple):
    """One line, or what one line says of one partition.

    Attributes:
        time_us: microseconds, the broker's clock; -1 for `BEGUN`.
        source: one of the above.
        what: its role, change, action or event there.
        topic, partition: None for `LIFE`.
        start_offset, high_watermark, leader_epoch, partition_epoch, leader, topic_id: as there.
        isr: after the line.
        previous_isr: before it, of a change.
        replicas, adding, removing: assigned replicas, and those that a reassignment adds and removes.
    """

    time_us: Long
    source: str
    what: str | None = None
    topic: str | None = None
    partition: Int | None = None
    topic_id: str | None = None
    leader: Int | None = None
    leader_epoch: Int | None = None
    partition_epoch: Int | None = None
    start_offset: Long | None = None
    high_watermark: Long | None = None
    isr: tuple[Int, ...] | None = None
    previous_isr: tuple[Int, ...] | None = None
    replicas: tuple[Int, ...] | None = None
    adding: tuple[Int, ...] | None = None
    removing: tuple[Int, ...] | None = None
