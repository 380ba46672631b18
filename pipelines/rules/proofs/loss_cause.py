"""Why a new leader did not have what was committed: the chain that led to its shorter log."""

from __future__ import annotations

from typing import NamedTuple

from pipelines.rules.history import Epoch, PartitionHistory, State
from schemas import audit_facts as a
from schemas.audit_facts import Fact

UNCLEAN_ELECTION = "unclean_election"
TRUNCATED_TO_HIGH_WATERMARK = "truncated_to_high_watermark"
TRUNCATED = "truncated"
SHORTER_LOG = "shorter_log"


class Cause(NamedTuple):
    """A cause.

    Attributes:
        name: one of the names above.
        text: the chain in a sentence or two.
        facts: lines that show it.
        known_bug: JIRA, where the chain is that bug's.
    """

    name: str
    text: str
    facts: tuple[Fact, ...]
    known_bug: str | None = None


def cause_of(history: PartitionHistory, lost_by: Epoch, offset_start: int, offset_end: int) -> Cause:
    """The cause of a loss.

    Args:
        lost_by: the first epoch that does not have the records.
        offset_start: where it starts, as far as known.
        offset_end: end of what is lost, exclusive.
    """
    elected = elected_outside_isr(history, lost_by)
    if elected is not None:
        before, after = elected
        isr = ", ".join(map(str, sorted(before.isr)))
        text = (
            f"Broker {after.leader} was elected in epoch {after.leader_epoch} though the ISR was [{isr}]: an unclean "
            "election, which the configuration allowed (unclean.leader.election.enable)."
        )
        return Cause(UNCLEAN_ELECTION, text, (before.fact, after.fact))
    leader = lost_by.leader
    if leader is None:
        return Cause(SHORTER_LOG, "Why the new leader's log was shorter cannot be shown from these logs.", ())
    truncation = _truncation(history, lost_by, leader, offset_start, offset_end)
    named = lost_by.named.get(leader)
    elected_by = (named,) if named is not None else ()
    elected_text = f"; it was elected in epoch {lost_by.number}, at {offset_start}."
    if truncation is None:
        text = f"Broker {leader}'s log ended at {offset_start}, though it was elected from the ISR."
        return Cause(SHORTER_LOG, text, elected_by)
    epoch = "" if truncation.leader_epoch is None else f" in epoch {truncation.leader_epoch}"
    followed = "" if truncation.leader is None else f", on becoming follower of broker {truncation.leader}{epoch}"
    # The lines of the truncation itself, which the replayed one only explains.
    lines = tuple(
        fact
        for fact in history.facts[a.TRUNCATION]
        if fact.name != "replayed" and fact.broker_id == leader and fact.offset == truncation.offset
    )[:2]
    if truncation.detail == "to_high_watermark":
        text = f"Broker {leader} truncated to its own high watermark {truncation.offset}{followed}{elected_text}"
        return Cause(TRUNCATED_TO_HIGH_WATERMARK, text, (*lines, *elected_by), "KAFKA-1211")
    text = f"Broker {leader} truncated to {truncation.offset}{followed}{elected_text}"
    return Cause(TRUNCATED, text, (*lines, *elected_by))


def elected_outside_isr(history: PartitionHistory, epoch: Epoch) -> tuple[State, State] | None:
    """The step at which the leader of an epoch was elected from outside the ISR, if it was."""
    for before, after in history.steps():
        if after.leader_epoch == epoch.number and is_unclean(before, after):
            return before, after
    return None


def is_unclean(before: State, after: State) -> bool:
    """A new leader that the ISR of the state directly before does not name.

    Left aside: an empty ISR, since a leader may come from the eligible leader replicas then (KIP-966); and a change of
    the assigned replicas, since the controller may add a replica to the ISR, complete a reassignment and elect the
    replica in one change (``PartitionChangeBuilder``, ``PartitionReassignmentReplicas``).
    """
    if after.leader is None or after.leader < 0 or after.leader_epoch <= before.leader_epoch:
        return False
    replicas = (before.fact.replicas, after.fact.replicas)
    if None not in replicas and set(replicas[0] or ()) != set(replicas[1] or ()):
        return False
    # An unclean leader is alone in its ISR: one that comes with others has joined it in the same change.
    return bool(before.isr) and after.leader not in before.isr and after.isr == {after.leader}


def _truncation(
    history: PartitionHistory, lost_by: Epoch, leader: int, offset_start: int, offset_end: int
) -> Fact | None:
    """The leader's last truncation, in an earlier epoch than its own, that cut into the range; the replayed one."""
    found = [
        fact
        for fact in history.facts[a.TRUNCATION]
        if fact.name == "replayed"
        and fact.broker_id == leader
        and fact.offset is not None
        and fact.offset <= offset_end
        and fact.offset >= offset_start
        and (fact.leader_epoch is None or fact.leader_epoch < lost_by.number)
    ]
    return max(found, key=lambda fact: (fact.leader_epoch or 0, fact.time_us), default=None)
