"""The replay kernel: ``step(state, event) -> outcomes``, for one partition on the one broker that leads it.

Pure: no Spark, no I/O. It folds what a leader logged, in the order of `Event.time_us`, and answers for every delayed
produce when Kafka's rules let it be answered, and which replica it waited for. Delayed fetches span partitions, so they
are replayed by connection (`pipelines.replay.sessions`); what can wake them is given here, as `Wake`.

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

from pipelines.base.instants import TICK_US
from pipelines.kafka.errors import NONE, NOT_ENOUGH_REPLICAS_AFTER_APPEND, NOT_LEADER_OR_FOLLOWER, REQUEST_TIMED_OUT
from pipelines.replay import outcome as o
from pipelines.replay.completion import advance, close, expire
from pipelines.replay.evidence import LOG_ORDER_SLACK_US, acked_before_commit, why_open
from pipelines.replay.outcome import PartitionOutcome
from pipelines.replay.required import Marker
from pipelines.replay.state import State, current_leadership, new_leadership, note_replicas
from pipelines.replay.timer import expiry_interval_us
from pipelines.replay.wakes import Wake
from schemas import events as e
from schemas.events import Event


def step(state: State, event: Event) -> Iterable[PartitionOutcome | Wake]:
    """Fold one event; give the operations that are finished for good, and what may have completed fetches.

    Raises:
        ValueError: the event lies before the one that was folded last.
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
    """The log ends here: give what is left, unobservable where its end was not seen."""
    if state.last is not None:
        expire(state, state.last.time_us)
    for operation in state.waiting:
        operation.missing = operation.missing or why_open(state, operation)
        state.decided.add(operation)
    state.waiting = []
    if state.last is not None:
        state.wakes += state.log.ends(state.last)
    return [*state.decided.drain(state.required), *state.wakes]


def _leader_start(state: State, event: Event) -> None:
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


def _leader_end(state: State, event: Event) -> None:
    state.wakes += state.log.ended(event)
    if state.leadership is None or not state.leads:
        state.leads = False
        state.leadership = None
        return
    for operation in state.waiting:
        operation.proven_early = acked_before_commit(state.leadership, operation, event)
        error_code = event.error_code or NOT_LEADER_OR_FOLLOWER
        close(state, operation, event, cause=o.LEADERSHIP_LOST, error_code=error_code)
    state.waiting = []
    state.leads = False
    state.leadership = None


def _isr_update(state: State, event: Event) -> None:
    if state.leads is False:
        return
    leadership = current_leadership(state)
    state.assigned = event.replicas or state.assigned
    removed = leadership.commit_isr(event)
    note_replicas(state)
    advance(state, event, removed=removed)


def _isr_proposal(state: State, event: Event) -> None:
    """A shrink line names the ISR it starts from: where no line told the ISR before, this one does."""
    if state.leads is False or event.isr is None:
        return
    leadership = current_leadership(state)
    if leadership.isr is None:
        leadership.isr = frozenset(event.isr)
        note_replicas(state)


def _roll(state: State, event: Event) -> None:
    state.log.rolled(event, state.leads is not False, state.context.rules.roll_moves_high_watermark)


def _replicated(state: State, event: Event) -> None:
    if state.leads:
        return
    state.wakes += state.replica.answered(event)


def _pass_on(state: State, event: Event) -> None:
    """A wake of the event's name, whoever leads: a follower serves consumers from the tier, too."""
    state.wakes.append(
        Wake(event.kind, event.offset, appended_lowest_us=event.earliest_us, appended_highest_us=event.time_us)
    )


def _fetch(state: State, event: Event) -> None:
    if event.offset is not None and not event.error_code and not event.diverging:
        state.required.boundary(event.offset)
    # A read error is answered at once and moves nobody; an error after a wait came later than the read.
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


def _initial_status(state: State, event: Event) -> None:
    if event.offset is None or event.required_offset is None:
        return
    state.required.logged(event.offset, event.required_offset)
    if not state.context.rules.logs_responses and all(base != event.offset for _, base in state.logged_appends):
        state.logged_appends.append((event.time_us, event.offset))


def _progress(state: State, event: Event) -> None:
    if event.required_offset is not None:
        state.required.awaited(event.required_offset, event.isr or ())


def _produce(state: State, event: Event) -> None:
    if event.error_code is None and event.offset is None:
        event = event._replace(offset=_logged_base_offset(state, event))
    appended = event.error_code in (NONE, REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND, None)
    base = event.offset if event.offset is not None and event.offset >= 0 else None
    # Counted: a coordinator's records, or a produce whose response the log does not have.
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
            state.required.append(base, event.earliest_us, _latest_us(state, event))
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
        operation.missing = o.NO_BASE_OFFSET  # where it was put tells when it may be answered, not when it must
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


def _latest_us(state: State, event: Event) -> int:
    """When a produce was appended at the latest: one of a transaction may have waited to be verified."""
    may_wait = event.producer is not None and state.context.rules.verifies_transactions
    return max(event.time_us, event.completed_us or 0) if may_wait else event.time_us


def _append(state: State, event: Event) -> tuple[Event, bool]:
    """The request with the instants between which its records were appended; and whether that is after it was handled.

    A coordinator with threads of its own gathers records, and one of them appends when the timer has fired, or what is
    queued has been done; so its request is handled before (``CoordinatorRuntime.append``,
    group.coordinator.append.linger.ms, share.coordinator.append.linger.ms). No line tells how busy that thread is.
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


def _logged_base_offset(state: State, event: Event) -> int | None:
    """Where the records of a produce without a response went, if a TRACE line of that time tells it."""
    while state.logged_appends and state.logged_appends[0][0] < event.earliest_us - TICK_US:
        state.logged_appends.popleft()
    if state.logged_appends and state.logged_appends[0][0] <= event.time_us + TICK_US:
        return state.logged_appends.popleft()[1]
    return None


def _is_duplicate(state: State, base_offset: int) -> bool:
    """A retry that was answered with the offset of what it repeats: nothing was appended (``ProducerStateManager``)."""
    leadership = state.leadership
    return state.required.knows(base_offset) or (leadership is not None and base_offset < leadership.start_offset)


def _answer_failure(state: State, operation: PartitionOutcome, appended: bool, event: Event) -> None:
    """No base offset: either it failed before the append and did not wait, or the answer hides where it went."""
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
    e.LEADER_START: _leader_start,
    e.LEADER_END: _leader_end,
    e.ISR_UPDATE: _isr_update,
    e.ISR_PROPOSAL: _isr_proposal,
    e.ROLL: _roll,
    e.FETCH: _fetch,
    e.INITIAL_STATUS: _initial_status,
    e.PRODUCE: _produce,
    e.PROGRESS: _progress,
    e.LOCAL_START: _pass_on,
    e.TIER_FAILED: _pass_on,
    e.REPLICATED: _replicated,
}


def _drop_older(state: State, before_us: int) -> None:
    """Operations of a leadership whose start is not in the log, and that a new one has replaced."""
    still: list[PartitionOutcome] = []
    for operation in state.waiting:
        if operation.completed_us < before_us:
            operation.missing = o.NO_LEADERSHIP
            state.decided.add(operation)
        else:
            still.append(operation)
    state.waiting = still
