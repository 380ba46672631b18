"""Why a new leader did not have what was committed: the chain that led to its shorter log."""

from __future__ import annotations

from typing import NamedTuple

from pipelines.rules.history import PartitionHistory
from pipelines.rules.known_bugs import bugs_of
from pipelines.rules.leader_epoch import Epoch
from pipelines.rules.proofs.unclean import UNCLEAN_ELECTION, elected_in_sync, unclean_election
from pipelines.rules.rule import Settings
from schemas import audit_facts as a
from schemas.audit_facts import Fact

TRUNCATED_TO_HIGH_WATERMARK = "truncated_to_high_watermark"
TRUNCATED = "truncated"
SHORTER_LOG = "shorter_log"
LOSS = "committed-data-lost"
KAFKA_1211 = "KAFKA-1211"


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


def cause_of(
    history: PartitionHistory, settings: Settings, lost_by: Epoch, offset_start: int, offset_end: int
) -> Cause:
    """The cause of a loss.

    Args:
        lost_by: the first epoch that does not have the records.
        offset_start: where it starts, as far as known.
        offset_end: end of what is lost, exclusive.
    """
    unclean = unclean_election(history, lost_by)
    if unclean is not None:
        why = unclean.why(settings.unclean_allowed(unclean.leader))
        text = f"Broker {unclean.leader} was elected in epoch {lost_by.number} {unclean.instead_of}: an unclean "
        return Cause(UNCLEAN_ELECTION, f"{text}election, {why}.", unclean.facts)
    leader = lost_by.leader
    if leader is None:
        return Cause(SHORTER_LOG, "Why the new leader's log was shorter cannot be shown from these logs.", ())
    truncation = _truncation(history, lost_by, leader, offset_start, offset_end)
    named = lost_by.named.get(leader)
    elected_by = (named,) if named is not None else ()
    elected_text = f"; it was elected in epoch {lost_by.number}, at {offset_start}."
    if truncation is None:
        in_sync = elected_in_sync(history, lost_by)
        how = ", though it was elected from the ISR" if in_sync else "; how it was elected cannot be shown"
        return Cause(SHORTER_LOG, f"Broker {leader}'s log ended at {offset_start}{how}.", elected_by)
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
        # Later ones do so only where they know no epoch to ask for.
        bugs = {bug.jira for bug in bugs_of(LOSS, settings.version(leader, truncation.time_us))}
        known_bug = KAFKA_1211 if KAFKA_1211 in bugs else None
        return Cause(TRUNCATED_TO_HIGH_WATERMARK, text, (*lines, *elected_by), known_bug)
    text = f"Broker {leader} truncated to {truncation.offset}{followed}{elected_text}"
    return Cause(TRUNCATED, text, (*lines, *elected_by))


def _truncation(
    history: PartitionHistory, lost_by: Epoch, leader: int, offset_start: int, offset_end: int
) -> Fact | None:
    """The leader's last truncation, in an earlier epoch than its own, that cut into the range; the replayed one."""
    truncations = [
        fact
        for fact in history.facts[a.TRUNCATION]
        if fact.name == "replayed"
        and fact.broker_id == leader
        and fact.offset is not None
        and fact.offset <= offset_end
        and fact.offset >= offset_start
        and (fact.leader_epoch is None or fact.leader_epoch < lost_by.number)
    ]
    return max(truncations, key=lambda fact: (fact.leader_epoch or 0, fact.time_us), default=None)
