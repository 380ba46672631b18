"""The replay kernel: ``step(state, event) -> outcomes``, for one partition on the one broker that leads it.

Pure: no Spark, no I/O. It folds the leader's lines in the order of `Event.time_us`. For every delayed produce it
returns when Kafka's rules let it be answered, and which replica it waited for. Delayed fetches span partitions, so they
are replayed by connection (`pipelines.replay.fetch_sessions`); the kernel returns what can wake them, as `Wake`.

Rules (``DelayedProduce.tryComplete``, ``Partition.checkEnoughReplicasReachOffset``, kafka-rules section 1.2), with the
case letters since 3.0; up to 2.8, A and B are case A, and C is case B:

* a partition that failed before the append does not wait;
* case A: the broker no longer hosts the replica; case B: it no longer leads the partition;
* case C: the high watermark has reached the required offset. C.1: fewer than min.insync.replicas are left in the ISR,
  so the answer is NOT_ENOUGH_REPLICAS_AFTER_APPEND; C.2: no error;
* an operation with partitions left when its timer fires is answered with their current status (``onExpiration``).

A batch is replicated whole, so a high watermark beyond its *base* offset has reached its required offset. The replay
does not need the required offset itself (last offset + 1); `pipelines.replay.required` derives it for the reader.

Why one broker and not one partition: a leadership is replayed on the clock of the broker that held it. Nothing here
compares the clocks of two brokers.
"""

from __future__ import annotations

from collections.abc import Iterable

from highwater.pipelines.base.instants import TICK_US
from highwater.pipelines.kafka.errors import (
    NONE,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER_OR_FOLLOWER,
    REQUEST_TIMED_OUT,
)
from highwater.pipelines.replay import outcome as o
from highwater.pipelines.replay.evidence import (
    LOG_ORDER_SLACK_US,
    acked_before_commit,
    broken_chain,
    held_back,
    why_open,
)
from highwater.pipelines.replay.leadership import Leadership
from highwater.pipelines.replay.outcome import PartitionOutcome
from highwater.pipelines.replay.required import Marker
from highwater.pipelines.replay.state import State, current_leadership, new_leadership, note_replicas
from highwater.pipelines.replay.timer import expiry_interval_us
from highwater.pipelines.replay.wakes import Wake
from highwater.schemas import events as e
from highwater.schemas.events import Event

# How far the high watermark has come, and the operations that this completes. Pure.
#
# Source: ``Partition.maybeIncrementLeaderHW``, ``Partition.checkEnoughReplicasReachOffset``,
# ``DelayedProduce.tryComplete`` and ``onExpiration``. Differences of versions are in `pipelines.kafka.versions`.


def advance(
    state: State, event: Event, brought: PartitionOutcome | None = None, removed: frozenset[int] = frozenset()
) -> None:
    """Raise the bounds of the high watermark, and complete the produces that waited for it.

    Args:
        brought: the operation of this event, if it is a produce.
        removed: replicas that leave the ISR with this event.
    """
    leadership = state.leadership
    if leadership is None or _is_below_min_isr(state, leadership, event.time_us):
        return
    definite, possible = leadership.counted(event.time_us)
    allowed = leadership.bound(definite)
    certain = min(allowed, leadership.bound(definite + possible)) if possible else allowed
    leadership.high_watermark = max(leadership.high_watermark, certain)
    for batch in state.log.uncommitted:
        if batch.base_offset >= allowed:
            break
        if batch.committed_lowest_us is None:
            batch.committed_lowest_us = _find_earliest(
                leadership, batch.base_offset, batch.appended_lowest_us, event, definite
            )
    state.wakes += state.log.committed(certain, event.time_us)
    if state.waiting:
        _satisfy_waiting(state, leadership, event, brought, removed, (definite, possible), (allowed, certain))
    oldest = leadership.high_watermark
    if state.waiting and state.waiting[0].base_offset is not None:
        oldest = min(oldest, state.waiting[0].base_offset)
    for follower in leadership.followers.values():
        follower.forget_below(oldest)
    leadership.answered.forget_below(oldest)


def _satisfy_waiting(
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
            operation.lowest_us = _find_earliest(leadership, base, operation.handled_us, event, definite)
        if base >= certain:
            still.append(operation)
            continue
        _satisfy(state, leadership, operation, event, definite + possible, removed, operation is brought)
    state.waiting = still


def _is_below_min_isr(state: State, leadership: Leadership, now_us: int) -> bool:
    if not leadership.rules.high_watermark_needs_min_isr or leadership.isr is None:
        return False
    return len(leadership.isr) < _get_min_isr(state, leadership, now_us)  # since 3.7: KAFKA-15583, KIP-966


def _get_min_isr(state: State, leadership: Leadership, now_us: int) -> int:
    """Return min.insync.replicas, since 3.7 at most the number of replicas (``Partition.effectiveMinIsr``)."""
    configured = state.context.find_min_isr(now_us)
    return min(configured, state.replicas) if leadership.rules.caps_min_isr_at_replicas else configured


def _find_earliest(leadership: Leadership, base_offset: int, floor_us: int, event: Event, definite: list[int]) -> int:
    """Return the earliest time, at least `floor_us`, at which all `definite` replicas may have passed the offset."""
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
    """Finish a produce that the high watermark certainly passed (``DelayedProduce.tryComplete`` case C).

    Args:
        counted: replicas that the high watermark waits for.
        removed: replicas that leave the ISR with this event.
        is_own: the event is the produce itself.
    """
    assert operation.base_offset is not None
    reached: list[tuple[int, int, Event]] = []
    for replica_id in counted:
        follower = leadership.followers.get(replica_id)
        fetch = follower.first_past(operation.base_offset) if follower is not None else None
        if fetch is not None:
            reached.append((fetch.time_us, replica_id, fetch))
    reached.sort(key=lambda entry: entry[:2])
    operation.highest_us = operation.handled_us if is_own else max(operation.handled_us, event.time_us)
    operation.predicted_error_code = NONE  # case C.2
    operation.isr = tuple(sorted(leadership.isr or ()))
    operation.isr_inferred = leadership.isr is None
    if event.kind in (e.ISR_UPDATE, e.LEADER_START) and not _is_closed_by_fetch(operation, reached, event):
        operation.cause = o.ISR_CHANGE
        held = [r for r in sorted(removed) if held_back(leadership, r, operation.base_offset)]
        operation.closing_replica = held[0] if held else None
        operation.highest_us += TICK_US
        operation.without_closing_us = max(operation.handled_us, reached[-1][0] if reached else 0)
        if event.controller is False and not leadership.rules.logs_isr_commits:
            operation.missing = o.ISR_NOT_LOGGED  # the line shows the request to ZooKeeper, not when it was done
    elif reached:
        closed_us, operation.closing_replica, operation.closing = reached[-1]
        operation.cause = o.HIGH_WATERMARK if closed_us > operation.handled_us else o.AT_ONCE
        operation.without_closing_us = max(operation.handled_us, reached[-2][0] if len(reached) > 1 else 0)
    else:
        operation.cause = o.LEADER_ONLY
        operation.without_closing_us = operation.handled_us
    _lower_by_answers(leadership, operation)
    if _is_under_min_isr(state, leadership, event.time_us):
        operation.predicted_error_code = NOT_ENOUGH_REPLICAS_AFTER_APPEND  # case C.1
    state.decided.add(operation)


def _lower_by_answers(leadership: Leadership, operation: PartitionOutcome) -> bool:
    """Lower the predicted interval if an answer to a follower shows the high watermark earlier than logged fetches do.

    Return True if so. The fetch that moved the high watermark is then unknown.
    """
    assert operation.base_offset is not None
    if operation.missing == o.NO_BASE_OFFSET:
        return False  # counted: the answers may belong to earlier records
    answered_us = leadership.answered.passed_us(operation.base_offset, operation.dequeued_us)
    shown_us = operation.lowest_us or operation.highest_us
    if answered_us is None or (shown_us is not None and answered_us >= shown_us - TICK_US):
        return False  # the move completes fetches before produces, so both lines together show it better
    operation.lowest_us, operation.highest_us = operation.handled_us, max(answered_us, operation.handled_us)
    return True


def _is_closed_by_fetch(operation: PartitionOutcome, reached: list[tuple[int, int, Event]], event: Event) -> bool:
    """Return True if the last needed fetch, not the ISR change of `event`, completed the produce.

    Args:
        reached: (time, replica, fetch) of the fetches that passed the record, in time order.
    """
    return bool(reached) and reached[-1][0] >= event.time_us


def _is_under_min_isr(state: State, leadership: Leadership, now_us: int) -> bool:
    return leadership.isr is not None and len(leadership.isr) < _get_min_isr(state, leadership, now_us)


def expire(state: State, now_us: int) -> None:
    """Finish the produces whose timeout passed by `now_us` (``DelayedProduce.onExpiration``)."""
    if not any(op.timeout_ms is not None and op.handled_us + op.timeout_ms * 1000 <= now_us for op in state.waiting):
        return
    still: list[PartitionOutcome] = []
    for operation in state.waiting:
        deadline = operation.handled_us + (operation.timeout_ms or 0) * 1000
        if operation.timeout_ms is None or deadline > now_us:
            still.append(operation)
            continue
        leadership = state.leadership
        if leadership is not None and operation.base_offset is not None and _lower_by_answers(leadership, operation):
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
        if _lower_by_answers(leadership, operation):
            operation.cause, operation.predicted_error_code, operation.proven_early = o.HIGH_WATERMARK, NONE, False
            state.decided.add(operation)
            return
    operation.cause = cause
    operation.predicted_error_code = error_code
    _name_missing_replica(state, operation)
    if operation.error_code == error_code:
        operation.missing = None  # the error shows that it was not committed
    operation.lowest_us = min(operation.lowest_us or event.earliest_us, event.earliest_us)
    operation.highest_us = max(event.time_us, event.completed_us or 0) + TICK_US
    state.decided.add(operation)


def step(state: State, event: Event) -> Iterable[PartitionOutcome | Wake]:
    """Apply one event. Return final produce results, and wakes: events that may complete waiting fetches.

    Raises:
        ValueError: the event is older than the previous one.
    """
    handler = _HANDLERS.get(event.kind)
    if handler is None:  # of the ISR's replay alone
        return ()
    last = state.last
    if last is not None:
        if event.time_us < last.time_us:
            raise ValueError(f"events are out of order: {event.time_us} after {last.time_us}")
        if event == last:  # the same line in two overlapping files
            return ()
    state.last = event
    unfollowed = state.decided.give_up(event.time_us, state.required)
    expire(state, event.time_us)
    handler(state, event)
    settle_us = state.context.settle_us
    oldest = state.waiting[0].base_offset if state.waiting else None
    released = state.decided.release(event.time_us - settle_us, settle_us, state.required, oldest)
    wakes = state.take_wakes(event.time_us)
    return [*unfollowed, *released, *wakes] if unfollowed or wakes else released


def finish(state: State) -> Iterable[PartitionOutcome | Wake]:
    """Return all remaining results at the end of the log. Produces without a known end are unobservable."""
    if state.last is not None:
        expire(state, state.last.time_us)
    for operation in state.waiting:
        operation.missing = operation.missing or why_open(state, operation)
        state.decided.add(operation)
    state.waiting = []
    if state.last is not None:
        state.wakes += state.log.ends(state.last)
    return [*state.decided.drain(state.required), *state.wakes]


def _start_leadership(state: State, event: Event) -> None:
    newly_leader = not state.leads
    if newly_leader or state.leadership is None:
        state.leadership = new_leadership(state)
        _drop_older(state, event.time_us - LOG_ORDER_SLACK_US)
    state.leads = True
    state.assigned = event.replicas or state.assigned
    state.wakes += state.log.starts(event, newly_leader)
    removed = state.leadership.start_epoch(event, newly_leader)
    state.required.epoch_starts(event.offset, event.time_us)
    note_replicas(state)
    advance(state, event, removed=removed)


def _end_leadership(state: State, event: Event) -> None:
    state.wakes += state.log.ended(event)
    if state.leadership is None or not state.leads:
        state.leads = False
        state.leadership = None
        return
    for operation in state.waiting:
        operation.proven_early = acked_before_commit(state.leadership, operation, event)
        error_code = event.error_code or NOT_LEADER_OR_FOLLOWER  # case A if the replica is gone, else case B
        close(state, operation, event, cause=o.LEADERSHIP_LOST, error_code=error_code)
    state.waiting = []
    state.leads = False
    state.leadership = None


def _apply_isr(state: State, event: Event) -> None:
    if state.leads is False:
        return
    leadership = current_leadership(state)
    state.assigned = event.replicas or state.assigned
    removed = leadership.commit_isr(event)
    note_replicas(state)
    advance(state, event, removed=removed)


def _take_first_isr(state: State, event: Event) -> None:
    """Set the ISR from a line that shows the ISR before a change, if no earlier line showed the ISR."""
    if state.leads is False or event.isr is None:
        return
    leadership = current_leadership(state)
    if leadership.isr is None:
        leadership.isr = frozenset(event.isr)
        note_replicas(state)


def _apply_roll(state: State, event: Event) -> None:
    state.log.rolled(event, state.leads is not False, state.context.rules.roll_moves_high_watermark)


def _apply_replicated(state: State, event: Event) -> None:
    if state.leads:
        return
    state.wakes += state.replica.answered(event)


def _add_wake(state: State, event: Event) -> None:
    """Add a wake of the event's kind for waiting fetches. Followers also answer fetches from remote storage."""
    state.wakes.append(
        Wake(event.kind, event.offset, appended_lowest_us=event.earliest_us, appended_highest_us=event.time_us)
    )


def _apply_fetch(state: State, event: Event) -> None:
    if event.offset is not None and not event.error_code and not event.diverging:
        state.required.boundary(event.offset)
    # A read error is answered at once and moves no follower; an error after a wait came later than the read.
    failed = event.error_code and (event.completed_us or 0) - event.time_us <= TICK_US
    if state.leads is False or failed or event.replica_id == state.context.broker_id:
        return
    if event.diverging and not state.context.rules.counts_diverging_fetches:
        return
    state.log.fetched(event)
    leadership = current_leadership(state)
    outside = leadership.isr is not None and event.replica_id not in leadership.isr
    if leadership.fetched(event):
        note_replicas(state)
        if outside and leadership.rules.waits_for_caught_up_replicas and event.offset is not None:
            state.decided.doubt(event.earliest_us, event.offset)
        advance(state, event)


def _note_initial_status(state: State, event: Event) -> None:
    if event.offset is None or event.required_offset is None:
        return
    state.required.logged(event.offset, event.required_offset)
    if not state.context.rules.logs_responses and all(base != event.offset for _, base in state.logged_appends):
        state.logged_appends.append((event.time_us, event.offset))


def _note_progress(state: State, event: Event) -> None:
    if event.required_offset is not None:
        state.required.awaited(event.required_offset, event.isr or ())


def _apply_produce(state: State, event: Event) -> None:
    if event.error_code is None and event.offset is None:
        event = event._replace(offset=_take_logged_offset(state, event))
    appended = event.error_code in (NONE, REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND, None)
    base = event.offset if event.offset is not None and event.offset >= 0 else None
    # Counted: a coordinator's records, or a produce without a logged response.
    shows_append = event.records is not None or event.error_code is None
    counted = base is None and appended and shows_append and state.leads is not False
    marker, placed = None, None
    written = base is not None and event.error_code != NOT_LEADER_OR_FOLLOWER and not _is_duplicate(state, base)
    if counted or written:
        if event.control:
            marker = Marker(event.time_us, event.earliest_us, event.request_id or "", event.producer or "")
            state.required.marker(marker)
            placed = state.required.offset_of(marker)
        elif base is not None:
            state.required.append(base, event.earliest_us, _get_latest_us(state, event))
        if state.leads is not False:
            append, deferred = _append(state, event)
            base = state.log.appended(append, deferred, placed)
            current_leadership(state).appended(base, append)
    if event.acks != -1:
        advance(state, event)
        return
    operation = PartitionOutcome(
        request_id=event.request_id or "",
        base_offset=base,
        error_code=event.error_code,
        dequeued_us=event.earliest_us,
        handled_us=event.time_us,
        completed_us=event.completed_us or event.time_us,
        partitions=event.partitions or 1,
        timeout_ms=event.timeout_ms,
    )
    if counted:
        operation.marker = marker
        operation.missing = o.NO_BASE_OFFSET  # the derived place bounds when it may be answered, not when it must
    if state.leadership is not None:
        operation.leader_epoch = state.leadership.leader_epoch
    if operation.base_offset is None:
        _answer_failure(state, operation, appended, event)
        return
    if state.leads is False:
        operation.missing = o.NO_LEADERSHIP
        state.decided.add(operation)
        return
    at = len(state.waiting)
    while at and (state.waiting[at - 1].base_offset or 0) > operation.base_offset:
        at -= 1
    state.waiting.insert(at, operation)
    advance(state, event, brought=operation)


def _get_latest_us(state: State, event: Event) -> int:
    """Return the latest time of a produce's append, us. A transactional produce may have waited for verification."""
    may_wait = event.producer is not None and state.context.rules.verifies_transactions
    return max(event.time_us, event.completed_us or 0) if may_wait else event.time_us


def _append(state: State, event: Event) -> tuple[Event, bool]:
    """Return the request with bounds of its append time, and True if the append came after the request was handled.

    A coordinator with its own threads gathers records. A thread appends when the timer fires or queued work is done
    (``CoordinatorRuntime.append``, group.coordinator.append.linger.ms, share.coordinator.append.linger.ms). No line
    shows how busy that thread is.
    """
    answered_us = max(event.time_us, event.completed_us or 0)
    linger_ms = state.context.append_linger_ms
    if state.context.rules.verifies_transactions and state.log.begins_transaction(event):
        return event._replace(time_us=answered_us), True
    if linger_ms is None or event.records is None or event.control:
        return event, False
    lowest_us, highest_us = expiry_interval_us(event.earliest_us, event.time_us, linger_ms)
    joins = event.earliest_us <= state.gathering_us
    if not joins:
        state.gathering_us = highest_us
    lowest_us = event.earliest_us if joins else lowest_us
    return event._replace(time_us=max(highest_us, answered_us), earliest_us=lowest_us), True


def _take_logged_offset(state: State, event: Event) -> int | None:
    """Return the base offset of a produce without a response, from a TRACE line of that time, or None."""
    while state.logged_appends and state.logged_appends[0][0] < event.earliest_us - TICK_US:
        state.logged_appends.popleft()
    if state.logged_appends and state.logged_appends[0][0] <= event.time_us + TICK_US:
        return state.logged_appends.popleft()[1]
    return None


def _is_duplicate(state: State, base_offset: int) -> bool:
    """Return True for a retry answered with the offset of the original append: nothing was appended.

    Source: ``ProducerStateManager``.
    """
    leadership = state.leadership
    return state.required.knows(base_offset) or (leadership is not None and base_offset < leadership.start_offset)


def _answer_failure(state: State, operation: PartitionOutcome, appended: bool, event: Event) -> None:
    """Decide a produce without a base offset: it failed before the append, or its error hides the offset.

    Args:
        appended: the records were appended.
    """
    if appended or (operation.completed_us - operation.handled_us > 2 * TICK_US and operation.error_code):
        if operation.error_code == NOT_LEADER_OR_FOLLOWER and state.leads is not False:
            operation.base_offset = None
            state.waiting.append(operation)
            return
        operation.missing = o.NO_BASE_OFFSET
    else:
        operation.lowest_us = operation.highest_us = event.time_us
        operation.cause = o.ERROR
        operation.predicted_error_code = operation.error_code
    state.decided.add(operation)


_HANDLERS = {
    e.LEADER_START: _start_leadership,
    e.LEADER_END: _end_leadership,
    e.ISR_UPDATE: _apply_isr,
    e.ISR_PROPOSAL: _take_first_isr,
    e.ROLL: _apply_roll,
    e.FETCH: _apply_fetch,
    e.INITIAL_STATUS: _note_initial_status,
    e.PRODUCE: _apply_produce,
    e.PROGRESS: _note_progress,
    e.LOCAL_START: _add_wake,
    e.TIER_FAILED: _add_wake,
    e.REPLICATED: _apply_replicated,
}


def _drop_older(state: State, before_us: int) -> None:
    """Mark produces as undecidable that were answered before `before_us`, under a leadership without a logged start."""
    still: list[PartitionOutcome] = []
    for operation in state.waiting:
        if operation.completed_us < before_us:
            operation.missing = o.NO_LEADERSHIP
            state.decided.add(operation)
        else:
            still.append(operation)
    state.waiting = still
