"""What happened to the cluster, as parts of the report. Lists have hard limits, and say what they leave out."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from highwater.pipelines.base.values import Count, Instant, Part, Text


class Life(Part):
    """A period in which a broker was in one state."""

    cluster_id: Text
    broker_id: int
    #: ``silent``: it did not answer, or wrote no line; ``down``: its process had ended
    state: Literal["up", "starting", "silent", "stopping", "down"]
    start: Instant | None  #: null: the first of the logs
    end: Instant | None  #: null: the last of the logs


class Event(Part):
    """One event, or several like events of one broker within a second."""

    time: Instant
    kind: Text  #: what happened
    cluster_id: Text
    #: to whom; of a change of an ISR the replica that left it or came back; of an election the new leader
    broker_id: int | None
    count: Count  #: how many alike
    partitions: tuple[Text, ...]  #: names of the first few partitions
    detail: Text  #: in words


class Unavailable(Part):
    """A window in which a partition had no leader, or fewer in-sync replicas than min.insync.replicas."""

    state: Literal["offline", "under_min_isr"]
    cluster_id: Text
    topic: Text
    partition: int
    start: Instant
    end: Instant | None
    duration_ms: float | None
    isr: tuple[int, ...]
    min_insync_replicas: int | None
    produces_refused: Count | None


class Failover(Part):
    """A change of leader, from the loss of the old leader to the first request that the new leader answered."""

    cluster_id: Text
    topic: Text
    partition: int
    time: Instant
    reason: Text
    strategy: Text | None
    old_leader: int | None
    new_leader: int | None
    outcome: Text
    to_taken_up_ms: float | None
    to_serving_ms: float | None
    approximate: bool


class Restart(Part):
    """A restart of a broker."""

    cluster_id: Text
    broker_id: int
    #: clean: an orderly end; found_gone: its last line, its controller or its peers date its end; unknown
    ending: Literal["clean", "found_gone", "unknown"]
    down: Instant | None  #: end of the earlier process; null if no line shows it
    starting: Instant
    started: Instant | None  #: it said that it runs; null: not in these logs
    isr_lost: Count  #: partitions whose ISR it left meanwhile; ``isr_back`` of them took it back in these logs
    isr_back: Count
    isr_full: Instant | None  #: the last of them did; null: not all did


class Setting(Part):
    """A setting with different values among brokers. ``by_nature``: each broker has its own value by design."""

    key: Text
    by_nature: bool
    values: tuple[tuple[Text | None, tuple[int, ...]], ...]


class ClockPair(Part):
    """Bounds of the difference between two clocks. The difference is positive if broker_b is ahead of broker_a."""

    cluster_id: Text
    broker_a: int
    broker_b: int
    windows: Count  #: windows of ``gold.clock_bounds`` with at least one bound
    links: Count  #: pairs of lines that bound the difference
    lowest_ms: float | None  #: lower bound of the difference, from the narrowest window; null if no line bounds it
    highest_ms: float | None  #: upper bound, likewise
    time: Instant  #: of that, on the clock of broker_a
    changes: Count  #: windows in which bounds prove that the difference changed
    changed_ms: float | None  #: by how much at least, of the largest such change; null: nothing shows one
    changed_since: Instant | None  #: after this instant, on the clock of broker_a
    changed_until: Instant | None  #: before this one
    drift_ppm: float | None  #: how fast at least, if it was drift and no step


class Leaders(Part):
    """The number of partitions that a broker led, from each of these times on."""

    cluster_id: Text
    broker_id: int
    steps: tuple[tuple[Instant, Count], ...]


class Step(Part):
    """A step of a story, with the log line that shows the step. The time is null for file contents without a time."""

    time: Instant | None
    what: Text
    file: Text | None = None
    line_no: int | None = None
    byte_offset: int | None = None
    text: Text | None = None


class StoryPart(Part):
    """The part of a produce request that concerns one partition."""

    topic: Text
    partition: int
    leader_epoch: int | None
    base_offset: int | None
    required_offset: int | None
    error_code: int | None
    cause: Text
    closing_replica: int | None
    isr: tuple[int, ...]
    missing: Text | None


class Story(Part):
    """One request: what it asked, which replica it waited for, and when each broker answered."""

    request_id: Text  #: its key in ``gold.delayed_operations``
    kind: Text
    api: Text
    cluster_id: Text
    broker_id: int
    client_id: Text | None
    connection: Text | None
    correlation_id: int | None
    arrival: Instant
    wait_ms: float
    residual_ms: float | None
    succeeded: bool
    error_codes: tuple[int, ...]
    operation_class: Text
    class_reason: Text | None
    known_bug: Text | None
    cause: Text
    closing_partition: Text | None
    closing_replica: int | None
    closing_role: Text | None
    parts_ms: dict[Text, float]  #: of its wait, by the names of `pipelines.report.figures.SPLIT`
    partitions: tuple[StoryPart, ...]
    partitions_left_out: Count
    steps: tuple[Step, ...]


class Cluster(Part):
    """State of the clusters over time. ``left_out``: rows beyond the limits of the page, by the name of their list."""

    lives: tuple[Life, ...] = ()
    leaders: tuple[Leaders, ...] = ()
    events: tuple[Event, ...] = ()
    unavailable: tuple[Unavailable, ...] = ()
    failovers: tuple[Failover, ...] = ()
    restarts: tuple[Restart, ...] = ()
    settings: tuple[Setting, ...] = ()
    clocks: tuple[ClockPair, ...] = ()
    stories: tuple[Story, ...] = ()
    left_out: dict[Text, Count] = Field(default_factory=dict)
