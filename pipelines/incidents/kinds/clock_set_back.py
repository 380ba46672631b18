"""The clock of a broker was set back."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.incidents.facts import Facts, place
from pipelines.incidents.incident import MINOR, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.words import clock, lasting


def detect(facts: Facts) -> Iterable[Incident]:
    """Rows of `silver.broker_lifecycle` that say so."""
    for row in facts.lifecycle:
        if row["event"] == "clock_set_back":
            back_us = float(row["detail"]) * 1e6
            yield Incident(
                kind=KIND.name,
                severity=MINOR,
                cluster_id=row["cluster_id"],
                start_us=row["time"],
                end_us=row["time"],
                broker_ids=(row["broker_id"],),
                sentence=(
                    f"The clock of broker {row['broker_id']} was set back by {lasting(back_us)} or more shortly before "
                    f"{clock(row['time'])}: times of its lines from then on are not those of the lines before."
                ),
                advice=(
                    f"Look at the time service of broker {row['broker_id']}: let it slew the clock, not step it. "
                    "Sessions, retention and record timestamps follow it."
                ),
                figures={"set_back_s": back_us / 1e6},
                places=(place(row),),
                weight=back_us / 1e6,
            )


KIND = Kind(
    name="clock_set_back",
    meaning="Times of a broker's lines go back by seconds and stay there.",
    source="pipelines.grammars.clock: many lines in a row lie before the latest one",
    detect=detect,
)
