"""Elections of a leader that was not in sync."""

from __future__ import annotations

from pipelines.rules.history import PartitionHistory
from pipelines.rules.leader_epoch import Epoch
from pipelines.rules.proofs.unclean import UNCLEAN_ELECTION, Unclean, unclean_election
from pipelines.rules.rule import OBSERVATION, Case, Ref, Rule, Settings, of_history

RULE_ID = "unclean-election"


def _judge(history: PartitionHistory, settings: Settings) -> tuple[int, list[Case]]:
    stepped = {after.leader_epoch for before, after in history.steps() if after.leader_epoch > before.leader_epoch}
    checked, cases = 0, []
    for _, epoch in history.epochs():
        elected = unclean_election(history, epoch)
        checked += epoch.number in stepped or elected is not None
        if elected is not None:
            cases.append(_case(settings, epoch, elected))
    return checked, cases


def _case(settings: Settings, epoch: Epoch, elected: Unclean) -> Case:
    start = epoch.start
    at = "" if start is None else f" Its log ended at offset {start[0]}."
    return Case(
        RULE_ID,
        OBSERVATION,
        f"Broker {elected.leader} was elected leader of epoch {epoch.number} {elected.instead_of}, "
        f"{elected.why(settings.unclean_allowed(elected.leader))}.{at}",
        tuple(Ref.of(fact) for fact in (*elected.facts, *([start[1]] if start is not None else []))),
        leader_epoch=epoch.number,
        offset_start=None if start is None else start[0],
        time_us=elected.facts[0].time_us if elected.isr is None else elected.facts[1].time_us,
        brokers=(elected.leader, *(elected.isr or ())),
        cause=UNCLEAN_ELECTION,
    )


RULE = Rule(
    rule_id=RULE_ID,
    guarantee="A leader comes from the in-sync replicas, unless unclean elections are allowed.",
    source="Kafka documentation, unclean leader election; Election.leaderForOffline, PartitionChangeBuilder",
    versions="all",
    tier="T0",
    needs="leader and ISR with their partition epoch (zkVersion): state-change.log, controller.log, or KRaft metadata",
    proof=(
        "The ISR before is that of the directly preceding partition epoch, so that no change can be missing between; "
        "or the controller itself marks the election. An empty ISR alone is left aside, since a leader may come from "
        "the eligible leader replicas (KIP-966)."
    ),
    make=of_history(_judge),
    shows=((OBSERVATION, "an election from outside the ISR; what it cost is committed-data-lost"),),
)
