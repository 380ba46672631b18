"""What rules found: a guarantee broken, records lost, an unclean election."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from pipelines.incidents.facts import Facts, Row, partition_name
from pipelines.incidents.incident import CRITICAL, MAJOR, Bug, LoggedIncident, Severity, releases_of
from pipelines.incidents.kind import kind
from pipelines.incidents.words import number

#: Rules that say that acknowledged records are gone.
_LOSS = ("committed-data-lost", "tier-segment-lost", "acked-as-duplicate-of-another-batch")


@kind(
    meaning="Records that were acknowledged with acks=all are gone.",
    source="pipelines.rules.guarantees.committed_data_lost, tier_segment_lost, acked_as_duplicate",
    causes=("unclean_election", "broker_died", "broker_halted"),
)
def data_lost(facts: Facts) -> Iterable[LoggedIncident]:
    """Violations of the rules of loss, one by one."""
    for row in _violations(facts):
        if row["rule_id"] in _LOSS:
            yield _broken(facts, [row], CRITICAL, 1_000_000.0 + (row["records"] or 0))


@kind(
    meaning="A rule found a guarantee of Kafka's broken, other than that acknowledged records stay.",
    source="pipelines.rules: each rule names its own",
    causes=("broker_stalled", "broker_died", "broker_halted"),
)
def guarantee_broken(facts: Facts) -> Iterable[LoggedIncident]:
    """Violations of rules that speak of no loss, those of one rule together."""
    of_rule: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in _violations(facts):
        if row["rule_id"] not in _LOSS:
            of_rule[row["cluster_id"], row["rule_id"]].append(row)
    for rows in of_rule.values():
        yield _broken(facts, rows, MAJOR, 500.0 + len(rows))


def _violations(facts: Facts) -> list[Row]:
    """Violations that follow from no other one."""
    return [row for row in facts.findings if row["severity"] == "violation" and row["implied_by"] is None]


def _broken(facts: Facts, rows: list[Row], severity: Severity, weight: float) -> LoggedIncident:
    """What violations of one rule make."""
    first = rows[0]
    timed = [row["time"] for row in rows if row["time"] is not None]
    start = min(timed, default=facts.ends.get(first["cluster_id"], 0))
    names = [partition_name(row) for row in rows if row["topic"] is not None and row["partition"] is not None]
    jira = min((row["known_bug"] for row in rows if row["known_bug"]), default=None)
    more = f" And {number(len(rows) - 1, 'more case')} of {first['rule_id']}." if len(rows) > 1 else ""
    where = (
        f"Partition {partition_name(first)}: " if first["topic"] is not None and first["partition"] is not None else ""
    )
    return LoggedIncident(
        severity=severity,
        cluster_id=first["cluster_id"],
        start_us=start,
        end_us=max(timed, default=start),
        broker_ids=tuple(sorted({broker_id for row in rows for broker_id in row["brokers"] or ()})),
        partitions=frozenset(names),
        sentence=f"{where}{first['message'].rstrip('.')}.{more}",
        advice=f"See the lines that prove it: highwater trace finding {first['finding_id'][:8]}.",
        figures={"cases": len(rows), "records": sum(row["records"] or 0 for row in rows)},
        places=facts.places_of(*(row["finding_id"] for row in rows)),
        known_bug=_bug(jira),
        weight=weight,
    )


def _bug(jira: str | None) -> Bug | None:
    return Bug(jira, releases_of(jira)) if jira else None


@kind(
    meaning="A replica outside the in-sync set was elected leader.",
    source="unclean.leader.election.enable; kafka.controller.Election, PartitionChangeBuilder in KRaft",
    causes=("partitions_without_leader",),
)
def unclean_election(facts: Facts) -> Iterable[LoggedIncident]:
    """Findings of the rule `unclean-election`, legal or not: what only other replicas had is gone."""
    for row in facts.findings:
        if row["rule_id"] == "unclean-election" and row["topic"] is not None and row["time"] is not None:
            yield LoggedIncident(
                severity=MAJOR,
                cluster_id=row["cluster_id"],
                start_us=row["time"],
                end_us=row["time"],
                broker_ids=tuple(row["brokers"] or ()),
                partitions=frozenset({partition_name(row)}),
                sentence=f"Partition {partition_name(row)}: {row['message'].rstrip('.')}.",
                advice=(
                    "Set unclean.leader.election.enable=false for topics whose records matter more than their "
                    "availability."
                ),
                figures={} if row["offset_start"] is None else {"offset_start": row["offset_start"]},
                places=facts.places_of(row["finding_id"]),
                known_bug=_bug(row["known_bug"]),
                weight=800.0,
            )
