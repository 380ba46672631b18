"""Events of a partition that can complete delayed fetches, from the replay of its leader. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

from highwater.schemas.fields import Int, Long

# Kinds of wake.
BATCH: Final = "batch"
STABLE: Final = "stable"
ROLL: Final = "roll"
LEADER_START: Final = "leader_start"
LEADER_END: Final = "leader_end"
CHECK: Final = "check"
LOCAL_START: Final = "local_start"
TIER_FAILED: Final = "tier_failed"
REPLICATED: Final = "replicated"
REPLICATED_STABLE: Final = "replicated_stable"


class Wake(NamedTuple):
    """An event that may complete waiting fetches of a partition. Times in us; None if never or unknown."""

    #: batch; stable (the last stable offset moved); roll (a new segment began); leader_start; leader_end; check (the
    #: first thing in a new epoch that has the fetches of the partition checked); local_start (the broker's own log
    #: begins later: lower offsets are in the tier); tier_failed (a read from the tier failed); replicated and
    #: replicated_stable (a follower shows more, to consumers that read all and committed records)
    kind: str
    #: of a batch; the last stable offset (stable); first offset of the segment (roll); log end offset (leader_start);
    #: first offset of the broker's own log (local_start)
    base_offset: Long | None = None
    size_bytes: Long | None = None  #: of a batch; None if unknown
    estimated: bool = False  #: the base offset is counted, not logged
    #: appended_lowest_us, appended_highest_us: when it was appended; for the other kinds, when it happened
    appended_lowest_us: Long | None = None
    appended_highest_us: Long | None = None
    #: committed_lowest_us, committed_highest_us: when the high watermark passed it; of a roll, when it entered
    #: the new segment
    committed_lowest_us: Long | None = None
    committed_highest_us: Long | None = None
    unstable: bool = False  #: it was committed while a transaction below it was open; a `stable` wake frees it
    high_watermark: Long | None = None  #: of leader_start; up to where the follower shows its log (replicated)
    leader_epoch: Int | None = None  #: of the leadership
    #: connection of the fetch that first carried it out, where only that proves the append (inferred)
    carrier: str | None = None
    without_carrier_us: Long | None = None  #: appended_highest_us as the other fetches prove it; None if none does
    #: where the transaction that ended began (stable); None if an earlier log may have it
    transaction_offset: Long | None = None
