"""How close `gold.clock_bounds` comes: the clocks of real corpora are one machine's, so each difference is 0; then the
log times of one broker are shifted by steps and drifts that are known.

    python -m tests.bench.clocks LAKES...

A row per cluster and shift: pairs with both bounds, their width, the share of bounds that hold, changes that are told.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any, cast

from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.timing.clocks.bounds import compute_clock_bounds
from highwater.pipelines.timing.clocks.links import Link, find_links
from highwater.pipelines.timing.clocks.stage import WINDOW_S, Causes, collect_causes
from highwater.schemas import bronze

#: From seconds since the first line to how far the clock is off by then, microseconds.
SHIFTS: Mapping[str, Callable[[float], float]] = {
    "none": lambda at_s: 0,
    "5 s ahead": lambda at_s: 5_000_000,
    "3 s behind": lambda at_s: -3_000_000,
    "200 ms step after 40 s": lambda at_s: 200_000 if at_s >= 40 else 0,
    "drift of 500 ppm": lambda at_s: 500 * at_s,
}


def shifted(causes: Causes, broker_id: int, difference: Callable[[int], int]) -> Causes:
    """The same cluster with the log times of one broker shifted; a difference is of an instant, microseconds."""
    said = [
        row._replace(time_us=row.time_us + difference(row.time_us)) if row.broker_id == broker_id else row
        for row in causes.said
    ]
    fetches = [
        row._replace(arrival_us=row.arrival_us + difference(row.arrival_us)) if row.leader == broker_id else row
        for row in causes.fetches
    ]
    return causes._replace(said=said, fetches=fetches)


def held(link: Link, broker_id: int, difference: Callable[[int], int], true: Link) -> bool:
    """Whether a link of shifted times bounds the true difference: that at its end."""
    if broker_id == link.later:
        return difference(true.later_us) < link.highest_us
    return broker_id != link.earlier or -difference(true.earlier_us) < link.highest_us


def figures(causes: Causes, shift: Callable[[float], float]) -> dict[str, Any]:
    """What the bounds of one cluster are worth."""
    brokers = sorted({row.broker_id for row in causes.said})
    begin_us = min(row.time_us for row in causes.said)

    def difference(time_us: int) -> int:
        return round(shift((time_us - begin_us) / 1_000_000))

    off = brokers[-1]
    true, seen = list(find_links(*causes)), list(find_links(*shifted(causes, off, difference)))
    bounds = list(compute_clock_bounds(seen, WINDOW_S * 1_000_000))
    widths = [
        (bound.highest_us - bound.lowest_us) / 1000
        for bound in bounds
        if bound.highest_us is not None and bound.lowest_us is not None and bound.changed_us == 0
    ]
    return {
        "links": len(seen),
        "held": sum(held(link, off, difference, was) for link, was in zip(seen, true, strict=True)),
        "pairs": len(bounds),
        "both": len(widths),
        "width_ms": median(widths) if widths else None,
        "changes": [round(bound.changed_us / 1000, 1) for bound in bounds if bound.changed_us],
    }


def main(lakes: list[str]) -> int:
    """Print a row per cluster and shift; 1 if a bound does not hold."""
    wrong = 0
    heads = ("cluster", "shift of the last broker", "links", "hold", "windows", "both bounds", "width ms", "changes ms")
    print("|".join(("", *heads, "")), "|---|---|---:|---:|---:|---:|---:|---|", sep="\n")
    for place in lakes:
        # Nothing here asks Spark for anything.
        lake = Lake(cast(Any, None), Path(place))
        files = lake.rows(bronze.LOG_FILES, "cluster_id", "path").to_pylist()
        names = {row["cluster_id"]: Path(row["path"]).parts[-4] for row in files if len(Path(row["path"]).parts) > 3}
        for cluster_id, causes in collect_causes(lake).items():
            for name, shift in SHIFTS.items():
                row = figures(causes, shift)
                wrong += row["links"] - row["held"]
                width = "-" if row["width_ms"] is None else f"{row['width_ms']:.1f}"
                counts = (row[column] for column in ("links", "held", "pairs", "both"))
                cells = (names.get(cluster_id, cluster_id), name, *counts, width, ", ".join(map(str, row["changes"])))
                print("|".join(("", *map(str, cells), "")))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
