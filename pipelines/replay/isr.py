"""The ISR of one leadership as Kafka's rules require it, and what the leader and the controller did.

Pure. `IsrWatch` folds the events of the kernel in the same order, and the leader's own lines about its ISR
(`pipelines.replay.isr_events`). Rules (kafka-rules section 1.3):

* *shrink* (``Partition.maybeShrinkIsr``, ``isFollowerOutOfSync``): a task runs once per period
  (`isr_evidence.evaluation_period_us`), at an unknown time. It drops members of the ISR that were last caught up longer
  than replica.lag.time.max.ms ago. Since 2.1 (KAFKA-7152) they must also be behind the leader's log end. So the rule
  expects a shrink between that moment and one period later;
* *expansion* (``Partition.maybeExpandIsr``, ``isFollowerInSync``): a fetch of a replica outside of the ISR makes the
  leader propose it. The replica must have reached the high watermark and, since 2.0.1 (KAFKA-7128), the start of the
  leader's epoch. Since 3.3 (KIP-841) it must be neither fenced nor shutting down;
* one change is under way at a time (since 2.7, KIP-497); a refused one is tried again.

A change is the controller's if no rule of the leader expects it and no line of the leader shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from highwater.pipelines.base.instants import NEVER_US, TICK_US
from highwater.pipelines.kafka.context import Context
from highwater.pipelines.replay import isr_outcome as o
from highwater.pipelines.replay.isr_events import ISR_EXPAND, ISR_FROM, ISR_REFUSED, ISR_SHRINK
from highwater.pipelines.replay.isr_evidence import FENCED, SHUTTING_DOWN, IsrEvidence, commits_isr_unseen
from highwater.pipelines.replay.isr_judge import IsrJudge
from highwater.pipelines.replay.isr_outcome import IsrOutcome
from highwater.pipelines.replay.isr_rules import Expected, IsrRules
from highwater.schemas import events as e
from highwater.schemas.events import Event

#: A change of the ISR can be logged before the fetch that caused it has been handled: how long to wait for that fetch.
_SETTLE_US = 5_000_000
_NO_REPLICAS: frozenset[int] = frozenset()


class IsrWatch:
    """Replay of the ISR of a partition on one broker, from the first event to `finish`.

    Args:
        context: broker, version, replica.lag.time.max.ms and min.insync.replicas.
        evidence: facts of the broker's whole log.
    """

    def __init__(self, context: Context, evidence: IsrEvidence) -> None:
        self._context = context
        self.evidence = evidence
        self._rules = IsrRules(context, self.evidence)
        self._leads: bool | None = None
        self._leader_epoch: int | None = None
        self._since_us = 0
        self._last_us = 0
        self._last: Event | None = None
        #: Out of sync, and still in the ISR: (from, certainly from).
        self._overdue: dict[int, tuple[int, int]] = {}
        self._joining: dict[int, Expected] = {}
        self._in_flight: dict[int, IsrOutcome] = {}
        self._settling: dict[int, IsrOutcome] = {}
        period_us = self._rules.period_us
        self._judge = IsrJudge(self.evidence, period_us, asks_controller=context.rules.maximal_isr)
        self._due_us = 0
        self._unseen = commits_isr_unseen(context.rules.version)
        self._done: list[IsrOutcome] = []

    def observe(self, event: Event) -> Iterable[IsrOutcome]:
        """Apply one event and return the ISR changes that are decided. Events of other kinds are ignored."""
        handler = _HANDLERS.get(event.kind)
        if handler is None or event == self._last:  # the same line in two overlapping files
            return ()
        self._last = event
        if event.time_us > self._due_us and self._leads is not False:
            self._look(event.time_us)
        if self._settling:
            self._settle(event)
        if self._unseen and self._in_flight:
            self._assume(event.time_us)
        handler(self, event)
        self._last_us = event.time_us
        if self._done:
            given, self._done = self._done, []
            return given
        return ()

    def finish(self) -> Iterable[IsrOutcome]:
        """End the replay and return the remaining ISR changes."""
        self._end_leadership(o.LOG_ENDS)
        given, self._done = self._done, []
        return given

    def extend_chains(self, ends_us: Mapping[str, int]) -> None:
        """Set a later end for the fetches of each connection: arrival of its last fetch, us, by connection."""
        self._rules.extend_chains(ends_us)

    # State that the leader received, and changes that it proposed.

    def _start_leadership(self, event: Event) -> None:
        newly_leader = not self._leads
        if newly_leader:
            self._end_leadership(o.LEADERSHIP_ENDED)
        else:
            if event.isr is not None:
                self._commit(event)
            self._drop_expectations(o.LEADERSHIP_ENDED)
        self._leads = True
        self._leader_epoch = event.leader_epoch
        self._since_us = event.time_us
        self._rules.start_epoch(event, newly_leader)
        self._due_us = event.time_us + self._context.lag_time_max_us

    def _stop_leading(self, event: Event) -> None:
        self._end_leadership(o.LEADERSHIP_ENDED)
        self._leads = False

    def _apply_update(self, event: Event) -> None:
        if self._leads is False or event.isr is None:
            return
        self._rules.commit(event)
        self._commit(event)
        self._due_us = 0

    def _take_first_isr(self, event: Event) -> None:
        """Set the ISR from a line that shows the ISR before a change, if no earlier line showed the ISR."""
        if self._leads is not False and event.isr is not None and self._rules.isr is None:
            self._rules.isr = frozenset(event.isr)
            self._due_us = 0

    def _apply_shrink(self, event: Event) -> None:
        outcome = self._note_proposal(event, o.SHRINK)
        if outcome is None:
            return
        self._overdue.pop(outcome.replica_id, None)
        self._rules.predict_shrink(outcome, event.time_us, self._judge.refused_us, self._since_us)
        self._judge.explain(outcome)

    def _apply_expansion(self, event: Event) -> None:
        outcome = self._note_proposal(event, o.EXPAND)
        if outcome is not None:
            self._await_fetch(outcome)

    def _note_proposal(self, event: Event, change: str) -> IsrOutcome | None:
        """Record the change that a leader's line proposes. None for the second line of the same proposal."""
        replica_id = event.replica_id
        if self._leads is False or replica_id is None or event.isr is None:
            return None
        after = tuple(sorted(event.isr))
        known = self._in_flight.get(replica_id)
        if known is not None and known.change == change and known.isr_after == after:
            if known.end_offset_logged is None:
                _note_logged(known, event)
            return None
        if known is not None:
            self._close_change(replica_id, event.time_us)
        together = [outcome for outcome in self._in_flight.values() if outcome.proposed_us == event.time_us]
        before = together[0].isr_before if together else tuple(self._rules.isr or ())
        if self._rules.isr is None:
            self._rules.isr = frozenset(event.isr) | {replica_id} if change == o.SHRINK else frozenset(event.isr)
        if change == o.SHRINK and replica_id not in before:
            before = (*before, *(({replica_id, *event.isr}) - set(before)))
        outcome = self._make_outcome(change, replica_id, before, after)
        outcome.proposed_us = event.time_us
        _note_logged(outcome, event)
        self._in_flight[replica_id] = outcome
        if self._unseen:
            self._rules.isr = frozenset(event.isr)
        return outcome

    def _apply_refusal(self, event: Event) -> None:
        asked = None if event.isr is None else tuple(sorted(event.isr))
        self._judge.refused_us = event.time_us
        for replica_id, outcome in list(self._in_flight.items()):
            if asked is None or outcome.isr_after == asked:
                if self._unseen:
                    self._rules.isr = frozenset(outcome.isr_before)
                outcome.reason = outcome.reason or o.REFUSED
                self._close_change(replica_id, event.time_us)
        self._due_us = 0

    def _commit(self, event: Event) -> None:
        """Replace the committed ISR by the event's, and record who changed it."""
        after = frozenset(event.isr or ())
        before = self._rules.isr
        for replica_id, outcome in list(self._in_flight.items()):
            if (replica_id in after) == (outcome.change == o.EXPAND):
                outcome.committed_us = event.time_us
                self._close_change(replica_id, event.time_us)
                before = None if before is None else before ^ ({replica_id} & (before ^ after))
        whole = tuple(self._rules.isr or ())
        for replica_id in sorted((before or after) - after):
            self._note_left(replica_id, whole, event)
        for replica_id in sorted(after - (before or after)):
            self._note_joined(replica_id, whole, event)
        for replica_id in list(self._overdue):
            if replica_id not in after:
                del self._overdue[replica_id]
        self._rules.isr = after

    def _note_left(self, replica_id: int, before: tuple[int, ...], event: Event) -> None:
        if replica_id in self._settling:
            self._judge_expansion(self._settling[replica_id])
        outcome = self._make_outcome(o.SHRINK, replica_id, before, event.isr or ())
        outcome.committed_us = event.time_us
        self._joining[replica_id] = Expected()
        self._rules.stands_by(self._joining[replica_id], replica_id, event.time_us, frozenset(event.isr or ()))
        if event.kind == e.LEADER_START or event.controller:
            self._blame_controller(outcome, event)
        else:
            self._rules.predict_shrink(outcome, event.time_us, self._judge.refused_us, self._since_us)
            self._judge.explain(outcome)
        self._done.append(outcome)

    def _note_joined(self, replica_id: int, before: tuple[int, ...], event: Event) -> None:
        outcome = self._make_outcome(o.EXPAND, replica_id, before, event.isr or ())
        outcome.committed_us = event.time_us
        if event.kind == e.LEADER_START and replica_id not in self._joining:
            self._blame_controller(outcome, event)
            self._done.append(outcome)
        else:
            self._await_fetch(outcome)

    def _await_fetch(self, outcome: IsrOutcome) -> None:
        """Judge an expansion when the fetch that caused it has been handled: immediately, or after a later line."""
        replica_id = outcome.replica_id
        if replica_id in self._settling:
            self._judge_expansion(self._settling[replica_id])
        self._settling[replica_id] = outcome
        expected = self._joining.get(replica_id)
        if expected is not None and expected.highest_us is not None:
            self._judge_expansion(outcome)

    def _blame_controller(self, outcome: IsrOutcome, event: Event) -> None:
        outcome.made_by, outcome.class_ = o.CONTROLLER, o.OUTSIDE_RULE
        standing = self.evidence.standing_at(outcome.replica_id, event.time_us)
        by_standing = {FENCED: o.CONTROLLER_FENCED, SHUTTING_DOWN: o.CONTROLLER_SHUTDOWN}
        otherwise = o.CONTROLLER_NEW_EPOCH if event.kind == e.LEADER_START else o.CONTROLLER_OTHER
        outcome.reason = by_standing.get(standing or "", otherwise)

    # Events of followers and producers.

    def _apply_fetch(self, event: Event) -> None:
        replica_id = event.replica_id
        if self._leads is False or replica_id is None or not self._rules.fetched(event):
            return
        isr = self._rules.isr
        if isr is None:
            return
        if replica_id not in isr:
            expected = self._joining.get(replica_id)
            if expected is None:
                expected = self._joining[replica_id] = Expected()
            if expected.highest_us is None:
                self._rules.may_join(expected, replica_id, event, isr)
        elif replica_id in self._overdue:
            asked = self._rules.out_of_sync(replica_id, event.time_us)
            if asked is None or asked[1] >= event.time_us:
                lowest_us, certain_us = self._overdue.pop(replica_id)
                self._due_us = 0
                self._note_missed(o.SHRINK, replica_id, lowest_us, certain_us, event.earliest_us, None)

    def _apply_append(self, event: Event) -> None:
        if self._leads is not False and self._rules.appended(event):
            self._due_us = 0

    # The evaluation.

    def _look(self, now_us: int) -> None:
        """Find ISR members that are out of sync at `now_us`, and set the time of the next check."""
        due_us = NEVER_US
        for replica_id in self._rules.isr or _NO_REPLICAS:
            if replica_id == self._context.broker_id or replica_id in self._overdue or replica_id in self._in_flight:
                continue
            asked = self._rules.out_of_sync(replica_id, now_us)
            if asked is not None and asked[0] < now_us:
                self._overdue[replica_id] = (
                    max(asked[0], self._judge.refused_us),
                    max(asked[1], self._judge.refused_us),
                )
            else:
                due_us = min(due_us, self._rules.due_us(replica_id, now_us))
        self._due_us = due_us

    def _settle(self, event: Event) -> None:
        """Judge expansions whose fetch has been seen, or can no longer be seen."""
        for replica_id, outcome in list(self._settling.items()):
            seen_us = outcome.observed_us or 0
            if event.kind == e.FETCH and event.replica_id == replica_id:
                if event.earliest_us <= seen_us + TICK_US and not event.error_code:
                    expected = self._joining.setdefault(replica_id, Expected())
                    if expected.highest_us is None:
                        self._rules.may_join(expected, replica_id, event, frozenset(outcome.isr_before))
            elif event.time_us < seen_us + _SETTLE_US:
                continue
            self._judge_expansion(outcome)

    def _assume(self, now_us: int) -> None:
        """Assume a commit after `_SETTLE_US` without a refusal, in versions that do not log commits."""
        for replica_id, outcome in list(self._in_flight.items()):
            if (outcome.proposed_us or 0) + _SETTLE_US < now_us:
                self._close_change(replica_id, now_us)

    def _judge_expansion(self, outcome: IsrOutcome) -> None:
        replica_id = outcome.replica_id
        del self._settling[replica_id]
        self._rules.predict_expansion(outcome, self._joining.get(replica_id), self._judge.refused_us, self._since_us)
        self._judge.explain(outcome)
        if replica_id not in self._in_flight:
            self._joining.pop(replica_id, None)
            if outcome.proposed_us is None and outcome.lowest_us is not None and outcome.committed_us is not None:
                self._judge.landed(outcome.lowest_us, outcome.committed_us)
            self._done.append(outcome)

    def _close_change(self, replica_id: int, time_us: int) -> None:
        """End a change in progress: committed, refused or dropped."""
        outcome = self._in_flight.pop(replica_id)
        self._judge.landed(outcome.proposed_us or time_us, time_us)
        if replica_id in self._settling:
            return  # returned when its fetch has been seen
        if outcome.change == o.EXPAND and outcome.reason != o.REFUSED:
            self._joining.pop(replica_id, None)
        self._done.append(outcome)

    def _note_missed(
        self, change: str, replica_id: int, lowest_us: int, certain_us: int, until_us: int, reason: str | None
    ) -> None:
        """Record an ISR change that the rule required and no line shows, if the leader had time to make it.

        Args:
            lowest_us, certain_us: when the change was possibly, and certainly, required.
            until_us: when it was no longer required.
            reason: why it can no longer be seen. None if unknown.
        """
        before = tuple(self._rules.isr or ())
        leaves = change == o.SHRINK
        after = tuple(set(before) - {replica_id}) if leaves else (*before, replica_id)
        outcome = self._make_outcome(change, replica_id, before, after)
        outcome.lowest_us = lowest_us
        outcome.highest_us = certain_us + (self._rules.period_us if leaves else 0)
        if self._judge.missed(outcome, certain_us, until_us, self._in_flight.values(), reason):
            self._done.append(outcome)

    def _drop_expectations(self, reason: str) -> None:
        """Drop all expected ISR changes at a new epoch or the end of the leadership."""
        for outcome in list(self._settling.values()):
            self._judge_expansion(outcome)
        for replica_id, outcome in list(self._in_flight.items()):
            outcome.reason = outcome.reason or reason
            self._close_change(replica_id, self._last_us)
        for replica_id, (lowest_us, certain_us) in self._overdue.items():
            self._note_missed(o.SHRINK, replica_id, lowest_us, certain_us, self._last_us, reason)
        for replica_id, expected in self._joining.items():
            if expected.lowest_us is not None and expected.highest_us is not None:
                self._note_missed(o.EXPAND, replica_id, expected.lowest_us, expected.highest_us, self._last_us, reason)
        self._overdue, self._joining = {}, {}

    def _end_leadership(self, reason: str) -> None:
        self._drop_expectations(reason)
        self._rules.forget()
        self._leader_epoch = None

    def _make_outcome(self, change: str, replica_id: int, before: Iterable[int], after: Iterable[int]) -> IsrOutcome:
        return IsrOutcome(
            change,
            replica_id,
            tuple(sorted(before)),
            tuple(sorted(after)),
            self._context.lag_time_max_us,
            self._leader_epoch,
        )


def _note_logged(outcome: IsrOutcome, event: Event) -> None:
    """Copy the replica's offset, time and leader offset from the leader's line to `outcome`."""
    outcome.end_offset_logged = event.offset
    outcome.caught_up_logged_us = event.completed_us
    outcome.leader_end_offset_logged = event.required_offset


_HANDLERS: Final[Mapping[str, Callable[[IsrWatch, Event], None]]] = {
    e.LEADER_START: IsrWatch._start_leadership,
    e.LEADER_END: IsrWatch._stop_leading,
    e.ISR_UPDATE: IsrWatch._apply_update,
    e.ISR_PROPOSAL: IsrWatch._take_first_isr,
    ISR_FROM: IsrWatch._take_first_isr,
    e.FETCH: IsrWatch._apply_fetch,
    e.PRODUCE: IsrWatch._apply_append,
    ISR_SHRINK: IsrWatch._apply_shrink,
    ISR_EXPAND: IsrWatch._apply_expansion,
    ISR_REFUSED: IsrWatch._apply_refusal,
}
