"""Gold tables of the follower side, and the events that its replay folds.

As all gold rows, theirs hold no file ids and no offsets in files: the same log in other pieces gives the same rows.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from highwater.schemas.fields import Int, Long
from highwater.schemas.table import load_table

# Kinds of event. Leadership, as the broker logs it of itself:
STARTING: Final = "starting"
STOPPED: Final = "stopped"
LOADED: Final = "loaded"
LEADER: Final = "leader"
FOLLOWER: Final = "follower"
#: State that a controller sent (LeaderAndIsr): the only source of leadership up to 2.5.
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
    """One logged event of a partition's replication on a broker, in the order of that broker's clock."""

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


REPLICA_TRUNCATIONS = load_table("gold.replica_truncations")
FETCHER_TIMELINE = load_table("gold.fetcher_timeline")

TABLES = (REPLICA_TRUNCATIONS, FETCHER_TIMELINE)
