"""The events that the replay of delayed fetches folds, per connection to a leader: fetches, and what can wake them.

Plain tuples, no Spark. Instants are integers, microseconds since the epoch, on the clock of the broker that answers.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from highwater.schemas.fields import Int, Long

FETCH: Final = "fetch"
BATCH: Final = "batch"
#: A follower that the connection reads from shows more of its log (KIP-392).
REPLICATED: Final = "replicated"
STABLE: Final = "stable"
LEADER_END: Final = "leader_end"
#: The end offset for this fetch moved to a new segment of the log.
ROLL: Final = "roll"
#: The high watermark moved: it completes followers' fetches in 2.4 and 2.5 (KIP-392).
COMMITTED: Final = "committed"
#: The leader leads on in a newer epoch: fetches that name the one before are fenced when they are next checked.
LEADER_START: Final = "leader_start"
#: The first thing in that epoch that has the partition's fetches checked.
CHECK: Final = "check"
#: The broker's own log begins later: fetches from before are read from the remote tier (KIP-405).
LOCAL_START: Final = "local_start"
#: A read from the remote tier failed.
TIER_FAILED: Final = "tier_failed"
#: What the topic is called that the connection's fetches name by its id; comes before all others.
NAMED: Final = "named"

#: Order of events of one instant: what was there before it was asked for.
RANK: Final = {
    LEADER_END: 0,
    LEADER_START: 1,
    CHECK: 2,
    BATCH: 3,
    REPLICATED: 3,
    COMMITTED: 4,
    ROLL: 5,
    STABLE: 6,
    FETCH: 7,
    LOCAL_START: 8,
    TIER_FAILED: 9,
}


class Origin(NamedTuple):
    """Columns of a fetch request that its row in gold repeats."""

    arrival_us: Long | None = None
    line_us: Long | None = None
    client_id: str | None = None
    correlation_id: Int | None = None
    wait_ms: float | None = None


class SessionEvent(NamedTuple):
    """A fetch request, or something that can complete one. Events come in the order of their earliest instants."""

    time_us: Long  #: earliest instant: of a fetch, when it left the request queue
    kind: str  #: one of the kinds above
    #: by when it had happened; None where nothing but the fetch itself proves that it did. Of a fetch, when it had
    #: been read (handled)
    latest_us: Long | None = None
    topic: str | None = None  #: of a wake; the topic as the fetches of this connection name it
    name: str | None = None  #: the topic's name (named)
    partition: Int | None = None  #: of a wake
    #: of a batch; the last stable offset (stable); first offset of the segment (roll), of the broker's own log
    #: (local_start)
    base_offset: Long | None = None
    size_bytes: Long | None = None  #: of a batch; None where the log does not show it
    estimated: bool | None = None  #: the offset of the batch is a count, not a logged one
    #: the batch, or the begin of the segment, is above the last stable offset until a `stable` event
    unstable: bool | None = None
    #: where the transaction that ended began (stable), if this leader's log shows it
    transaction_offset: Long | None = None
    operation_id: str | None = None  #: of a fetch
    replica_id: Int | None = None  #: the follower that fetches; -1 for consumers
    isolation_level: Int | None = None  #: 0 read_uncommitted, 1 read_committed
    #: of the request: 0 opens a session, -1 asks for all that it lists, else it names only changes
    session_epoch: Int | None = None
    #: min_bytes, max_wait_ms: of the request
    min_bytes: Int | None = None
    max_wait_ms: Int | None = None
    #: topics, partitions, offsets, max_bytes: partitions that the request lists, in its order
    topics: tuple[str, ...] = ()
    partitions: tuple[Int, ...] = ()
    offsets: tuple[Long, ...] = ()
    max_bytes: tuple[Int, ...] = ()
    #: the highest currentLeaderEpoch that the request names; None or -1 if it names none
    leader_epoch: Int | None = None
    #: forgotten_topics, forgotten_partitions: those that leave the session
    forgotten_topics: tuple[str, ...] = ()
    forgotten_partitions: tuple[Int, ...] = ()
    completed_us: Long | None = None  #: answered, as observed
    error_codes: tuple[Int, ...] = ()  #: distinct error codes of the response, but 0
    response_bytes: Long | None = None  #: records in the response
    #: filled_topics, filled_partitions: partitions for which the response has records
    filled_topics: tuple[str, ...] = ()
    filled_partitions: tuple[Int, ...] = ()
    #: told_topics, told_partitions, told_stable: last stable offsets in the response to a read_committed consumer,
    #: where they are below the high watermark
    told_topics: tuple[str, ...] = ()
    told_partitions: tuple[Int, ...] = ()
    told_stable: tuple[Long, ...] = ()
    at_once_reason: str | None = None  #: why the response shows that it could not wait; None if it shows no reason
    sequence: Int | None = None  #: of a fetch, its place among the requests of its connection (the correlation id)
    origin: Origin = Origin()  #: of a fetch; the replay does not look at it
