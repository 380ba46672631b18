"""Assumptions of an audit, and checks of them: all brokers' logs, all files, one clock each. Pure.

A rule whose assumptions fail is inconclusive, unless it found a violation: lines at hand prove violations.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import PurePath
from typing import Any, TypeVar

from highwater.pipelines.base.values import UNKNOWN_CLUSTER
from highwater.pipelines.cluster.premises import MINUTE_US, LogFile, Stretch
from highwater.pipelines.kafka.releases import release_of
from highwater.pipelines.kafka.versions import ASSUMED
from highwater.pipelines.rules.holes import Hole

#: Names of files, or reasons, that one sentence lists.
NAMED_MAX = 5
HOUR_US = 3_600_000_000
#: A gap in a series of rotated files counts if this many files are on each side of it in a row, and this many times as
#: many files are there as are missing.
IN_A_ROW = 3
DENSE = 5

#: `server.log.2026-11-20-14`, `server.log.2026-11-20`, `server.log.3`; each also compressed.
_ROTATED = re.compile(
    r"(?P<series>.+?\.(?:log|out))\.(?:(?P<day>\d{4}-\d\d-\d\d)(?:-(?P<hour>\d\d))?|(?P<number>\d{1,4}))(?:\.gz)?"
)


#: Cluster, broker and kind of a log.
_Log = tuple[str, int | None, str]
#: A row that begins with its cluster.
One = TypeVar("One", bound=tuple[Any, ...])


def doubts(
    clusters: Iterable[str],
    files: Iterable[LogFile],
    named: Mapping[str, Iterable[int]],
    versions: Mapping[tuple[str, int], str],
    clock_steps: Iterable[tuple[str, int, float]],
    quarantined: Iterable[tuple[str, str]] = (),
    holes: Iterable[Hole] = (),
    stretches: Iterable[Stretch] = (),
    starts: Iterable[tuple[str, int, int]] = (),
) -> dict[str, tuple[str, ...]]:
    """Return by cluster why its verdict cannot be clean, one sentence each. Empty if every assumption is met.

    Args:
        clusters: clusters to judge. A file of an unknown cluster counts for the only cluster, or for none.
        files: all log files that were read.
        named: by cluster, brokers that the logs name as leader, replica or ISR member.
        versions: Kafka version by (cluster, broker).
        clock_steps: (cluster, broker, seconds) by which a clock was set back.
        quarantined: (cluster, path) of files that were excluded because they were not read as declared.
        holes: log lines known to be missing. A hole of an unknown cluster counts for every cluster.
        stretches: when each broker wrote to each kind of log.
        starts: (cluster, broker, time in us) of each broker start.
    """
    judged = sorted(clusters)
    read = [(file.cluster_id, file) for file in files]
    steps, left_out, missing = list(clock_steps), list(quarantined), list(holes)
    hours_by_log, all_starts = _group_hours(stretches), tuple(starts)

    def of(cluster_id: str, rows: Iterable[One]) -> list[One]:
        return [row for row in rows if row[0] == cluster_id or len(judged) == 1]

    def doubts_of(cluster_id: str) -> Iterator[str]:
        logs = [file for _, file in of(cluster_id, read)]
        yield from _find_missing_brokers(logs, dict(of(cluster_id, named.items())))
        yield from _find_unknown_versions(logs, versions)
        yield from _find_missing_files(logs, hours_by_log, all_starts)
        yield from _report_steps(of(cluster_id, steps))
        paths = sorted(path for _, path in of(cluster_id, left_out))
        if paths:
            yield f"files are in quarantine and left out: {_format_list(paths)}; see `highwater quality`"
        yield from (hole.message for hole in missing if hole.cluster_id == UNKNOWN_CLUSTER or of(cluster_id, [hole]))

    return {cluster_id: tuple(doubts_of(cluster_id)) for cluster_id in judged}


def _find_missing_brokers(files: Iterable[LogFile], named: Mapping[str, Iterable[int]]) -> Iterator[str]:
    with_files: dict[str, set[int]] = defaultdict(set)
    for file in files:
        if file.broker_id is not None:
            with_files[file.cluster_id].add(file.broker_id)
    for cluster_id, brokers in sorted(named.items()):
        missing = sorted(set(brokers) - with_files[cluster_id])
        if missing:
            listed = ", ".join(map(str, missing[:NAMED_MAX])) + (", ..." if len(missing) > NAMED_MAX else "")
            yield (
                f"the logs name broker{'s' if len(missing) > 1 else ''} {listed} of cluster {cluster_id}, whose own "
                "logs are not there: add them"
            )


def _find_unknown_versions(files: Iterable[LogFile], versions: Mapping[tuple[str, int], str]) -> Iterator[str]:
    nodes = {(file.cluster_id, file.broker_id) for file in files if file.broker_id is not None}
    unknown = sorted(node for node in nodes if release_of(versions.get(node)) is None)
    assumed = ".".join(map(str, ASSUMED))
    for cluster_id, broker_id in unknown[:NAMED_MAX]:
        version = versions.get((cluster_id, broker_id))
        what = (
            f"broker {broker_id} of cluster {cluster_id} logs Kafka version {version}, which is of no known release"
            if version is not None
            else f"no line shows the Kafka version of broker {broker_id} of cluster {cluster_id}"
        )
        remedy = "" if version is not None else "; add the server.log of its last start"
        yield f"{what}: assumed are the rules of {assumed}, and nothing is claimed by them{remedy}"


def _find_missing_files(
    files: Iterable[LogFile], hours_by_log: Mapping[_Log, set[int]], starts: Collection[tuple[str, int, int]]
) -> Iterator[str]:
    """Yield messages about missing files in series of rotated logs.

    A missing number is a gap. So is an hour without a file in which the broker wrote to other logs. An hour or day
    without any line may be missing if the series has a file for almost every other one.
    """
    by_series: dict[tuple[str, str], list[tuple[LogFile, re.Match[str]]]] = defaultdict(list)
    by_folder: dict[str, list[LogFile]] = defaultdict(list)
    for file in files:
        path = PurePath(file.path)
        by_folder[str(path.parent)].append(file)
        match = _ROTATED.fullmatch(path.name)
        if match is not None:
            by_series[str(path.parent), match["series"]].append((file, match))
    gaps: list[str] = []
    possible: list[str] = []
    for (folder, series), matches in sorted(by_series.items()):
        gaps += [f"{folder}/{series}.{number}" for number in _find_left_out(match["number"] for _, match in matches)]
        if matches[0][0].kind in ("server", "kafka-request"):
            gaps += [
                f"{folder}/{series}.{hour}" for hour in _find_silent_hours(matches, by_folder[folder], hours_by_log)
            ]
            possible += [f"{folder}/{series}.{name}" for name in _find_left_out_times(matches, starts)]
    if gaps:
        yield f"rotated files are missing: {_format_list(gaps)}"
    if possible := [name for name in possible if name not in gaps]:
        yield (
            f"rotated files may be missing: {_format_list(possible)}; no line shows that the broker was down or idle "
            "then: add them if they exist"
        )


def _format_list(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return f"{', '.join(names[:NAMED_MAX])}{more}"


def _find_left_out(numbers: Iterable[str | None]) -> list[int]:
    present = {int(number) for number in numbers if number is not None}
    return sorted(set(range(1, max(present) + 1)) - present) if present else []


def _group_hours(stretches: Iterable[Stretch]) -> dict[_Log, set[int]]:
    """Return by (cluster, broker, kind of log) the hours, since the epoch, with log lines."""
    hours: dict[_Log, set[int]] = defaultdict(set)
    for stretch in stretches:
        log = stretch.cluster_id, stretch.broker_id, stretch.file_kind
        hours[log].update(range(stretch.first_us // HOUR_US, stretch.last_us // HOUR_US + 1))
    return hours


def _find_silent_hours(
    matches: Iterable[tuple[LogFile, re.Match[str]]],
    neighbours: Iterable[LogFile],
    hours_by_log: Mapping[_Log, set[int]],
) -> list[str]:
    """Return messages about hours without a file in an hourly series, in which another log of the broker has lines."""
    hours = {
        file.first_us // HOUR_US: f"{match['day']}-{match['hour']}"
        for file, match in matches
        if match["hour"] is not None and file.first_us is not None
    }
    if not hours:
        return []
    others = {(file.cluster_id, file.broker_id, file.kind) for file in neighbours if file.broker_id is not None}
    others -= {(file.cluster_id, file.broker_id, file.kind) for file, _ in matches}
    written_hours = set().union(*(hours_by_log.get(log, ()) for log in others))
    silent = [hour for hour in sorted(written_hours - hours.keys()) if min(hours) < hour < max(hours)]
    return [datetime.fromtimestamp(hour * 3600, UTC).strftime("%Y-%m-%d-%H") for hour in silent]


def _find_left_out_times(
    matches: Iterable[tuple[LogFile, re.Match[str]]], starts: Iterable[tuple[str, int, int]]
) -> list[str]:
    """Return messages about hours or days missing in a series of rotated files that is otherwise nearly complete.

    In that time the broker was idle or down, or its file is missing. A broker that was down logs a start.
    """
    rotated = sorted(
        (name, file.first_us, file.last_us, match["hour"] is not None, file)
        for file, match in matches
        if (name := _parse_name_time(match)) is not None and file.first_us is not None and file.last_us is not None
    )
    if not rotated or len({is_hourly for *_, is_hourly, _ in rotated}) > 1:
        return []
    *_, is_hourly, one = rotated[0]
    step = timedelta(hours=1) if is_hourly else timedelta(days=1)
    step_us = step // timedelta(microseconds=1)
    started = [us for cluster_id, broker_id, us in starts if (cluster_id, broker_id) == (one.cluster_id, one.broker_id)]
    rows: list[int] = [1]
    gaps: list[tuple[datetime, int, bool]] = []
    for before, after in pairwise(rotated):
        count = (after[0] - before[0]) // step - 1
        if count < 1:
            rows[-1] += 1
            continue
        # The hour that a clock skips in spring has no file. A broker may start as the file begins.
        is_long = after[1] - before[2] >= step_us
        is_started = any(before[2] < us <= after[1] + MINUTE_US for us in started)
        gaps.append((before[0] + step, count, is_long and not is_started))
        rows.append(1)
    is_dense = DENSE * sum(count for _, count, _ in gaps) <= len(rotated)
    names = []
    for (begin, count, is_open), around in zip(gaps, pairwise(rows), strict=True):
        if is_dense and is_open and min(around) >= IN_A_ROW:
            names += [begin + step * number for number in range(count)]
    return [name.strftime("%Y-%m-%d-%H" if is_hourly else "%Y-%m-%d") for name in names]


def _parse_name_time(match: re.Match[str]) -> datetime | None:
    """Return the time in a rotated file's name, on the broker's wall clock. None if the name has no valid time."""
    try:
        return datetime.fromisoformat(f"{match['day']}T{match['hour'] or '00'}:00").replace(tzinfo=UTC)
    except ValueError:  # No day, or digits that are none.
        return None


def _report_steps(clock_steps: Iterable[tuple[str, int, float]]) -> Iterator[str]:
    for cluster_id, broker_id, seconds in sorted(clock_steps)[:NAMED_MAX]:
        yield (
            f"the clock of broker {broker_id} of cluster {cluster_id} was set back by {seconds:.0f} s: the order of "
            "what it logged around then is not known"
        )
