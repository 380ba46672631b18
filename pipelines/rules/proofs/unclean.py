"""Unclean elections: of a leader from outside the ISR, or as the controller itself marks them."""

from __future__ import annotations

from typing import NamedTuple

from highwater.pipelines.rules.history import FactHistory
from highwater.pipelines.rules.leader_epoch import CommittedState, Epoch
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact

UNCLEAN_ELECTION = "unclean_election"


class Unclean(NamedTuple):
    """An unclean election."""

    leader: int  #: the elected broker
    isr: frozenset[int] | None  #: the ISR before; None if only the controller's mark is known
    asked_for: bool  #: a tool's request for an election was answered at that moment
    facts: tuple[Fact, ...]  #: lines and records that show it

    @property
    def elected(self) -> str:
        """Return a phrase: the new leader, that it was out of sync, and the ISR."""
        known = "" if self.isr is None else f" (ISR {sorted(self.isr)})"
        return f"out-of-sync broker {self.leader} became leader{known}"

    def told(self, epoch: int, allowed: bool | None) -> str:
        """Return a sentence about the election, with the setting, person or tool that caused it.

        Args:
            epoch: leader epoch of the elected broker.
            allowed: unclean.leader.election.enable of the partition. None if no line shows it.
        """
        if self.asked_for:
            asked = "A person or tool ran an unclean election (ELECT_LEADERS, kafka-leader-election.sh)"
            return f"{asked}: {self.elected} in epoch {epoch}."
        unclean = f"Unclean election: {self.elected} in epoch {epoch}."
        if allowed is None:
            return f"{unclean} The logs do not show if unclean.leader.election.enable, a person or a tool caused it."
        if allowed:
            return f"{unclean} unclean.leader.election.enable=true allowed it."
        return f"{unclean} A person or tool ran it, or it was the last known leader: the setting does not allow it."


def unclean_election(history: FactHistory, epoch: Epoch) -> Unclean | None:
    """Return the unclean election that began an epoch, by the ISR before or a controller line. None if clean."""
    stepped = next((step for step in history.steps_to(epoch.number) if is_unclean(*step)), None)
    marks = [
        fact
        for fact in (*history.facts[a.METADATA], *history.facts[a.ELECTION])
        if fact.leader_epoch == epoch.number
        and fact.leader is not None
        and (_is_mark(fact) if fact.kind == a.ELECTION else _is_recovery_start(history, fact))
        and history.incarnation(fact.time_us) == history.incarnation(epoch.first_us or fact.time_us)
    ]
    asked_for = any(fact.kind == a.ELECTION and fact.name is not None for fact in marks)
    if stepped is not None:
        before, after = stepped
        assert after.leader is not None
        return Unclean(after.leader, before.isr, asked_for, (before.fact, after.fact, *marks[:2]))
    if not marks:
        return None
    assert marks[0].leader is not None
    return Unclean(marks[0].leader, None, asked_for, tuple(marks[:4]))


def _is_mark(fact: Fact) -> bool:
    """Return True for a controller's line of an unclean election, unless it is the end of a reassignment.

    The controller calls any change unclean if the new leader was not in the ISR before, even if the same change added
    it (``PartitionRegistration.maybeLogPartitionChange``).
    """
    reassigned = "eplicas: " in (fact.detail or "")  # replicas, addingReplicas, removingReplicas: those that changed
    return not reassigned and (fact.isr is None or set(fact.isr) == {fact.leader})


def _is_recovery_start(history: FactHistory, fact: Fact) -> bool:
    """Return True if a record marks its leader as recovering (KIP-704), and the record before did not."""
    if fact.detail != a.RECOVERING:
        return False
    earlier = [
        other
        for other in history.facts[a.METADATA]
        if (other.partition_epoch or 0) < (fact.partition_epoch or 0)
        and history.incarnation(other.time_us) == history.incarnation(fact.time_us)
    ]
    before = max(earlier, key=lambda other: other.partition_epoch or 0, default=None)
    return before is None or before.detail != a.RECOVERING


def is_unclean(before: CommittedState, after: CommittedState) -> bool:
    """Return True if the new leader is not in the ISR of the state directly before.

    Two cases are excluded. If the ISR is empty, a leader may come from the eligible leader replicas (KIP-966). If the
    assigned replicas change, one change may add a replica to the ISR, complete a reassignment and elect the replica
    (``PartitionChangeBuilder``, ``PartitionReassignmentReplicas``).
    """
    if after.leader is None or after.leader < 0 or after.leader_epoch <= before.leader_epoch:
        return False
    replicas = (before.fact.replicas, after.fact.replicas)
    if None not in replicas and set(replicas[0] or ()) != set(replicas[1] or ()):
        return False
    # An unclean leader is alone in its ISR: one that comes with others has joined it in the same change.
    return bool(before.isr) and after.leader not in before.isr and after.isr == {after.leader}


def in_sync_before(history: FactHistory, epoch: Epoch, leader: int) -> CommittedState | None:
    """Return the state directly before an epoch's election. None if unknown, or if its ISR lacks the leader.

    Steps within the epoch prove nothing: a leader is in its own ISR.
    """
    return next(
        (
            before
            for before, after in history.steps_to(epoch.number)
            if before.leader_epoch < epoch.number and after.leader == leader and leader in before.isr
        ),
        None,
    )
