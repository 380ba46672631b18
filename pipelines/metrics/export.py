"""Rows of ``gold.broker_metrics`` as files that other tools read. Pure.

A counter of Kafka's grows as long as its broker runs; here it grows from the first interval of the lake on. A histogram
is that of its interval, where Kafka's has all since the start, and percentiles that forget slowly.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from pipelines.base.answers import csv_lines
from pipelines.base.instants import SECOND_US
from pipelines.metrics.mbeans import ObjectName, object_name
from schemas.metrics import GAUGE, HISTOGRAM, METER, PERCENTILES

Row = Mapping[str, Any]
#: Cluster, broker, MBean.
Key = tuple[str, int, str]

_RATES_MINUTES: Final = (1, 5, 15)
#: What names of files are made of; whatever else stands in a tag is replaced.
_ODD: Final = re.compile(r"[^A-Za-z0-9_.-]")

#: Columns of the index.
_INDEX: Final = ("file", "cluster_id", "broker_id", "mbean", "measured")

# Headers of `com.yammer.metrics.reporting.CsvReporter` (metrics-core 2.2), which KafkaCSVMetricsReporter starts.
_HEADERS: Final = {
    GAUGE: "# time,value",
    METER: "# time,count,1 min rate,mean rate,5 min rate,15 min rate",
    HISTOGRAM: "# time,min,max,mean,median,stddev,95%,99%,99.9%",
}


class MeterCount:
    """Counts that grow, and the rates that a meter makes of them (``com.yammer.metrics.core.Meter``, ``EWMA``)."""

    def __init__(self) -> None:
        self.count = 0
        self._began_s: float | None = None
        self._rates: list[float | None] = [None] * len(_RATES_MINUTES)

    def add(self, count: int, start_s: float, length_s: float) -> None:
        """Take in the events of an interval, as if they were spread evenly over it."""
        self.count += count
        self._began_s = start_s if self._began_s is None else self._began_s
        rate = count / length_s
        for place, minutes in enumerate(_RATES_MINUTES):
            before, forgotten = self._rates[place], math.exp(-length_s / 60 / minutes)
            self._rates[place] = rate if before is None else rate + (before - rate) * forgotten

    def rates(self, end_s: float) -> tuple[float, ...]:
        """Events per second: over 1 minute, over all, over 5 and 15 minutes."""
        over_all = self.count / (end_s - self._began_s) if self._began_s is not None else 0.0
        one_minute, five, fifteen = (rate or 0.0 for rate in self._rates)
        return one_minute, over_all, five, fifteen


def _series(rows: Iterable[Row]) -> dict[Key, list[Row]]:
    series: dict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        series[row["cluster_id"], row["broker_id"], row["mbean"]].append(row)
    return {key: sorted(series[key], key=lambda row: int(row["interval_start"])) for key in sorted(series)}


def _end_s(row: Row) -> float:
    return float(row["interval_start"] / SECOND_US + row["interval_s"])


def _counted(rows: Sequence[Row]) -> Iterator[tuple[Row, MeterCount]]:
    counted = MeterCount()
    before_s: float | None = None
    for row in rows:
        start_s, end_s = row["interval_start"] / SECOND_US, _end_s(row)
        if before_s is not None and start_s > before_s:
            counted.add(0, before_s, start_s - before_s)
        counted.add(row["event_count"], start_s, row["interval_s"])
        before_s = end_s
        yield row, counted


# ----------------------------------------------------------------------------- CSV


def csv_files(rows: Iterable[Row], since_us: int | None, until_us: int | None) -> Iterator[tuple[str, list[str]]]:
    """Files as Kafka's CSV reporter laid them out: name below the folder, and lines.

    That reporter named a file ``<name>.csv`` by the metric's name alone, which from 0.8.2 on several share, so that it
    failed; up to then the name began with the tag, as in ``Produce-TotalTimeMs``. So it does here. The first column is
    seconds since the reporter started: here since 1970. Each broker has a folder, as each had its own.

    Args:
        rows: all there are: counts begin with the first.
        since_us, until_us: intervals that are written, by their start, the end exclusive.
    """
    named: dict[str, str] = {}
    index = [csv_lines([_INDEX])]
    series = _series(rows)
    clusters = sorted({cluster_id for cluster_id, _, _ in series})
    for (cluster_id, broker_id, mbean), of_bean in series.items():
        folder = f"broker-{broker_id}" if len(clusters) == 1 else f"{_plain(cluster_id)}/broker-{broker_id}"
        file = _unused(f"{folder}/{csv_name(object_name(mbean))}", named, mbean)
        lines = [line for row, line in _csv_lines(of_bean) if _within(row, since_us, until_us)]
        if lines:
            kinds = {row["measured"] for row in of_bean}
            measured = kinds.pop() if len(kinds) == 1 else " and ".join(sorted(kinds))
            index.append(csv_lines([[file, _plain(cluster_id), broker_id, mbean, measured]]))
            yield file, [_HEADERS.get(of_bean[0]["kind"], _HEADERS[HISTOGRAM]), *lines]
    yield "index.csv", index


def csv_name(name: ObjectName) -> str:
    """Name of a metric's file."""
    return _plain("-".join([*name.tags.values(), name.name])) + ".csv"


def _plain(text: str) -> str:
    return _ODD.sub("_", text).lstrip(".") or "_"


def _unused(file: str, named: dict[str, str], mbean: str) -> str:
    """Tags that differ in odd characters only must not share a file."""
    stem, number = file.removesuffix(".csv"), 2
    while named.setdefault(file, mbean) != mbean:
        file, number = f"{stem}-{number}.csv", number + 1
    return file


def _csv_lines(rows: Sequence[Row]) -> Iterator[tuple[Row, str]]:
    if rows[0]["kind"] == METER:
        for row, counted in _counted(rows):
            yield row, _csv(row, counted.count, *counted.rates(_end_s(row)))
        return
    for row in rows:
        if row["kind"] == GAUGE:
            yield row, _csv(row, row["value"])
        else:
            names = ("min_ms", "max_ms", "mean_ms", "p50_ms", "stddev_ms", "p95_ms", "p99_ms", "p999_ms")
            yield row, _csv(row, *(row[name] for name in names))


def _csv(row: Row, *values: float) -> str:
    return ",".join([f"{_end_s(row):.0f}", *map(_number, values)])


def _within(row: Row, since_us: int | None, until_us: int | None) -> bool:
    start_us = row["interval_start"]
    return (since_us is None or start_us >= since_us) and (until_us is None or start_us < until_us)


# --------------------------------------------------------------------- OpenMetrics


def openmetrics_lines(rows: Iterable[Row], since_us: int | None, until_us: int | None) -> Iterator[str]:
    """OpenMetrics text with timestamps, for ``promtool tsdb create-blocks-from openmetrics``.

    Names are those of jmx_exporter's example for Kafka (``kafka-2_0_0.yml``): ``kafka_<domain>_<type>_<name>`` in lower
    case, ``PerSec`` counters as ``_total``, histograms with a ``quantile`` and ``_count``. A histogram is a summary
    here, which has the same names, and ``_sum`` beside them.

    Args:
        rows: all there are: counts begin with the first.
        since_us, until_us: intervals that are written, by their start, the end exclusive.
    """
    families: dict[tuple[str, str], list[list[Row]]] = defaultdict(list)
    for of_bean in _series(rows).values():
        kind = of_bean[0]["kind"]
        families[family_name(object_name(of_bean[0]["mbean"]), kind), kind].append(of_bean)
    for (family, kind), members in sorted(families.items(), key=lambda item: item[0]):
        lines = [line for of_bean in members for line in _samples(family, of_bean, since_us, until_us)]
        if lines:
            type_name = {GAUGE: "gauge", METER: "counter"}.get(kind, "summary")
            yield f"# TYPE {family} {type_name}"
            yield f"# HELP {family} {escaped(_help(members))}"
            yield from lines
    yield "# EOF"


def family_name(name: ObjectName, kind: str) -> str:
    """Name of a metric family, without the suffixes of its samples."""
    stem = name.name.removesuffix("PerSec") if kind == METER else name.name
    return re.sub(r"[^a-z0-9_:]", "_", f"{name.domain.replace('.', '_')}_{name.type}_{stem}".lower())


def _help(members: Sequence[Sequence[Row]]) -> str:
    named = object_name(members[0][0]["mbean"])
    reasons = sorted({row["measured_reason"] for rows in members for row in rows if row["measured_reason"]})
    kinds = sorted({row["measured"] for rows in members for row in rows})
    measured = ", ".join(kind.replace("_", " ") for kind in kinds) + (f" ({', '.join(reasons)})" if reasons else "")
    return f"{named.domain}:type={named.type},name={named.name}, rebuilt from logs; {measured}"


def _samples(family: str, rows: Sequence[Row], since_us: int | None, until_us: int | None) -> Iterator[str]:
    first = rows[0]
    labels = {"cluster": first["cluster_id"], "instance": str(first["broker_id"]), "job": "kafka"}
    labels |= object_name(first["mbean"]).tags
    if first["kind"] == GAUGE:
        for row in rows:
            if _within(row, since_us, until_us):
                yield _sample(family, labels, row["value"], row)
        return
    total_s = 0.0
    for row, counted in _counted(rows):
        if first["kind"] != METER:
            total_s += row["event_count"] * row["mean_ms"]
        if not _within(row, since_us, until_us):
            continue
        if first["kind"] == METER:
            yield _sample(f"{family}_total", labels, counted.count, row)
        else:
            for column, share in PERCENTILES.items():
                yield _sample(family, labels | {"quantile": _quantile(share)}, row[column], row)
            yield _sample(f"{family}_count", labels, counted.count, row)
            yield _sample(f"{family}_sum", labels, round(total_s, 6), row)


def _quantile(share: float) -> str:
    """As the rule makes it of ``50thPercentile`` and ``999thPercentile``: 0.50, 0.999."""
    return f"{share:.2f}" if round(share, 2) == share else f"{share:g}"


def _sample(name: str, labels: Mapping[str, str], value: float, row: Row) -> str:
    text = ",".join(f'{re.sub("[^A-Za-z0-9_]", "_", key)}="{escaped(label)}"' for key, label in labels.items())
    return f"{name}{{{text}}} {_number(value)} {_end_s(row):.0f}"


def escaped(text: str) -> str:
    """The value of a label."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(round(float(value), 6))
