"""What the rules of correctness read of a partition: one shape for every kind of fact.

A partition's facts come in the order of their ranks. First its history (leaderships, ISRs, truncations, ends), which is
as small as metadata is and is kept; then what is as large as the traffic (fetches, appends, answers), which streams by.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from highwater.schemas.fields import Int, Long

# Kinds of the history.
#: A line that says who leads: ``name`` is its role (``silver.leader_and_isr``).
LEADERSHIP: Final = "leadership"
#: What a leader did to its ISR: ``name`` is the change (``silver.isr_changes``).
ISR_CHANGE: Final = "isr_change"
#: The ZooKeeper controller's partition state machine: ``name`` is the new state.
PARTITION_STATE: Final = "partition_state"
#: A record of the KRaft controller's metadata log: exact, and in the order of its offsets.
METADATA: Final = "metadata"
#: An unclean election, logged by the controller: ``name`` is who requested it, if logged.
ELECTION: Final = "election"
#: A replica truncated: ``name`` is the source (``silver.truncations``).
TRUNCATION: Final = "truncation"
#: A replica's log was loaded: ``offset`` is where it ended, ``high_watermark`` the one that its checkpoint held.
LOADED: Final = "loaded"
#: An entry of a checkpoint of offsets: ``name`` is its kind.
CHECKPOINT: Final = "checkpoint"
#: What a broker does with the remote tier: ``name`` is the event (``silver.tier_events``).
TIER: Final = "tier"
#: An entry of a replica's leader-epoch-checkpoint.
EPOCH_ENTRY: Final = "epoch_entry"
#: A change of the ISR as replayed: ``name`` is the class (``gold.isr_timeline``).
ISR_REPLAY: Final = "isr_replay"

# Kinds that stream by.
#: A follower's fetch: ``offset`` is its position, ``high_watermark`` the leader's answer.
FETCH: Final = "fetch"
#: A high watermark line: ``name`` is its source (``silver.high_watermarks``).
HIGH_WATERMARK: Final = "high_watermark"
#: A leader appended (T3): ``offset`` to ``end_offset``, exclusive.
APPEND: Final = "append"
#: A client's read past what its isolation shows, as one response alone suggests: ``name`` is that isolation.
READ: Final = "read"
READ_COMMITTED: Final = "read_committed"
READ_UNCOMMITTED: Final = "read_uncommitted"
#: A consumer's read from the remote tier that was answered with records, near failed reads: ``name`` says
#: whether it is of the partition itself, or of another one that the same broker read about then.
TIER_READ: Final = "tier_read"
TIER_READ_OWN: Final = "own"
TIER_READ_OTHER: Final = "other"
#: A partition's part of an acks=all produce as replayed: ``name`` is the operation's class.
OPERATION: Final = "operation"
#: A partition's part of the answer to any produce.
ANSWER: Final = "answer"
#: A record batch of a segment: ``name`` says whether its checksum is right, ``error_code`` is its format (magic).
BATCH: Final = "batch"

#: Not a fact: resume state of the partition. ``detail`` is the state, ``isr`` are the brokers that it is from.
FROZEN: Final = "frozen"

# How a fact is known that is not logged as it is (`Fact.derived`).
#: The partition is computed from the id of a group or transaction, and the records before it are counted.
COMPUTED_PARTITION: Final = "the partition is computed from an id, the offset is counted"
#: The partition is logged, the offset is not.
COUNTED_OFFSET: Final = "the offset is counted"
#: The log has no answer: the leader's own line of an append about then gives the offset.
MATCHED_APPEND: Final = "the offset is that of an append about then"
#: What the replay of other lines predicts.
REPLAYED: Final = "replayed"

#: ``detail`` of a metadata record whose leader recovers from an unclean election (KIP-704).
RECOVERING: Final = "recovering"

#: Time of entries of files without times: after all others.
NO_TIME_US: Final = 1 << 60

#: Facts of a partition come in this order.
RANK: Final = {
    FROZEN: -1,
    METADATA: 0,
    LEADERSHIP: 0,
    ISR_CHANGE: 0,
    PARTITION_STATE: 0,
    ELECTION: 0,
    TRUNCATION: 0,
    LOADED: 0,
    CHECKPOINT: 0,
    EPOCH_ENTRY: 0,
    ISR_REPLAY: 0,
    TIER: 0,
    FETCH: 1,
    HIGH_WATERMARK: 2,
    APPEND: 3,
    READ: 4,
    TIER_READ: 4,
    BATCH: 5,
    OPERATION: 5,
    ANSWER: 6,
}
HISTORY_RANK: Final = 0


class Fact(NamedTuple):
    """One fact. What a field means for a kind is said in `pipelines.rules.facts`; what it has not is None."""

    kind: str  #: one of the above
    time_us: Long  #: of the line, on the clock of ``broker_id``; microseconds since the epoch
    broker_id: Int | None = None  #: whose line it is
    name: str | None = None  #: role, change, state, source or class
    leader: Int | None = None  #: broker that leads
    leader_epoch: Int | None = None  #: leader epoch
    partition_epoch: Int | None = None  #: partition epoch or zkVersion
    offset: Long | None = None  #: start, position or base offset
    end_offset: Long | None = None  #: exclusive
    high_watermark: Long | None = None  #: high watermark
    previous: Long | None = None  #: value before: of the leader epoch, or of the high watermark
    replica_id: Int | None = None  #: whom it is about
    #: isr, replicas: broker ids
    isr: tuple[Int, ...] | None = None
    replicas: tuple[Int, ...] | None = None
    error_code: Int | None = None  #: answered
    size_bytes: Long | None = None  #: of the records
    checksum: Long | None = None  #: of a batch, as stored
    #: earliest_us, latest_us: what the line is about happened between them
    earliest_us: Long | None = None
    latest_us: Long | None = None
    log_append_time_us: Long | None = None  #: log append time answered; largest timestamp of a batch
    topic_id: str | None = None  #: topic id, where the line has it
    client: str | None = None  #: client id
    detail: str | None = None  #: reason, bug or text, as logged
    #: connection, correlation_id: of a request
    connection: str | None = None
    correlation_id: Int | None = None
    controller_epoch: Int | None = None  #: controller epoch
    #: what of it no line shows and how it was worked out instead; None: all of it is as logged. A derived fact may
    #: open a case; it proves none
    derived: str | None = None
    #: file_id, byte_offset, line_no: the line; None for what a request of gold says
    file_id: str | None = None
    byte_offset: Long | None = None
    line_no: Long | None = None
