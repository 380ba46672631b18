"""The logs of a broker end, and those of the others go on."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.incidents.facts import Facts, Row, node, place
from pipelines.incidents.incident import MAJOR, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.kinds.broker_stopped import stops
from pipelines.incidents.questions import STEADY_S
from pipelines.incidents.words import clock, lasting

#: Others go on for so long at least, microseconds.
_GOES_ON_US = 10_000_000
#: Of the seconds before its end, so many have a line of a broker that writes steadily.
_STEADY_SHARE = 0.9


def detect(facts: Facts) -> Iterable[Incident]:
    """Brokers that wrote in nearly each second, and then no more, without a line that they stop."""
    stopping = {stop.node for stop in stops(facts) if stop.up_us is None}
    for row in facts.last_lines:
        is_steady = row["seconds_before"] >= _STEADY_SHARE * STEADY_S
        missing_us = facts.ends.get(row["cluster_id"], 0) - row["last_time"]
        silences = [gap["end_time"] - gap["start_time"] for gap in facts.silences if node(gap) == node(row)]
        if is_steady and node(row) not in stopping and missing_us > max(_GOES_ON_US, *silences, 0):
            yield _ended(row, missing_us)


def _ended(row: Row, missing_us: int) -> Incident:
    broker_id = row["broker_id"]
    return Incident(
        kind=KIND.name,
        severity=MAJOR,
        cluster_id=row["cluster_id"],
        start_us=row["last_time"],
        end_us=None,
        broker_ids=(broker_id,),
        sentence=(
            f"The logs of broker {broker_id} end at {clock(row['last_time'])}, {lasting(missing_us)} before those of "
            "the others, and no line says that it stops: it died or hung, or its later logs are not here."
        ),
        advice=f"See whether broker {broker_id} is up. If it is, give its later log files, too.",
        figures={"missing_s": missing_us / 1e6},
        places=(place(row),),
        weight=60.0,
    )


KIND = Kind(
    name="logs_end_early",
    meaning="A broker that wrote in nearly each second writes no more, no line says that it stops, and others go on.",
    source="The last line of each broker",
    detect=detect,
    causes=("broker_halted", "log_directory_failed", "broker_out_of_memory"),
)
