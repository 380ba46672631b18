"""What rules found: a guarantee broken, records lost, an unclean election."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from highwater.pipelines.incidents.advice import has_setting
from highwater.pipelines.incidents.episodes import grouped
from highwater.pipelines.incidents.facts import Facts, Row, partition_name
from highwater.pipelines.incidents.incident import CRITICAL, MAJOR, Bug, LoggedIncident, Remedy, Severity, releases_of
from highwater.pipelines.incidents.kind import ABSENT, kind
from highwater.pipelines.incidents.words import number, partitions
from highwater.pipelines.kafka.context import UNCLEAN_ELECTION

#: Rules that say that acknowledged records are gone.
LOSS_RULES = ("committed-data-lost", "tier-segment-lost", "acked-as-duplicate-of-another-batch")
#: Findings of one election, or of one failure, follow each other within this, microseconds: a controller elects for one
#: event in one pass, and notices the next broker after broker.heartbeat.interval.ms (2 s) at the earliest.
_TOGETHER_US = 2_000_000


@kind(
    meaning="Records that were acknowledged with acks=all are gone.",
    source="highwater.pipelines.rules.guarantees.committed_data_lost, tier_segment_lost, acked_as_duplicate",
    causes=("unclean_election", "zombie_leader", *ABSENT),
)
def data_lost(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield lost records, from violations of the rules about data loss. Violations of one event are one incident."""
    for rows in _events(row for row in _violations(facts) if row["rule_id"] in LOSS_RULES):
        records = sum(row["records"] or 0 for row in rows)
        yield _broken(facts, rows, CRITICAL, 1_000_000.0 + records)


def _events(rows: Iterable[Row]) -> list[list[Row]]:
    """Return violations or observations in groups of one rule and cause that follow each other by `_TOGETHER_US`."""

    def is_of_event(group: list[Row], row: Row) -> bool:
        last = group[-1]
        if _rule(last) != _rule(row):
            return False
        is_untimed = row["time"] is None
        return bool((last["time"] is None) is is_untimed and (is_untimed or row["time"] - last["time"] <= _TOGETHER_US))

    ordered = sorted(rows, key=lambda row: (_rule(row), row["time"] is None, row["time"] or 0, row["finding_id"]))
    return grouped(ordered, is_of_event)


def _rule(row: Row) -> tuple[str, str, str]:
    return row["cluster_id"], row["rule_id"], row.get("cause") or ""


@kind(
    meaning="A rule found a guarantee of Kafka's broken, other than that acknowledged records stay.",
    source="highwater.pipelines.rules: each rule names its own",
    causes=("unclean_election", "zombie_leader", *ABSENT),
)
def guarantee_broken(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield broken guarantees except lost records. Violations of one rule are one incident."""
    of_rule: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in _violations(facts):
        if row["rule_id"] not in LOSS_RULES:
            of_rule[row["cluster_id"], row["rule_id"]].append(row)
    for rows in of_rule.values():
        yield _broken(facts, rows, MAJOR, 500.0 + len(rows))


def _violations(facts: Facts) -> list[Row]:
    """Return root violations, which follow from no other violation."""
    return [row for row in facts.findings if row["severity"] == "violation" and row["implied_by"] is None]


def _broken(facts: Facts, rows: list[Row], severity: Severity, weight: float) -> LoggedIncident:
    """Return the incident of violations of one rule, with the number of cases and records."""
    first = rows[0]
    offsets = sum((row["offset_end"] or 0) - (row["offset_start"] or 0) for row in rows if row.get("offset_end"))
    figures = {"cases": len(rows), "records": sum(row["records"] or 0 for row in rows)}
    return replace(
        _found(facts, rows, severity, weight),
        advice=f"See the lines that prove it: highwater trace finding {first['finding_id'][:8]}.",
        figures=figures | ({"offsets": offsets} if offsets else {}),
    )


def _found(facts: Facts, rows: list[Row], severity: Severity, weight: float) -> LoggedIncident:
    """Return an incident of violations or observations of one rule, with lines and partitions. It quotes the first."""
    first = rows[0]
    nodes = {(row["cluster_id"], broker_id) for row in rows for broker_id in row["brokers"] or ()}
    timed = [row["time"] for row in rows if row["time"] is not None]
    start = min(timed, default=facts.ends.get(first["cluster_id"], 0))
    named = [row for row in rows if row["topic"] is not None and row["partition"] is not None]
    names = frozenset(map(partition_name, named))
    count = sum(row["records"] or 0 for row in rows)
    records = f", with {number(count, 'record')} or requests," if count else ""
    where = f"Partition {partition_name(first)}: " if first in named else ""
    cases = f"{number(len(rows), 'case')} of {first['rule_id']}{records} in {partitions(names)}. The first: "
    return LoggedIncident(
        severity=severity,
        cluster_id=first["cluster_id"],
        start_us=start,
        end_us=max(timed, default=start),
        broker_ids=tuple(sorted(broker_id for _, broker_id in nodes - facts.controllers)),
        partitions=names,
        sentence=f"{cases if len(rows) > 1 else ''}{where}{first['message'].rstrip('.')}.",
        places=facts.places_of(*(row["finding_id"] for row in rows)),
        known_bug=_bug(min((row["known_bug"] for row in rows if row["known_bug"]), default=None)),
        weight=weight,
        subject=" ".join(_rule(first)[1:]),
    )


def _bug(jira: str | None) -> Bug | None:
    return Bug(jira, releases_of(jira)) if jira else None


@kind(
    meaning="A replica outside the in-sync set was elected leader.",
    source="unclean.leader.election.enable; kafka.controller.Election, PartitionChangeBuilder in KRaft",
    causes=("partitions_without_leader", *ABSENT),
)
def unclean_election(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield findings of the rule `unclean-election`, legal or not. Findings of one event are one incident."""
    of_rule = [row for row in facts.findings if row["rule_id"] == "unclean-election"]
    for rows in _events(row for row in of_rule if row["topic"] is not None and row["time"] is not None):
        offsets = [row["offset_start"] for row in rows if row["offset_start"] is not None]
        yield replace(
            _found(facts, rows, MAJOR, 800.0 + len(rows)),
            advice=Remedy(
                f"Set {UNCLEAN_ELECTION}=false for topics whose records matter more than their availability.",
                has_setting(UNCLEAN_ELECTION, "true"),
                f"Check {UNCLEAN_ELECTION} of these topics: the logs do not show it.",
            ),
            figures={"offset_start": offsets[0]} if len(offsets) == len(rows) == 1 else {"partitions": len(rows)},
        )
