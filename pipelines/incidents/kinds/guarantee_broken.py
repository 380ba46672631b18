"""A rule found a guarantee of Kafka's broken."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from pipelines.incidents.facts import Facts, Row, partition_name
from pipelines.incidents.incident import MAJOR, Bug, Incident, Place
from pipelines.incidents.kind import Kind
from pipelines.incidents.known import releases_of
from pipelines.incidents.words import number

#: Rules that say that acknowledged records are gone.
LOSS = ("committed-data-lost", "tier-segment-lost", "acked-as-duplicate-of-another-batch")


def detect(facts: Facts) -> Iterable[Incident]:
    """Violations of rules that speak of no loss, those of one rule together."""
    of_rule: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in violations(facts):
        if row["rule_id"] not in LOSS:
            of_rule[row["cluster_id"], row["rule_id"]].append(row)
    for rows in of_rule.values():
        yield Incident(
            kind=KIND.name,
            severity=MAJOR,
            weight=500.0 + len(rows),
            **described(facts, rows),
        )


def violations(facts: Facts) -> list[Row]:
    """Violations that follow from no other one."""
    return [row for row in facts.findings if row["severity"] == "violation" and row["implied_by"] is None]


def described(facts: Facts, rows: list[Row]) -> dict[str, Any]:
    """Fields of an incident that violations of one rule make."""
    places: dict[str, list[Place]] = defaultdict(list)
    for row in facts.finding_places:
        places[row["finding_id"]].append(Place(row["file_id"], row["byte_offset"]))
    first = rows[0]
    timed = [row["time"] for row in rows if row["time"] is not None]
    start = min(timed, default=facts.ends.get(first["cluster_id"], 0))
    records = sum(row["records"] or 0 for row in rows)
    jiras = sorted({row["known_bug"] for row in rows if row["known_bug"]})
    more = f" And {number(len(rows) - 1, 'more case')} of {first['rule_id']}." if len(rows) > 1 else ""
    where = (
        f"Partition {partition_name(first)}: " if first["topic"] is not None and first["partition"] is not None else ""
    )
    return {
        "cluster_id": first["cluster_id"],
        "start_us": start,
        "end_us": max(timed, default=start),
        "broker_ids": tuple(sorted({broker_id for row in rows for broker_id in row["brokers"] or ()})),
        "partitions": frozenset(
            partition_name(row) for row in rows if row["topic"] is not None and row["partition"] is not None
        ),
        "sentence": f"{where}{first['message'].rstrip('.')}.{more}",
        "advice": f"See the lines that prove it: highwater trace finding {first['finding_id'][:8]}.",
        "figures": {"cases": len(rows), "records": records},
        "places": tuple(place for row in rows for place in places[row["finding_id"]]),
        "known_bug": Bug(jiras[0], releases_of(jiras[0])) if jiras else None,
    }


KIND = Kind(
    name="guarantee_broken",
    meaning="A rule found a guarantee of Kafka's broken, other than that acknowledged records stay.",
    source="pipelines.rules: each rule names its own",
    detect=detect,
    causes=("broker_stalled", "broker_died", "broker_halted"),
)
