"""Gold tables of the follower side, and the events that its replay folds.

As all gold rows, theirs hold no file ids and no offsets in files: the same log in other pieces gives the same rows.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from schemas import columns as c
from schemas.fields import Int, Long
from schemas.table import BOOLEAN, DOUBLE, INT, LONG, STRING, TIMESTAMP, TableSpec, column, required

# Kinds of event. Leadership, as the broker logs it of itself:
STARTING: Final = "starting"
STOPPED: Final = "stopped"
LOADED: Final = "loaded"
LEADER: Final = "leader"
FOLLOWER: Final = "follower"
#: State that a controller sent (LeaderAndIsr): all that tells of leadership up to 2.5.
STATE: Final = "state"
# Lines of the log layer and of fetcher threads, by `silver.truncations.source`:
DECIDED: Final = "fetcher"
REPLIED: Final = "epoch_reply"
OUT_OF_RANGE: Final = "out_of_range"
BELOW: Final = "below_high_watermark"
TRUNCATED: Final = "log"
NO_EFFECT: Final = "no_effect"
#: The high watermark went back (``Non-monotonic update``).
STEPPED_BACK: Final = "non_monotonic"
# Lines of the fetchers, by `silver.fetcher_events.action`:
ADDED: Final = "added"
REMOVED: Final = "removed"
FAILED: Final = "failed"
FENCED: Final = "fenced"
ERROR: Final = "error"
DELAYED: Final = "delayed"
# What a leader's request log shows of a follower:
FETCHED: Final = "fetched"
ANSWERED: Final = "answered"

#: Order of events of one instant: two files of a broker, and lines of one millisecond, come in no order of their own.
RANK: Final = {
    kind: rank
    for rank, kind in enumerate(
        (
            STARTING,
            LOADED,
            STATE,
            FAILED,
            FENCED,
            REMOVED,
            FOLLOWER,
            LEADER,
            OUT_OF_RANGE,
            REPLIED,
            DECIDED,
            TRUNCATED,
            NO_EFFECT,
            BELOW,
            STEPPED_BACK,
            ADDED,
            ERROR,
            DELAYED,
            STOPPED,
            ANSWERED,
            FETCHED,
        )
    )
}


class ReplicaEvent(NamedTuple):
    """One thing that a broker logged of a partition's replication. Its order is that of the broker's own clock."""

    broker_id: Int  #: whose log it is: the follower's, but the leader's for `FETCHED` and `ANSWERED`
    time_us: Long  #: time of the line, microseconds since the epoch
    kind: str  #: one of the kinds above
    leader: Int | None = None  #: leader's broker id; -1 for none
    leader_epoch: Int | None = None  #: epoch that starts, or of the request; the epoch asked for (`ANSWERED`)
    #: log end offset (leadership, `LOADED`), offset truncated or reset to, initial offset (`ADDED`), offset asked for
    #: (`FETCHED`), end offset answered (`ANSWERED`)
    offset: Long | None = None
    high_watermark: Long | None = None  #: as the line shows it
    previous_high_watermark: Long | None = None  #: before it stepped back
    previous_end_offset: Long | None = None  #: log end offset before (`NO_EFFECT`, `OUT_OF_RANGE`)
    previous_leader_epoch: Int | None = None  #: as a leader's line shows it; -1 after a start
    reason: str | None = None  #: `silver.truncations.reason`
    error: str | None = None  #: of a fetcher's line
    fetcher_id: Int | None = None  #: thread that logs, or that the client id of a request names
    replica_id: Int | None = None  #: follower that asks (`FETCHED`, `ANSWERED`)
    last_fetched_epoch: Int | None = None  #: of a fetch
    #: diverging_epoch, diverging_end_offset: the leader's answer to it
    diverging_epoch: Int | None = None
    diverging_end_offset: Long | None = None
    traced_high_watermark: Long | None = None  #: what the replica's TRACE lines last showed (up to 2.5), and when
    traced_high_watermark_us: Long | None = None  #: times of those lines
    traced_end_offset: Long | None = None  #: what the replica's TRACE lines last showed (up to 2.5), and when
    traced_end_offset_us: Long | None = None  #: times of those lines


_REPLICA = (
    *(c.CLUSTER, c.TOPIC, c.PARTITION),
    required("broker_id", INT, "Broker that follows"),
    required("sequence", INT, "Number of the row among those of this replica, from 0, in the order of time"),
)
_REPLICA_KEYS = ("cluster_id", "topic", "partition", "broker_id", "sequence")

REPLICA_TRUNCATIONS = TableSpec(
    layer="gold",
    name="replica_truncations",
    comment="One row per time that a replica became follower of an epoch, or truncated its log for another reason: "
    "where Kafka's rules let it truncate to, and where it did.",
    columns=(
        *_REPLICA,
        required("started_time", TIMESTAMP, "It became follower, or the first line of the truncation"),
        required(
            "trigger",
            STRING,
            "new_epoch: became follower; again: truncated again within the epoch; out_of_range: its leader refused "
            "the offset; recovery: while the log was loaded; unprompted: no line says why",
        ),
        column("leader_epoch", INT, "Leader epoch that it follows; null where no line tells"),
        column("leader", INT, "Its leader; -1 for none, null where no line tells"),
        column("log_end_offset", LONG, "Its log end offset then"),
        column("high_watermark", LONG, "Its high watermark then"),
        required(
            "rule",
            STRING,
            "to_high_watermark (up to 0.10.2, and whenever the log has no epoch), leader_epoch_kip101 (0.11 to 1.1), "
            "leader_epoch_kip279 (2.0 and later), on_fetch (2.8 and later with an inter-broker protocol of 2.7), "
            "out_of_range, full, recovery, none (no leader, or the fetcher goes on)",
        ),
        column("asked_epoch", INT, "Epoch that the leader was asked about: the last one in the follower's log"),
        column("reply_epoch", INT, "Epoch of the leader's answer; -1 undefined; null where the logs do not part"),
        column("reply_end_offset", LONG, "Its end offset as answered; -1 undefined; null where the logs do not part"),
        column("reply_source", STRING, "logged: by the leader's request log; derived: from the leaders' epoch starts"),
        column("predicted_offset", LONG, "Where the rules let it truncate to; its log end offset where they spare it"),
        column("logged_offset", LONG, "Where it truncated to, as logged"),
        column("logged_time", TIMESTAMP, "When"),
        column("records_removed", LONG, "Offsets that it lost; null where its log end offset is not known"),
        column("high_watermark_at_truncation", LONG, "Its high watermark just before, as far as lines show"),
        column("below_high_watermark", BOOLEAN, "It truncated below that"),
        column("high_watermark_after", LONG, "High watermark that it stepped back to within the epoch"),
        column("next_fetch_offset", LONG, "Offset of its first fetch that its leader took and logged"),
        required(
            "class",
            STRING,
            "agrees: truncated where predicted; none_needed: neither predicted nor logged; differs; unobservable: "
            "evidence is missing",
        ),
        column(
            "reason",
            STRING,
            "own_high_watermark (KIP-101), no_epoch, epochs_part, epochs_agree, end_of_leader_log, fetcher_kept, "
            "no_leader, not_reached, not_logged, elsewhere, unexpected, ...",
        ),
        column(
            "missing",
            STRING,
            "Evidence that is missing: own_high_watermark, checkpointed_high_watermark, own_log_end, own_epochs, "
            "leader_start, leader_epochs",
        ),
        column("known_bug", STRING, "KIP or JIRA of a fault of the running version that has this signature"),
    ),
    keys=_REPLICA_KEYS,
    checks={
        "class_known": "class IN ('agrees', 'differs', 'unobservable', 'none_needed')",
        "unobservable_says_why": "class <> 'unobservable' OR missing IS NOT NULL OR reason IS NOT NULL",
    },
    dated_by=("started_time",),
)

FETCHER_TIMELINE = TableSpec(
    layer="gold",
    name="fetcher_timeline",
    comment="One row per stay of a partition in a replica fetcher.",
    columns=(
        *_REPLICA,
        required("added_time", TIMESTAMP, "It joined the fetcher"),
        required("leader", INT, "Broker fetched from"),
        c.LEADER_EPOCH,
        column("initial_offset", LONG, "Offset that it starts from, as logged"),
        column("fetcher_id", INT, "Thread, as logged by the thread or by the leader; null where neither says"),
        column("predicted_fetcher_id", INT, "Thread by num.replica.fetchers; null where that is not in the log"),
        column("ended_time", TIMESTAMP, "It left; null where the log ends, or the broker was killed"),
        required(
            "end_reason",
            STRING,
            "removed, leader_changed, failed (until a new leader epoch), broker_stopped, log_ends",
        ),
        required("errors", INT, "Failed fetches and refused answers meanwhile; a failed fetch need not name all"),
        required("delays", INT, "Times it was delayed by replica.fetch.backoff.ms, where lines tell (DEBUG)"),
        column("first_error", STRING, "First error, as logged"),
        column("last_error", STRING, "Last error, as logged"),
        column("idle_ms", DOUBLE, "Until it was added again as follower; null where it was not, or led meanwhile"),
    ),
    keys=_REPLICA_KEYS,
    checks={
        "end_reason_known": "end_reason IN ('removed', 'leader_changed', 'failed', 'broker_stopped', 'log_ends')",
        "ends_after_added": "ended_time IS NULL OR ended_time >= added_time",
    },
    dated_by=("ended_time",),
)

TABLES = (REPLICA_TRUNCATIONS, FETCHER_TIMELINE)
