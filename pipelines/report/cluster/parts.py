"""What happened to the cluster, as parts of the report. Lists have hard limits, and say what they leave out."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from highwater.pipelines.base.values import Count, Instant, Part, Text


class Life(Part):
    """A stretch of a broker's life."""

    cluster_id: Text
    broker_id: int
    #: ``silent``: it did not answer, or wrote no line; ``down``: its process had ended
    state: Literal["up", "starting", "silent", "stopping", "down"]
    start: Instant | None  #: null: the first of the logs
    end: Instant | None  #: null: the last of the logs


class Event(Part):
    """Something that happened, or several alike to one broker within a second."""

    time: Instant
    kind: Text  #: what happened
    cluster_id: Text
    #: to whom; of a change of an ISR the replica that left it or came back; of an election the new leader
    broker_id: int | None
    count: Count  #: how many alike
    partitions: tuple[Text, ...]  #: of which partitions, the first few
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
    """A partition that lost its leader, or had it moved: from that to the first request that the new one answered."""

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
    """A broker that went and came back."""

    cluster_id: Text
    broker_id: int
    #: clean: an orderly end; found_gone: its last line, its controller or its peers date its end; unknown
    ending: Literal["clean", "found_gone", "unknown"]
    down: Instant | None  #: when that was; null: no line tells
    starting: Instant
    started: Instant | None  #: it said that it runs; null: not in these logs
    isr_lost: Count  #: partitions whose ISR it left meanwhile; ``isr_back`` of them took it back in these logs
    isr_back: Count
    isr_full: Instant | None  #: the last of them did; null: not all did


class Setting(Part):
    """A setting that brokers have differently: brokers by value; ``by_nature``: it is each broker's own."""

    key: Text
    by_nature: bool
    values: tuple[tuple[Text | None, tuple[int, ...]], ...]


class ClockPair(Part):
    """How far the clock of broker_b was ahead of that of broker_a."""

    cluster_id: Text
    broker_a: int
    broker_b: int
    windows: Count  #: of ``gold.clock_bounds``, those that tell anything
    links: Count  #: pairs of lines that tell anything
    lowest_ms: float | None  #: the difference was more, by the window that tells most; null: no line bounds it
    highest_ms: float | None  #: and less
    time: Instant  #: of that, on the clock of broker_a
    changes: Count  #: windows in which bounds prove that the difference changed
    changed_ms: float | None  #: by how much at least, of the largest such change; null: nothing shows one
    changed_since: Instant | None  #: after this instant, on the clock of broker_a
    changed_until: Instant | None  #: before this one
    drift_ppm: float | None  #: how fast at least, if it was drift and no step


class Leaders(Part):
    """How many partitions a broker led, from each of these times on."""

    cluster_id: Text
    broker_id: int
    steps: tuple[tuple[Instant, Count], ...]


class Step(Part):
    """A step of a story, with its line where there is one; null time: what a file holds, which no line dates."""

    time: Instant | None
    what: Text
    file: Text | None = None
    line_no: int | None = None
    byte_offset: int | None = None
    text: Text | None = None


class StoryPart(Part):
    """What a produce asked of one partition."""

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
    """One request: what it asked, what it waited for, who answered when."""

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
    """All of it; ``left_out``: rows that are too many for the page, by the name of their list."""

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
