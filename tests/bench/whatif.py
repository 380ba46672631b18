"""What `highwater whatif` predicts of a slow broker, beside what was measured without it.

    python -m tests.bench.whatif LAKES... [--markdown docs/answers.md]

Of each pause or slowness of a broker in faults.jsonl: p50, p99 and p999 of acks=all produces that others led meanwhile,
as they would have been had the broker not been waited for, and the same as measured while nothing was done to the
cluster. What differs by more than 15% is marked. In brackets where a sample of that size puts such a quantile in 95 of
100 cases: a p999 of 2,000 operations is that of the second worst.

A second table has the same of each stretch of time in which nothing was done: how far they differ from one another, so
far no prediction can be told right or wrong.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from highwater.pipelines.inquiry.quantiles import QUANTILES
from highwater.pipelines.inquiry.whatif import variants
from highwater.pipelines.lake.contents import find_tables
from highwater.pipelines.lake.reader import LakeReader
from highwater.pipelines.report import queries
from highwater.pipelines.report.figures import PRODUCE
from tests.bench.figures import insert, markdown

HEADS = (
    *("corpus", "broker", "fault, s", "operations", "measured outside, operations"),
    *(f"{name} {what}" for name in QUANTILES for what in ("in the fault", "predicted", "measured outside", "off by")),
)
OUTSIDE_HEADS = ("corpus", "broker", "when", "seconds from the load on", "operations", *QUANTILES)
NEAR = 0.15
#: Operations without which there is nothing to compare.
OPERATIONS_MIN = 50
#: Clusters are at rest so long after they were started, or after something was done to them.
_SETTLED_S = 8.0
_CORPUS = re.compile(r"(.*corpora/([^/]+))/")
_ENDS = {"pause": "resume", "slow_start": "slow_end"}


class Fault(NamedTuple):
    """A broker that was stopped, or slow, for a time; Unix seconds."""

    broker: int
    start: float
    end: float


def main(arguments: list[str]) -> int:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lakes", nargs="+", type=Path)
    parser.add_argument("--only", help="these corpora, with commas between them")
    parser.add_argument("--markdown", type=Path, help="a document that holds the table")
    given = parser.parse_args(arguments)
    rows: list[tuple[str, ...]] = []
    outside: list[tuple[str, ...]] = []
    for lake in given.lakes:
        reader = LakeReader(lake, find_tables(lake))
        files = reader.rows("SELECT DISTINCT path, cluster_id FROM bronze_log_files")
        corpora = {(match[1], row["cluster_id"]) for row in files if (match := _CORPUS.search(row["path"]))}
        for folder, cluster_id in sorted(corpora):
            if given.only is None or Path(folder).name in given.only.split(","):
                rows += list(_rows(reader, Path(folder), cluster_id))
                outside += list(_outside_rows(reader, Path(folder), cluster_id))
    for name, lines in (("whatif", markdown(HEADS, rows)), ("whatif outside", markdown(OUTSIDE_HEADS, outside))):
        print("\n".join(lines), end="\n\n")
        if given.markdown:
            insert(given.markdown, lines, name)
    return 0


def _done(corpus: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (corpus / "faults.jsonl").read_text(encoding="utf-8").splitlines()]


def _outside_rows(reader: LakeReader, corpus: Path, cluster_id: str) -> Iterator[tuple[str, ...]]:
    """Produces that others led in each quiet time, and in the fault as predicted, in the order of time."""
    done = _done(corpus)
    load = float(str(done[0]["t"]))
    spans = [
        (start, end, "") for start, end in _quiet([(str(event["what"]), float(str(event["t"]))) for event in done])
    ]
    for fault in _faults(done):
        for start, end, what in sorted([*spans, (fault.start, fault.end, "predicted")]):
            figures = (
                _predicted(reader, cluster_id, start, end, fault.broker)
                if what
                else _measured(_led_by_others(reader, cluster_id, start, end, fault.broker))
            )
            if figures["operations"] < OPERATIONS_MIN:
                continue
            when = what or f"measured {'before' if end <= fault.start else 'after'}"
            cells = [f"{figures[name]:.2f}" for name in QUANTILES]
            seconds = f"{start - load:.1f} to {end - load:.1f}"
            yield (corpus.name, str(fault.broker), when, seconds, str(figures["operations"]), *cells)


def _rows(reader: LakeReader, corpus: Path, cluster_id: str) -> Iterator[tuple[str, ...]]:
    done = _done(corpus)
    quiet = _quiet([(str(event["what"]), float(str(event["t"]))) for event in done])
    for fault in _faults(done):
        of_others = (reader, cluster_id)
        predicted = _predicted(*of_others, fault.start, fault.end, fault.broker)
        actual = _led_by_others(*of_others, fault.start, fault.end, fault.broker)
        outside = [ms for start, end in quiet for ms in _led_by_others(*of_others, start, end, fault.broker)]
        if min(predicted["operations"], len(outside)) < OPERATIONS_MIN:
            continue
        cells = [corpus.name, str(fault.broker), f"{fault.end - fault.start:.1f}"]
        cells += [str(predicted["operations"]), str(len(outside))]
        of = [_measured(actual), predicted, _measured(outside)]
        for name in QUANTILES:
            was, would, measured = (figures[name] for figures in of)
            off = would / measured - 1
            low, high = _sampling(outside, QUANTILES[name])
            cells += [f"{was:.2f}", f"{would:.2f}", f"{measured:.2f} ({low:.1f} to {high:.1f})"]
            cells.append(f"{off:+.0%}{'' if abs(off) <= NEAR else ' !'}")
        yield tuple(cells)


def _sampling(durations: list[float], share: float) -> tuple[float, float]:
    """Where the quantile of such a sample lies with 95% confidence, by the binomial order statistics."""
    spread = 1.96 * (share * (1 - share) / len(durations)) ** 0.5
    return _quantile(durations, max(share - spread, 0.0)), _quantile(durations, min(share + spread, 1.0))


def _quantile(durations: list[float], share: float) -> float:
    return float(np.quantile(durations, share)) if durations else 0.0


def _measured(durations: list[float]) -> dict[str, Any]:
    return {"operations": len(durations)} | {name: _quantile(durations, share) for name, share in QUANTILES.items()}


def _predicted(reader: LakeReader, cluster_id: str, start: float, end: float, broker: int) -> dict[str, Any]:
    """What would have been of operations that others led, had a broker been away."""
    figures = variants(reader, cluster_id, _micros(start), _micros(end)).away.get(broker, {})
    return {name: figures.get(name) or 0 for name in ("operations", *QUANTILES)}


def _led_by_others(reader: LakeReader, cluster_id: str, start: float, end: float, broker: int) -> list[float]:
    """Durations of acks=all produces that other brokers led, milliseconds."""
    arrived = f"arrival_time >= make_timestamptz({_micros(start)}) AND arrival_time < make_timestamptz({_micros(end)})"
    operations = queries.select_operations(f"{arrived} AND cluster_id = $cluster", slow_ms=0)
    rows = reader.rows(
        f"""SELECT round(total_ms, 2) AS ms FROM ({operations})
            WHERE kind = '{PRODUCE}' AND succeeded AND broker_id <> {broker}""",
        cluster=cluster_id,
    )
    return [row["ms"] for row in rows]


def _faults(done: list[dict[str, object]]) -> Iterator[Fault]:
    for number, event in enumerate(done):
        ending = _ENDS.get(str(event["what"]))
        for later in done[number + 1 :]:
            if ending is not None and later["what"] == ending and later.get("broker") == event.get("broker"):
                yield Fault(int(str(event["broker"])), float(str(event["t"])), float(str(later["t"])))
                break


def _quiet(events: list[tuple[str, float]]) -> list[tuple[float, float]]:
    """Times in which nothing was being done: between an end of something and the next beginning, once settled."""
    spans = []
    open_faults = 0
    for (what, time), (_, following) in pairwise(events):
        open_faults += what in ("pause", "slow_start", "kill", "term")
        open_faults -= what in ("resume", "slow_end", "start")
        if open_faults <= 0 and following - time > _SETTLED_S + 1:
            spans.append((time + _SETTLED_S, following))
    return spans


def _micros(seconds: float) -> int:
    return round(seconds * 1_000_000)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
