"""Lines of a broker about its control plane, as plain tuples for the fold of a broker. No Spark."""

from __future__ import annotations

from typing import Final, NamedTuple

from highwater.schemas.fields import Int, Long

# Sources, in the order of lines with equal times.
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
    """One line, or what one line says of one partition."""

    time_us: Long  #: microseconds, the broker's clock; -1 for `BEGUN`
    source: str  #: one of the above
    what: str | None = None  #: its role, change, action or event there
    #: topic, partition: None for `LIFE`
    topic: str | None = None
    partition: Int | None = None
    topic_id: str | None = None  #: as there
    leader: Int | None = None  #: likewise
    leader_epoch: Int | None = None  #: likewise
    partition_epoch: Int | None = None  #: likewise
    start_offset: Long | None = None  #: likewise
    high_watermark: Long | None = None  #: likewise
    isr: tuple[Int, ...] | None = None  #: after the line
    previous_isr: tuple[Int, ...] | None = None  #: before it, of a change
    #: replicas, adding, removing: assigned replicas, and those that a reassignment adds and removes
    replicas: tuple[Int, ...] | None = None
    adding: tuple[Int, ...] | None = None
    removing: tuple[Int, ...] | None = None
