"""Missing evidence of operations that cannot be judged, and proofs from evidence at hand. Pure."""

from __future__ import annotations

from highwater.pipelines.kafka.errors import NONE
from highwater.pipelines.replay import outcome as o
from highwater.pipelines.replay.leadership import Leadership
from highwater.pipelines.replay.outcome import PartitionOutcome
from highwater.pipelines.replay.state import State
from highwater.schemas.events import Event

#: Microseconds: a line is stamped when it is logged, so its facts can be older than lines that sort before it.
LOG_ORDER_SLACK_US = 1_000_000


def held_back(leadership: Leadership, replica_id: int, base_offset: int) -> bool:
    follower = leadership.followers.get(replica_id)
    return follower is None or follower.end_offset is None or follower.end_offset <= base_offset


def broken_chain(leadership: Leadership, operation: PartitionOutcome, behind: list[int]) -> str | None:
    """Return `FETCH_NOT_LOGGED` if a lagging follower may have sent a fetch that is not logged. Else None.

    Args:
        behind: ids of ISR members not known to have the records of `operation`.
    """
    for replica_id in behind:
        follower = leadership.followers.get(replica_id)
        if follower is None or follower.chain is None or follower.chain_end_us <= operation.completed_us:
            return o.FETCH_NOT_LOGGED
        if follower.chain_broken_us is not None and follower.chain_broken_us >= operation.handled_us:
            return o.FETCH_NOT_LOGGED
    return None


def why_open(state: State, operation: PartitionOutcome) -> str:
    leadership = state.leadership
    if leadership is None or operation.base_offset is None:
        return o.NO_LEADERSHIP
    if leadership.isr is None:
        return o.ISR_NOT_LOGGED
    followers = leadership.isr - {leadership.broker_id}
    behind = [replica_id for replica_id in followers if held_back(leadership, replica_id, operation.base_offset)]
    return broken_chain(leadership, operation, behind) or o.END_OF_LOG


def acked_before_commit(leadership: Leadership, operation: PartitionOutcome, end: Event) -> bool:
    """Return True if offsets prove that an operation was acknowledged although its record was never committed here.

    The proof: an ISR member never fetched beyond the record in this leadership, and no fetch of that member is missing
    between the operation and a later fetch.
    """
    if operation.error_code != NONE or operation.base_offset is None or leadership.isr is None:
        return False
    for replica_id in leadership.isr:
        follower = leadership.followers.get(replica_id)
        if replica_id == leadership.broker_id or follower is None or follower.chain is None:
            continue
        unbroken = follower.chain_broken_us is None or follower.chain_broken_us < operation.handled_us
        if (
            unbroken
            and held_back(leadership, replica_id, operation.base_offset)
            and follower.last_fetch_us > operation.completed_us + LOG_ORDER_SLACK_US
            and follower.chain_end_us > end.time_us
        ):
            return True
    return False
