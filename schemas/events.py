"""The events that the replay kernel folds, and the outcomes that it gives: plain tuples, no Spark.

All instants are integers, microseconds since the epoch, on the clock of the one broker whose log they come from.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from highwater.schemas.fields import Int, Long

# Kinds of event. What a broker says of itself:
LEADER_START: Final = "leader_start"
LEADER_END: Final = "leader_end"
ISR_UPDATE: Final = "isr_update"
ISR_PROPOSAL: Final = "isr_proposal"
#: Its log began a new segment.
ROLL: Final = "roll"
#: Its local log begins later: earlier offsets are read from the remote tier.
LOCAL_START: Final = "local_start"
#: A read from the remote tier failed.
TIER_FAILED: Final = "tier_failed"
#: A fetch of the broker's own, as a follower, was answered: what it holds now, consumers may read from it.
REPLICATED: Final = "replicated"
# What its request log shows:
FETCH: Final = "fetch"
#: An append on behalf of a request: a client's PRODUCE, a transaction marker, or a coordinator's record.
PRODUCE: Final = "produce"
# Facts of TRACE lines, compared with the prediction; only required offsets are used for it:
INITIAL_STATUS: Final = "initial_status"
PROGRESS: Final = "progress"

#: Order of events of one instant: leadership before the ISR, positions before the appends that wait for them.
RANK: Final = {
    LEADER_END: 0,
    LEADER_START: 1,
    ISR_UPDATE: 2,
    ISR_PROPOSAL: 3,
    INITIAL_STATUS: 4,
    ROLL: 5,
    FETCH: 6,
    PRODUCE: 7,
    PROGRESS: 8,
    LOCAL_START: 9,
    TIER_FAILED: 10,
    REPLICATED: 11,
}


class Event(NamedTuple):
    """One thing that happened to a partition on one broker."""

    time_us: Long  #: the latest instant at which it had happened; events come in this order
    kind: str  #: one of the kinds above
    earliest_us: Long  #: the earliest instant at which it can have happened
    #: epoch that starts (leader_start), that ended this leadership (leader_end), or of the request
    leader_epoch: Int | None = None
    #: start offset (leader_start), fetch offset (fetch; None where the session did not repeat it), base offset
    #: (produce; None where unknown), start offset (initial_status), first offset of the segment (roll; None where the
    #: version does not log it), of the broker's own log (local_start)
    offset: Long | None = None
    #: of leader_start, isr_update and isr_proposal, as the line shows it; of a fetch, as its answer does
    high_watermark: Long | None = None
    #: in-sync replicas, for leader_start, isr_update and isr_proposal (those it starts from); replicas awaited, for
    #: progress
    isr: tuple[Int, ...] | None = None
    replica_id: Int | None = None  #: the follower that fetches
    #: of the response's partition; for leader_end, with which error what waited was answered
    error_code: Int | None = None
    request_id: str | None = None  #: identifies the request on this broker; equal for all its partitions
    #: identifies an unbroken run of a follower's fetches: two fetches of one chain have every fetch between them in
    #: the log
    chain: str | None = None
    sequence: Int | None = None  #: position of a fetch in its chain (the correlation id)
    chain_end_us: Long | None = None  #: when the last fetch of the chain arrived
    #: arrival_us, completed_us: instants of the request; for leader_end, by when the broker had stepped down
    arrival_us: Long | None = None
    completed_us: Long | None = None
    #: previous_arrival_us, previous_dequeued_us, previous_handled_us, previous_completed_us, previous_sent_us: of the
    #: fetch before this one in its chain: the fetch that read the records below this offset
    previous_arrival_us: Long | None = None
    previous_dequeued_us: Long | None = None
    previous_handled_us: Long | None = None
    previous_completed_us: Long | None = None
    previous_sent_us: Long | None = None
    #: acks, timeout_ms: of a produce request
    acks: Int | None = None
    timeout_ms: Int | None = None
    partitions: Int | None = None  #: how many partitions the produce request has
    required_offset: Long | None = None  #: requiredOffset that the broker logged
    #: True where the leader answered a fetch that the follower's log diverges from its own
    diverging: bool | None = None
    #: True where an ISR update came with the controller's metadata, not from the leader's own proposal
    controller: bool | None = None
    size_bytes: Long | None = None  #: records appended, in bytes; None where the log does not say
    records: Int | None = None  #: how many records were appended; None where the log does not say
    producer: str | None = None  #: whose transaction the records belong to, or a marker ends; None outside transactions
    control: bool | None = None  #: True for a transaction marker
    #: how many replicas are assigned, for leader_start and isr_update; None where the log does not show
    replicas: Int | None = None
    #: of the replica's log with what it was answered (replicated); None: it was answered no records
    end_offset: Long | None = None
    stable_offset: Long | None = None  #: last stable offset in the answer (replicated)


def parse_connection(chain: str | None) -> str:
    """Return the connection of a chain. A chain starts again on the same connection after a missing line."""
    return (chain or "").rpartition("#")[0]
