"""The replay kernel: ``step(state, event) -> outcomes``, for one partition on the one broker that leads it.

Pure: no Spark, no I/O. It folds what a leader logged, in the order of `Event.time_us`, and answers for every acks=all
produce when Kafka's rules let it be answered, and which replica it waited for.

Rules (``DelayedProduce.tryComplete``, ``Partition.checkEnoughReplicasReachOffset``, kafka-rules section 1.2):

* a partition that failed before the append does not wait;
* a waiting partition is done when the high watermark has reached its required offset, or the broker no longer leads;
* an operation whose partitions are not all done when its timer fires is answered as it stands.

A batch is replicated whole, so a high watermark beyond its *base* offset has reached its required offset: the required
offset itself (last offset + 1) is not needed to replay, and is derived for the reader (`pipelines.replay.required`).

Why one broker and not one partition: a leadership is replayed on the clock of the broker that held it. Nothing here
compares the clocks of two brokers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pipelines.replay import outcome as o
from pipelines.replay.leadership import Leadership
from pipelines.replay.outcome import PartitionOutcome
from pipelines.replay.required import RequiredOffsets
from pipelines.replay.versions import Rules
from schemas import events as e
from schemas.events import Event

NONE = 0
NOT_LEADER_OR_FOLLOWER = 6
REQUEST_TIMED_OUT = 7
NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20

#: A line's time is when it was logged, so what it tells can be a little older than what sorts before it.
LOG_ORDER_SLACK_US = 1_000_000
#: An instant read off a millisecond clock can be up to this much later.
CLOCK_TICK_US = 1_000


@dataclass(frozen=True)
class Context:
    """What the replay of a partition needs to know beside its events.

    Attributes:
        broker_id: the broker whose log is replayed.
        rules: rules of the broker's version.
        lag_time_max_us: replica.lag.time.max.ms of that broker.
        min_insync_replicas: (from when, value) of the topic, in time order; empty where no line tells it.
        settle_us: how long after its completion an operation waits for the offsets that follow it.
    """

    broker_id: int
    rules: Rules
    lag_time_max_us: int
    min_insync_replicas: tuple[tuple[int, int], ...] = ()
    settle_us: int = 5_000_000

    def min_isr_at(self, time_us: int) -> int:
        """min.insync.replicas as of an instant; 1 where no line tells it."""
        value = 1
        for since_us, configured in self.min_insync_replicas:
            if since_us > time_us:
                break
            value = configured
        return value


@dataclass
class State:
    """Everything that lives on between two events of one partition.

    Attributes:
        leadership: the current one; None while the broker does not lead.
        waiting: operations not yet satisfied, by base offset.
        satisfied: operations that are done but whose required offset may still become known.
    """

    context: Context
    leadership: Leadership | None = None
    leads: bool | None = None
    waiting: list[PartitionOutcome] = field(default_factory=list)
    satisfied: list[PartitionOutcome] = field(default_factory=list)
    required: RequiredOffsets = field(default_factory=RequiredOffsets)
    last: Event | None = None
    replicas_seen: int = 1


def step(state: State, event: Event) -> Iterable[PartitionOutcome]:
    """Fold one event; give the operations that are finished for good.

    Raises:
        ValueError: the event lies before the one that was folded last.
    """
    last = state.last
    if last is not None:
        if event.time_us < last.time_us:
            raise ValueError(f"events are out of order: {event.time_us} after {last.time_us}")
        if event == last:  # the same line in two overlapping files
            return ()
    state.last = event
    _expire(state, event.time_us)
    _HANDLERS[event.kind](state, event)
    return _release(state, event.time_us - state.context.settle_us)


def finish(state: State) -> Iterable[PartitionOutcome]:
    """The log ends here: give what is left, unobservable where its end was not seen."""
    if state.last is not None:
        _expire(state, state.last.time_us)
    for operation in state.waiting:
        operation.missing = operation.missing or _why_open(state, operation)
        state.satisfied.append(operation)
    state.waiting = []
    return _release(state, None)


# --- events ---------------------------------------------------------------------------------------------------------


def _leader_start(state: State, event: Event) -> None:
    newly_leader = not state.leads
    if newly_leader or state.leadership is None:
        state.leadership = _new_leadership(state)
        _drop_older(state, event.time_us - LOG_ORDER_SLACK_US)
    state.leads = True
    state.leadership.start_epoch(event, newly_leader)
    state.required.epoch_starts(event.offset)
    _note_replicas(state)
    _advance(state, event)


def _leader_end(state: State, event: Event) -> None:
    if state.leadership is None or not state.leads:
        state.leads = False
        state.leadership = None
        return
    for operation in state.waiting:
        operation.proven_early = _acked_before_commit(state.leadership, operation, event)
        _close(state, operation, event, cause=o.LEADERSHIP_LOST, error_code=NOT_LEADER_OR_FOLLOWER)
    state.waiting = []
    state.leads = False
    state.leadership = None


def _isr_update(state: State, event: Event) -> None:
    if state.leads is False:
        return
    leadership = _leadership(state)
    removed = leadership.commit_isr(event)
    _note_replicas(state)
    _advance(state, event, removed=removed)


def _isr_proposal(state: State, event: Event) -> None:
    """A shrink line names the ISR it starts from: where no line told the ISR before, this one does."""
    if state.leads is False or event.isr is None:
        return
    leadership = _leadership(state)
    if leadership.isr is None:
        leadership.isr = frozenset(event.isr)
        _note_replicas(state)


def _fetch(state: State, event: Event) -> None:
    if event.offset is not None and not event.error_code:
        state.required.boundary(event.offset)
    if state.leads is False or event.error_code or event.replica_id == state.context.broker_id:
        return
    if _leadership(state).fetched(event):
        _note_replicas(state)
        _advance(state, event)


def _marker(state: State, event: Event) -> None:
    """A transaction marker was appended: one control record at an offset that its request does not show."""
    state.required.marker(event.earliest_us, event.time_us)


def _initial_status(state: State, event: Event) -> None:
    if event.offset is not None and event.required_offset is not None:
        state.required.logged(event.offset, event.required_offset)


def _progress(state: State, event: Event) -> None:
    if event.required_offset is not None:
        state.required.awaited(event.required_offset, event.isr or ())


def _produce(state: State, event: Event) -> None:
    appended = event.error_code in (NONE, REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    if event.offset is not None and event.offset >= 0 and event.error_code != NOT_LEADER_OR_FOLLOWER:
        state.required.append(event.offset, event.earliest_us, event.time_us)
        if state.leads is not False:
            _leadership(state).appended(event.offset, event)
    if event.acks != -1:
        return
    operation = PartitionOutcome(
        request_id=event.request_id or "",
        base_offset=event.offset if event.offset is not None and event.offset >= 0 else None,
        error_code=event.error_code,
        handled_us=event.time_us,
        completed_us=event.completed_us or event.time_us,
        partitions=event.partitions or 1,
        timeout_ms=event.timeout_ms,
    )
    if state.leadership is not None:
        operation.leader_epoch = state.leadership.leader_epoch
    if operation.base_offset is None:
        _answer_failure(state, operation, appended, event)
        return
    if state.leads is False:
        operation.missing = o.NO_LEADERSHIP
        state.satisfied.append(operation)
        return
    at = len(state.waiting)
    while at and (state.waiting[at - 1].base_offset or 0) > operation.base_offset:
        at -= 1
    state.waiting.insert(at, operation)
    _advance(state, event, only=operation)


def _answer_failure(state: State, operation: PartitionOutcome, appended: bool, event: Event) -> None:
    """No base offset: either it failed before the append and did not wait, or the answer hides where it went."""
    if appended or (operation.completed_us - operation.handled_us > 2 * CLOCK_TICK_US and operation.error_code):
        if operation.error_code == NOT_LEADER_OR_FOLLOWER and state.leads is not False:
            operation.base_offset = None
            state.waiting.append(operation)
            return
        operation.missing = o.NO_BASE_OFFSET
    else:
        operation.lowest_us = operation.highest_us = event.time_us
        operation.cause = o.ERROR
        operation.predicted_error_code = operation.error_code
    state.satisfied.append(operation)


_HANDLERS = {
    e.LEADER_START: _leader_start,
    e.LEADER_END: _leader_end,
    e.ISR_UPDATE: _isr_update,
    e.ISR_PROPOSAL: _isr_proposal,
    e.FETCH: _fetch,
    e.MARKER: _marker,
    e.INITIAL_STATUS: _initial_status,
    e.PRODUCE: _produce,
    e.PROGRESS: _progress,
}


# --- the high watermark and those who wait for it --------------------------------------------------------------------


def _advance(
    state: State, event: Event, only: PartitionOutcome | None = None, removed: frozenset[int] = frozenset()
) -> None:
    """See how far the high watermark can have moved, and complete what waited for it."""
    leadership = state.leadership
    if leadership is None or not state.waiting:
        if leadership is not None:
            _raise_high_watermark(state, leadership, event.time_us)
        return
    if _below_min_isr(state, leadership, event.time_us):
        return
    definite, possible = leadership.counted(event.time_us)
    allowed = leadership.bound(definite)
    certain = min(allowed, leadership.bound(definite + possible))
    leadership.high_watermark = max(leadership.high_watermark, certain)
    still: list[PartitionOutcome] = []
    for operation in state.waiting:
        base = operation.base_offset
        if base is None or base >= max(allowed, certain) or (only is not None and operation is not only):
            still.append(operation)
            continue
        if operation.lowest_us is None:
            operation.lowest_us = _earliest(leadership, operation, event, definite)
        if base >= certain:
            still.append(operation)
            continue
        _satisfy(state, leadership, operation, event, definite + possible, removed)
    state.waiting = still
    oldest = still[0].base_offset if still and still[0].base_offset is not None else leadership.high_watermark
    for follower in leadership.followers.values():
        follower.forget_below(min(oldest, leadership.high_watermark))


def _raise_high_watermark(state: State, leadership: Leadership, now_us: int) -> None:
    if not _below_min_isr(state, leadership, now_us):
        definite, possible = leadership.counted(now_us)
        leadership.high_watermark = max(leadership.high_watermark, leadership.bound(definite + possible))
        for follower in leadership.followers.values():
            follower.forget_below(leadership.high_watermark)


def _below_min_isr(state: State, leadership: Leadership, now_us: int) -> bool:
    if not leadership.rules.high_watermark_needs_min_isr or leadership.isr is None:
        return False
    # effectiveMinIsr: no more than there are replicas.
    return len(leadership.isr) < min(state.context.min_isr_at(now_us), state.replicas_seen)


def _earliest(leadership: Leadership, operation: PartitionOutcome, event: Event, definite: list[int]) -> int:
    """The earliest instant at which the definite replicas can have let the operation through."""
    assert operation.base_offset is not None
    earliest = operation.handled_us
    for replica_id in definite:
        follower = leadership.followers.get(replica_id)
        fetch = follower.first_past(operation.base_offset) if follower is not None else None
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
) -> None:
    """The high watermark certainly lies beyond the operation now."""
    assert operation.base_offset is not None and operation.lowest_us is not None
    reached: list[tuple[int, int, Event]] = []
    for replica_id in counted:
        follower = leadership.followers.get(replica_id)
        fetch = follower.first_past(operation.base_offset) if follower is not None else None
        if fetch is not None:
            reached.append((fetch.time_us, replica_id, fetch))
    reached.sort(key=lambda entry: entry[:2])
    operation.highest_us = max(operation.handled_us, event.time_us if event.kind != e.PRODUCE else 0)
    operation.predicted_error_code = NONE
    operation.isr = tuple(sorted(leadership.isr or ()))
    operation.isr_inferred = leadership.isr is None
    if event.kind in (e.ISR_UPDATE, e.LEADER_START) and not _closed_by_fetch(operation, reached, event):
        operation.cause = o.ISR_CHANGE
        held = [r for r in sorted(removed) if _held_back(leadership, r, operation.base_offset)]
        operation.closing_replica = held[0] if held else None
        operation.highest_us += CLOCK_TICK_US
        operation.without_closing_us = max(operation.handled_us, reached[-1][0] if reached else 0)
    elif reached:
        closed_us, operation.closing_replica, operation.closing = reached[-1]
        operation.cause = o.HIGH_WATERMARK if closed_us > operation.handled_us else o.AT_ONCE
        operation.without_closing_us = max(operation.handled_us, reached[-2][0] if len(reached) > 1 else 0)
    else:
        operation.cause = o.LEADER_ONLY
        operation.without_closing_us = operation.handled_us
    if _under_min_isr_after_append(state, leadership, event.time_us):
        operation.predicted_error_code = NOT_ENOUGH_REPLICAS_AFTER_APPEND
    state.satisfied.append(operation)


def _closed_by_fetch(operation: PartitionOutcome, reached: list[tuple[int, int, Event]], event: Event) -> bool:
    """A change of the ISR that comes after all its members had the record closed nothing."""
    return bool(reached) and reached[-1][0] >= event.time_us


def _held_back(leadership: Leadership, replica_id: int, base_offset: int) -> bool:
    follower = leadership.followers.get(replica_id)
    return follower is None or follower.end_offset is None or follower.end_offset <= base_offset


def _under_min_isr_after_append(state: State, leadership: Leadership, now_us: int) -> bool:
    return leadership.isr is not None and len(leadership.isr) < min(
        state.context.min_isr_at(now_us), state.replicas_seen
    )


def _expire(state: State, now_us: int) -> None:
    """Answer what its timer answered before this instant (``DelayedProduce.onExpiration``)."""
    if not any(op.timeout_ms is not None and op.handled_us + op.timeout_ms * 1000 <= now_us for op in state.waiting):
        return
    still: list[PartitionOutcome] = []
    for operation in state.waiting:
        deadline = operation.handled_us + (operation.timeout_ms or 0) * 1000
        if operation.timeout_ms is None or deadline > now_us:
            still.append(operation)
            continue
        operation.cause = o.TIMER
        operation.predicted_error_code = REQUEST_TIMED_OUT
        # Where the high watermark may have been there first, both are possible answers.
        operation.lowest_us = min(operation.lowest_us or deadline, deadline)
        operation.highest_us = deadline
        _name_missing_replica(state, operation)
        state.satisfied.append(operation)
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
        if replica_id != leadership.broker_id and _held_back(leadership, replica_id, operation.base_offset)
    ]
    operation.closing_replica = behind[0] if len(behind) == 1 else None
    operation.missing = _broken_chain(leadership, operation, behind)


def _close(state: State, operation: PartitionOutcome, event: Event, cause: str, error_code: int) -> None:
    operation.cause = cause
    operation.predicted_error_code = error_code
    _name_missing_replica(state, operation)
    operation.lowest_us = min(operation.lowest_us or event.earliest_us, event.earliest_us)
    operation.highest_us = event.time_us + CLOCK_TICK_US
    state.satisfied.append(operation)


# --- what the evidence lacks -----------------------------------------------------------------------------------------


def _broken_chain(leadership: Leadership, operation: PartitionOutcome, behind: list[int]) -> str | None:
    """A follower's last fetch before its connection broke is answered to nobody, and never logged."""
    for replica_id in behind:
        follower = leadership.followers.get(replica_id)
        if follower is None or follower.chain is None or follower.chain_end_us <= operation.completed_us:
            return o.FETCH_NOT_LOGGED
        if follower.chain_broken_us is not None and follower.chain_broken_us >= operation.handled_us:
            return o.FETCH_NOT_LOGGED
    return None


def _why_open(state: State, operation: PartitionOutcome) -> str:
    leadership = state.leadership
    if leadership is None or operation.base_offset is None:
        return o.NO_LEADERSHIP
    if leadership.isr is None:
        return o.ISR_NOT_LOGGED
    behind = [r for r in leadership.isr if r != leadership.broker_id and _held_back(leadership, r, operation.base_offset)]
    return _broken_chain(leadership, operation, behind) or o.END_OF_LOG


def _acked_before_commit(leadership: Leadership, operation: PartitionOutcome, end: Event) -> bool:
    """Proof by offsets that an operation was acknowledged although its record never was committed here.

    A member of the ISR never fetched from beyond the record in this leadership, although every fetch of it up to a
    later one is in the log.
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
            and _held_back(leadership, replica_id, operation.base_offset)
            and follower.last_fetch_us > operation.completed_us + LOG_ORDER_SLACK_US
            and follower.chain_end_us > end.time_us
        ):
            return True
    return False


# --- bookkeeping -----------------------------------------------------------------------------------------------------


def _new_leadership(state: State) -> Leadership:
    return Leadership(state.context.broker_id, state.context.rules, state.context.lag_time_max_us)


def _leadership(state: State) -> Leadership:
    """The current leadership; one whose start is not in the log begins with the first thing that needs it."""
    if state.leadership is None:
        state.leadership = _new_leadership(state)
    return state.leadership


def _note_replicas(state: State) -> None:
    leadership = state.leadership
    if leadership is not None:
        seen = len(set(leadership.followers) | set(leadership.isr or ()) | {leadership.broker_id})
        state.replicas_seen = max(state.replicas_seen, seen)


def _drop_older(state: State, before_us: int) -> None:
    """Operations of a leadership whose start is not in the log, and that a new one has replaced."""
    still: list[PartitionOutcome] = []
    for operation in state.waiting:
        if operation.completed_us < before_us:
            operation.missing = o.NO_LEADERSHIP
            state.satisfied.append(operation)
        else:
            still.append(operation)
    state.waiting = still


def _release(state: State, before_us: int | None) -> Iterable[PartitionOutcome]:
    """Give the finished operations whose required offset has settled; all of them for None."""
    if not state.satisfied:
        return ()
    ready: list[PartitionOutcome] = []
    still: list[PartitionOutcome] = []
    for operation in state.satisfied:
        if before_us is None or (operation.highest_us or operation.completed_us) <= before_us:
            if operation.base_offset is not None:
                logged, derived = state.required.of(operation.base_offset, operation.handled_us)
                operation.required_offset_logged, operation.required_offset_derived = logged, derived
                operation.awaiting_logged = state.required.last_awaited(operation.required_offset)
                if before_us is not None and derived is None and len(state.satisfied) < 1000:
                    still.append(operation)  # nothing followed it yet
                    continue
            ready.append(operation)
        else:
            still.append(operation)
    state.satisfied = still
    if before_us is not None and not still:
        state.required.forget_before(before_us)
    return ready
