"""How far the high watermark has come, and the operations that this completes. Pure.

Source: ``Partition.maybeIncrementLeaderHW``, ``Partition.checkEnoughReplicasReachOffset``,
``DelayedProduce.tryComplete`` and ``onExpiration``; what differs between versions is in `pipelines.kafka.versions`.
"""

from __future__ import annotations

from pipelines.base.instants import TICK_US
from pipelines.kafka.errors import NONE, NOT_ENOUGH_REPLICAS_AFTER_APPEND, REQUEST_TIMED_OUT
from pipelines.replay import outcome as o
from pipelines.replay.evidence import broken_chain, held_back
from pipelines.replay.leadership import Leadership
from pipelines.replay.outcome import PartitionOutcome
from pipelines.replay.state import State
from pipelines.replay.timer import expiry_interval_us
from schemas import events as e
from schemas.events import Event


def advance(
    state: State, event: Event, brought: PartitionOutcome | None = None, removed: frozenset[int] = frozenset()
) -> None:
    """See how far the high watermark can have moved, and complete what waited for it.

    Args:
        brought: the operation that the event itself, a produce, brought.
        removed: replicas that leave the ISR with this event.
    """
    leadership = state.leadership
    if leadership is None or _below_min_isr(state, leadership, event.time_us):
        return
    definite, possible = leadership.counted(event.time_us)
    allowed = leadership.bound(definite)
    certain = min(allowed, leadership.bound(definite + possible)) if possible else allowed
    leadership.high_watermark = max(leadership.high_watermark, certain)
    for batch in state.log.uncommitted:
        if batch.base_offset >= allowed:
            break
        if batch.committed_lowest_us is None:
            batch.committed_lowest_us = _earliest(
                leadership, batch.base_offset, batch.appended_lowest_us, event, definite
            )
    state.wakes += state.log.committed(certain, event.time_us)
    if state.waiting:
        _complete_waiting(state, leadership, event, brought, removed, (definite, possible), (allowed, certain))
    oldest = leadership.high_watermark
    if state.waiting and state.waiting[0].base_offset is not None:
        oldest = min(oldest, state.waiting[0].base_offset)
    for follower in leadership.followers.values():
        follower.forget_below(oldest)
    leadership.answered.forget_below(oldest)


def _complete_waiting(
    state: State,
    leadership: Leadership,
    event: Event,
    brought: PartitionOutcome | None,
    removed: frozenset[int],
    counted: tuple[list[int], list[int]],
    bounds: tuple[int, int],
) -> None:
    (definite, possible), (allowed, certain) = counted, bounds
    if state.waiting[0].base_offset is not None and state.waiting[0].base_offset >= allowed:
        return  # they wait in the order of their offsets
    still: list[PartitionOutcome] = []
    for operation in state.waiting:
        base = operation.base_offset
        if base is None or base >= allowed:
            still.append(operation)
            continue
        if operation.lowest_us is None:
            operation.lowest_us = _earliest(leadership, base, operation.handled_us, event, definite)
        if base >= certain:
            still.append(operation)
            continue
        _satisfy(state, leadership, operation, event, definite + possible, removed, operation is brought)
    state.waiting = still


def _below_min_isr(state: State, leadership: Leadership, now_us: int) -> bool:
    if not leadership.rules.high_watermark_needs_min_isr or leadership.isr is None:
        return False
    return len(leadership.isr) < _effective_min_isr(state, leadership, now_us)


def _effective_min_isr(state: State, leadership: Leadership, now_us: int) -> int:
    """min.insync.replicas, since 3.7 no more than there are replicas (``Partition.effectiveMinIsr``)."""
    configured = state.context.min_isr_at(now_us)
    return min(configured, state.replicas) if leadership.rules.caps_min_isr_at_replicas else configured


def _earliest(leadership: Leadership, base_offset: int, floor_us: int, event: Event, definite: list[int]) -> int:
    """The earliest instant, not before a floor, at which the definite replicas can have let an offset through."""
    earliest = floor_us
    for replica_id in definite:
        follower = leadership.followers.get(replica_id)
        fetch = follower.first_past(base_offset) if follower is not None else None
        if fetch is not None:
            earliest = max(earliest, fetch.earliest_us)
    if event.kind not in (e.FETCH, e.PRODUCE):
        earliest = max(earliest, event.earliest_us)
    return earliest


def _satisfy(
    state: State,
    leadership: Leadership,
    operation: PartitionOutcome,
    event: Event,
    counted: list[int],
    removed: frozenset[int],
    is_own: bool,
) -> None:
    """The high watermark certainly lies beyond the operation now."""
    assert operation.base_offset is not None
    reached: list[tuple[int, int, Event]] = []
    for replica_id in counted:
        follower = leadership.followers.get(replica_id)
        fetch = follower.first_past(operation.base_offset) if follower is not None else None
        if fetch is not None:
            reached.append((fetch.time_us, replica_id, fetch))
    reached.sort(key=lambda entry: entry[:2])
    operation.highest_us = operation.handled_us if is_own else max(operation.handled_us, event.time_us)
    operation.predicted_error_code = NONE
    operation.isr = tuple(sorted(leadership.isr or ()))
    operation.isr_inferred = leadership.isr is None
    if event.kind in (e.ISR_UPDATE, e.LEADER_START) and not _closed_by_fetch(operation, reached, event):
        operation.cause = o.ISR_CHANGE
        held = [r for r in sorted(removed) if held_back(leadership, r, operation.base_offset)]
        operation.closing_replica = held[0] if held else None
        operation.highest_us += TICK_US
        operation.without_closing_us = max(operation.handled_us, reached[-1][0] if reached else 0)
        if event.controller is False and not leadership.rules.logs_isr_commits:
            operation.missing = o.ISR_NOT_LOGGED  # the line says what is asked of ZooKeeper, not when it was done
    elif reached:
        closed_us, operation.closing_replica, operation.closing = reached[-1]
        operation.cause = o.HIGH_WATERMARK if closed_us > operation.handled_us else o.AT_ONCE
        operation.without_closing_us = max(operation.handled_us, reached[-2][0] if len(reached) > 1 else 0)
    else:
        operation.cause = o.LEADER_ONLY
        operation.without_closing_us = operation.handled_us
    _bound_by_told(leadership, operation)
    if _under_min_isr_after_append(state, leadership, event.time_us):
        operation.predicted_error_code = NOT_ENOUGH_REPLICAS_AFTER_APPEND
    state.decided.add(operation)


def _bound_by_told(leadership: Leadership, operation: PartitionOutcome) -> bool:
    """What a follower was told can show that the high watermark was there sooner than the fetches in the log do.

    True if so. Which fetch moved it is not known then.
    """
    assert operation.base_offset is not None
    if operation.missing == o.NO_BASE_OFFSET:
        return False  # counted: what was told may be of what lies before
    answered_us = leadership.answered.passed_us(operation.base_offset, operation.dequeued_us)
    shown_us = operation.lowest_us or operation.highest_us
    if answered_us is None or (shown_us is not None and answered_us >= shown_us - TICK_US):
        return False  # what moved it completes fetches before produces, so the lines of both tell better
    operation.lowest_us, operation.highest_us = operation.handled_us, max(answered_us, operation.handled_us)
    return True


def _closed_by_fetch(operation: PartitionOutcome, reached: list[tuple[int, int, Event]], event: Event) -> bool:
    """A change of the ISR that comes after all its members had the record closed nothing."""
    return bool(reached) and reached[-1][0] >= event.time_us


def _under_min_isr_after_append(state: State, leadership: Leadership, now_us: int) -> bool:
    return leadership.isr is not None and len(leadership.isr) < _effective_min_isr(state, leadership, now_us)


def expire(state: State, now_us: int) -> None:
    """Answer what its timer answered before this instant (``DelayedProduce.onExpiration``)."""
    if not any(op.timeout_ms is not None and op.handled_us + op.timeout_ms * 1000 <= now_us for op in state.waiting):
        return
    still: list[PartitionOutcome] = []
    for operation in state.waiting:
        deadline = operation.handled_us + (operation.timeout_ms or 0) * 1000
        if operation.timeout_ms is None or deadline > now_us:
            still.append(operation)
            continue
        leadership = state.leadership
        if leadership is not None and operation.base_offset is not None and _bound_by_told(leadership, operation):
            operation.cause, operation.predicted_error_code = o.HIGH_WATERMARK, NONE
            operation.isr = tuple(sorted(leadership.isr or ()))
            operation.isr_inferred = leadership.isr is None
            state.decided.add(operation)
            continue
        operation.cause = o.TIMER
        operation.predicted_error_code = REQUEST_TIMED_OUT
        lowest_us, highest_us = expiry_interval_us(operation.dequeued_us, operation.handled_us, operation.timeout_ms)
        # Where the high watermark may have been there first, both are possible answers.
        operation.lowest_us = min(operation.lowest_us or lowest_us, lowest_us)
        operation.highest_us = highest_us
        _name_missing_replica(state, operation)
        state.decided.add(operation)
    state.waiting = still


def _name_missing_replica(state: State, operation: PartitionOutcome) -> None:
    leadership = state.leadership
    if leadership is None or operation.base_offset is None:
        return
    operation.isr = tuple(sorted(leadership.isr or ()))
    operation.isr_inferred = leadership.isr is None
    behind = [
        replica_id
        for replica_id in operation.isr
        if replica_id != leadership.broker_id and held_back(leadership, replica_id, operation.base_offset)
    ]
    operation.closing_replica = behind[0] if len(behind) == 1 else None
    operation.missing = broken_chain(leadership, operation, behind) or operation.missing


def close(state: State, operation: PartitionOutcome, event: Event, cause: str, error_code: int) -> None:
    leadership = state.leadership
    if leadership is not None and operation.base_offset is not None and not operation.error_code:
        operation.highest_us = event.time_us
        if _bound_by_told(leadership, operation):
            operation.cause, operation.predicted_error_code, operation.proven_early = o.HIGH_WATERMARK, NONE, False
            state.decided.add(operation)
            return
    operation.cause = cause
    operation.predicted_error_code = error_code
    _name_missing_replica(state, operation)
    if operation.error_code == error_code:
        operation.missing = None  # that it was not committed is what the error says
    operation.lowest_us = min(operation.lowest_us or event.earliest_us, event.earliest_us)
    operation.highest_us = max(event.time_us, event.completed_us or 0) + TICK_US
    state.decided.add(operation)
