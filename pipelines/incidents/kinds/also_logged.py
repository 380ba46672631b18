"""Lines at WARN or above that no other kind tells of: the most frequent texts, so that none is silent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from pipelines.incidents.facts import Facts, Row, place
from pipelines.incidents.incident import INFO, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.words import brokers, span, times

_DAY_US = 86_400_000_000
#: Texts of a cluster and a day that are told.
SHOWN_MAX = 5
_RANK = {"FATAL": 0, "ERROR": 1, "WARN": 2}


def detect(facts: Facts) -> Iterable[Incident]:
    """The most frequent texts of each cluster and day, errors before warnings."""
    of_day: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in facts.loud:
        of_day[row["cluster_id"], row["first_time"] // _DAY_US].append(row)
    for rows in of_day.values():
        ordered = sorted(rows, key=lambda row: (_RANK[row["level"]], -row["line_count"], row["template"]))
        for row in ordered[:SHOWN_MAX]:
            yield _logged(row)


def _logged(row: Row) -> Incident:
    first_line = row["message"].split("\n")[0]
    text = first_line if len(first_line) <= 160 else first_line[:159] + "…"
    ids = [broker_id for broker_id in row["broker_ids"] or () if broker_id is not None]
    who = brokers(ids).capitalize() if ids else "Nodes that no line names"
    when = span(row["first_time"], row["last_time"]) if row["line_count"] > 1 else ""
    return Incident(
        kind=KIND.name,
        severity=INFO,
        cluster_id=row["cluster_id"],
        start_us=row["first_time"],
        end_us=row["last_time"],
        broker_ids=tuple(ids),
        sentence=f"{who} also logged at {row['level']} {times(row['line_count'])}{' ' + when if when else ''}: {text}",
        figures={"lines": row["line_count"]},
        places=(place(row),),
        weight=float(row["line_count"]),
        subject=f"{row['level']} {row['template']}",
    )


KIND = Kind(
    name="also_logged",
    meaning="Lines at WARN, ERROR or FATAL of one text, which no other kind of incident tells of.",
    source="any class",
    detect=detect,
)
