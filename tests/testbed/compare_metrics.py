"""Compares metrics rebuilt from logs with those that the brokers exposed through JMX while they ran.

Brokers are asked at whole multiples of `INTERVAL_S`, and the audit rebuilds intervals of that length: what is exposed
at an instant is the end of the interval before it. Answers come a little later: of counts the part of the next interval
until then belongs to them, a gauge may have gone on to its next value. What came much later is left out.
"""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.testbed.audited import Row
from tests.testbed.compare import Check
from tests.testbed.history import JMX

INTERVAL_S = 5
#: What was answered later than this is left out.
ANSWERED_MS = 1500
#: A gauge that goes up and down again while an answer is made is not seen.
EQUAL_SHARE = 0.95
#: Events are taken to be spread evenly over the interval in which an answer came.
COUNT_SHARE = 0.01
COUNT_SPARE = 3
#: Kafka rounds durations to whole milliseconds before it counts them.
ROUNDED_MS = 0.5
MEAN_SHARE = 0.02
#: Gauges that say at least or at most are held to that, others to equality.
BOUNDS = {"at_least": "rebuilt <= exposed", "at_most": "rebuilt >= exposed", "exact": "equal"}


class Poll(NamedTuple):
    """What one broker answered at one instant."""

    node: int
    interval: int  #: start of the interval that ends there, seconds
    values: Mapping[tuple[str, str], float]  #: by MBean and attribute
    late_s: Mapping[str, float]  #: by MBean, how long after that instant it was read


@dataclass
class _Sums:
    """Of one metric name, over all brokers, MBeans and stretches between two answers of one life."""

    #: exposed, rebuilt: events
    exposed: float = 0
    rebuilt: float = 0
    #: exposed_ms, rebuilt_ms: their total durations
    exposed_ms: float = 0
    rebuilt_ms: float = 0
    beans: set[str] = field(default_factory=set)


def read_exposed(corpus: Path) -> list[Poll]:
    """Answers in time, by node and instant.

    Raises:
        ValueError: the corpus has none.
    """
    path = corpus / "jmx" / f"{JMX}.gz"
    if not path.is_file():
        raise ValueError(f"{corpus} has no metrics; run its cluster again with --jmx")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return polls(csv.reader(file))


def polls(rows: Iterable[Sequence[str]]) -> list[Poll]:
    """Answers from lines of `JmxReader`; a line that was cut off by the end is left out."""
    values: dict[tuple[int, int], dict[tuple[str, str], float]] = defaultdict(dict)
    late_s: dict[tuple[int, int], dict[str, float]] = defaultdict(dict)
    for row in rows:
        if len(row) == 6 and int(row[1]) - int(row[0]) <= ANSWERED_MS:
            poll = int(row[2]), int(row[0]) // 1000 // INTERVAL_S * INTERVAL_S - INTERVAL_S
            values[poll][row[3], row[4]] = float(row[5])
            late_s[poll][row[3]] = int(row[1]) / 1000 - poll[1] - INTERVAL_S
    return [
        Poll(node, interval, of_poll, late_s[node, interval]) for (node, interval), of_poll in sorted(values.items())
    ]


def compare_metrics(exposed: Sequence[Poll], rebuilt: Iterable[Row]) -> list[Check]:
    """A row per metric; empty ones are those that brokers did not expose, or logs do not tell."""
    rows: dict[tuple[int, int], dict[str, Row]] = defaultdict(dict)
    for row in rebuilt:
        rows[row["broker_id"], int(row["interval_start"])][row["mbean"]] = row
    return [*_gauges(exposed, rows), *_events(exposed, rows)]


def _gauges(exposed: Sequence[Poll], rows: Mapping[tuple[int, int], Mapping[str, Row]]) -> Iterator[Check]:
    held: dict[tuple[str, str], list[tuple[float, bool]]] = defaultdict(list)
    for poll in exposed:
        after = rows.get((poll.node, poll.interval + INTERVAL_S), {})
        for mbean, row in rows.get((poll.node, poll.interval), {}).items():
            if row["kind"] == "gauge" and (value := poll.values.get((mbean, "Value"))) is not None:
                agrees = _holds(row["measured"], value, row["value"]) or _changed(value, row, after.get(mbean))
                held[_label(row), row["measured"]].append((value, agrees))
    for (name, measured), answers in sorted(held.items()):
        share = sum(agrees for _, agrees in answers) / len(answers)
        true = f"{len(answers)} answers, {min(answers)[0]:g} to {max(answers)[0]:g}"
        yield Check(name, true, f"{BOUNDS[measured]} in {share:.2%}", share >= EQUAL_SHARE)


def _changed(exposed: float, row: Row, after: Row | None) -> bool:
    """Whether an exact gauge went on to the value before the broker answered."""
    if after is None or row["measured"] != "exact":
        return False
    passed = [row["value"], after["value"], *([after["value_max"]] if after["value_max"] is not None else [])]
    return bool(after["value"] != row["value"] and min(passed) <= exposed <= max(passed))


def _label(row: Row) -> str:
    kind = row["mbean"].rpartition("delayedOperation=")
    return f"{row['name']} {kind[2]}" if kind[1] else str(row["name"])


def _holds(measured: str, exposed: float, rebuilt: float) -> bool:
    if measured == "at_least":
        return rebuilt <= exposed
    return rebuilt >= exposed if measured == "at_most" else rebuilt == exposed


def _events(exposed: Sequence[Poll], rows: Mapping[tuple[int, int], Mapping[str, Row]]) -> Iterator[Check]:
    sums: dict[tuple[str, str, str], _Sums] = defaultdict(_Sums)
    for first, last in _stretches(exposed):
        kinds: dict[str, Row] = {}
        timed: dict[str, tuple[float, float]] = {}
        for interval in range(first.interval + INTERVAL_S, last.interval + 2 * INTERVAL_S, INTERVAL_S):
            for mbean, row in rows.get((first.node, interval), {}).items():
                if row["kind"] != "gauge":
                    kinds[mbean] = row
                    count, total_ms = timed.get(mbean, (0.0, 0.0))
                    part = _part(mbean, interval, first, last) * row["event_count"]
                    timed[mbean] = (count + part, total_ms + part * (row["mean_ms"] or 0.0))
        for mbean, row in kinds.items():
            if (mbean, "Count") not in last.values:
                continue
            of_name = sums[row["name"], row["kind"], row["measured"]]
            of_name.beans.add(mbean)
            of_name.exposed += last.values[mbean, "Count"] - first.values.get((mbean, "Count"), 0.0)
            of_name.exposed_ms += _total_ms(last, mbean) - _total_ms(first, mbean)
            of_name.rebuilt += timed[mbean][0]
            of_name.rebuilt_ms += timed[mbean][1]
    for (name, kind, measured), of_name in sorted(sums.items()):
        yield from _checks(name, kind, measured, of_name)


def _part(mbean: str, interval: int, first: Poll, last: Poll) -> float:
    """The part of an interval that lies between two readings, which came somewhat late."""
    begin = first.late_s.get(mbean, 0.0) / INTERVAL_S if interval == first.interval + INTERVAL_S else 0.0
    end = last.late_s.get(mbean, 0.0) / INTERVAL_S if interval == last.interval + INTERVAL_S else 1.0
    return max(0.0, min(end, 1.0) - min(begin, 1.0))


def _checks(name: str, kind: str, measured: str, of_name: _Sums) -> Iterator[Check]:
    spare = max(COUNT_SPARE * len(of_name.beans) ** 0.5, COUNT_SHARE * of_name.exposed)
    difference = of_name.rebuilt - of_name.exposed
    agrees = -spare <= difference if measured == "at_most" else abs(difference) <= spare
    beans = f"{len(of_name.beans)} MBeans, {of_name.exposed:.0f} events"
    how = "" if measured == "exact" else f" ({measured})"
    yield Check(f"{name} count", beans, f"{of_name.rebuilt:.0f}{how}", agrees)
    if kind == "histogram" and of_name.exposed and of_name.rebuilt:
        exposed_ms, rebuilt_ms = of_name.exposed_ms / of_name.exposed, of_name.rebuilt_ms / of_name.rebuilt
        agrees = abs(exposed_ms - rebuilt_ms) <= ROUNDED_MS + MEAN_SHARE * exposed_ms
        yield Check(f"{name} mean", f"{exposed_ms:.2f} ms", f"{rebuilt_ms:.2f} ms", agrees)


def _total_ms(poll: Poll, mbean: str) -> float:
    return poll.values.get((mbean, "Count"), 0.0) * poll.values.get((mbean, "Mean"), 0.0)


def _stretches(exposed: Sequence[Poll]) -> Iterator[tuple[Poll, Poll]]:
    """First and last answer of each life of a broker: its counters begin again with a start."""
    by_node: dict[int, list[Poll]] = defaultdict(list)
    for poll in exposed:
        by_node[poll.node].append(poll)
    for of_node in by_node.values():
        first = before = of_node[0]
        for poll in of_node[1:]:
            if _requests(poll) < _requests(before):
                yield first, before
                first = poll
            before = poll
        yield first, before


def _requests(poll: Poll) -> float:
    return sum(
        value
        for (mbean, attribute), value in poll.values.items()
        if attribute == "Count" and "name=TotalTimeMs" in mbean and not mbean.endswith("=Fetch")
    )
