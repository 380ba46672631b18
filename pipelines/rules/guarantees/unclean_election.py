"""Elections of a leader that was not in sync."""

from __future__ import annotations

from pipelines.rules.history import PartitionHistory
from pipelines.rules.leader_epoch import Epoch
from pipelines.rules.proofs.unclean import UNCLEAN_ELECTION, Unclean, unclean_election
from pipelines.rules.rule import OBSERVATION, Case, Ref, Rule, Settings, of_history


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


RULE = Rule("unclean-election", make=of_history(_judge))
