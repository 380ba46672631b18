"""Elections of a leader that was not in sync."""

from __future__ import annotations

from pipelines.rules.history import PartitionHistory
from pipelines.rules.proofs.loss_cause import is_unclean
from pipelines.rules.rule import OBSERVATION, Case, Ref, Rule, Settings, of_history

RULE_ID = "unclean-election"


def _judge(history: PartitionHistory, settings: Settings) -> tuple[int, list[Case]]:
    checked, cases = 0, []
    for before, after in history.steps():
        if after.leader is None or after.leader < 0 or after.leader_epoch <= before.leader_epoch:
            continue
        checked += 1
        if not is_unclean(before, after):
            continue
        start = history.epoch(after.leader_epoch, after.fact.time_us).start
        at = "" if start is None else f" Its log ended at offset {start[0]}."
        facts = [before.fact, after.fact, *([start[1]] if start is not None else [])]
        isr = ", ".join(map(str, sorted(before.isr)))
        cases.append(
            Case(
                RULE_ID,
                OBSERVATION,
                f"Broker {after.leader} was elected leader of epoch {after.leader_epoch} from outside the ISR [{isr}]"
                f"{_allowed(settings.unclean_allowed(after.leader))}.{at}",
                tuple(Ref.of(fact) for fact in facts),
                leader_epoch=after.leader_epoch,
                offset_start=None if start is None else start[0],
                time_us=after.fact.time_us,
                brokers=(after.leader, *before.isr),
                cause="unclean_election",
            )
        )
    return checked, cases


def _allowed(setting: bool | None) -> str:
    if setting is None:
        return ""
    allowed = "allows" if setting else "does not allow"
    return f"; unclean.leader.election.enable {allowed} it, as that broker logged it last"


RULE = Rule(
    rule_id=RULE_ID,
    guarantee="A leader comes from the in-sync replicas, unless unclean elections are allowed.",
    source="Kafka documentation, unclean leader election; Election.leaderForOffline, PartitionChangeBuilder",
    versions="all",
    tier="T0",
    needs="leader and ISR with their partition epoch (zkVersion): state-change.log, controller.log, or KRaft metadata",
    proof=(
        "The ISR before is that of the directly preceding partition epoch, so that no change can be missing between; "
        "an empty ISR is left aside, since a leader may come from the eligible leader replicas (KIP-966)."
    ),
    kinds=frozenset(),
    make=of_history(_judge),
    shows=((OBSERVATION, "an election from outside the ISR; what it cost is committed-data-lost"),),
    example="unclean28: both rounds, sessions-1 epoch 3 and 4",
)
