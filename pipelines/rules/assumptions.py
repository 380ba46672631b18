"""What an audit takes for granted, and whether it holds: all brokers' logs, all files, one clock each. Pure.

A rule whose assumptions fail is inconclusive, unless it found a violation: those are proven by lines that are there.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any, TypeVar

from pipelines.base.values import UNKNOWN_CLUSTER
from pipelines.cluster.premises import LogFile, Stretch
from pipelines.kafka.releases import release_of
from pipelines.kafka.versions import ASSUMED
from pipelines.rules.holes import Hole

#: Names of files, or reasons, that one sentence lists.
NAMED_MAX = 5
HOUR_US = 3_600_000_000

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
) -> dict[str, tuple[str, ...]]:
    """Why nothing firm can be said of each cluster, one sentence each; none where every assumption holds.

    Args:
        clusters: those that are judged. A file that nothing places is of the only one there is, or of none.
        files: every log file that was read.
        named: brokers that the logs name as leader, replica or member of an ISR, by cluster.
        versions: Kafka version by (cluster, broker).
        clock_steps: cluster, broker and by how many seconds its clock was set back.
        quarantined: cluster and path of files that were not read as declared, and are left out.
        holes: what must have been logged, and was not read; one that nothing places is of every cluster.
        stretches: when each broker logged to each kind of log.
    """
    judged = sorted(clusters)
    read = [(file.cluster_id, file) for file in files]
    steps, left_out, missing = list(clock_steps), list(quarantined), list(holes)
    hours_by_log = _hours_by_log(stretches)

    def of(cluster_id: str, rows: Iterable[One]) -> list[One]:
        return [row for row in rows if row[0] == cluster_id or len(judged) == 1]

    def doubts_of(cluster_id: str) -> Iterator[str]:
        logs = [file for _, file in of(cluster_id, read)]
        yield from _missing_brokers(logs, dict(of(cluster_id, named.items())))
        yield from _unknown_versions(logs, versions)
        yield from _missing_files(logs, hours_by_log)
        yield from _steps(of(cluster_id, steps))
        paths = sorted(path for _, path in of(cluster_id, left_out))
        if paths:
            yield f"files are in quarantine and left out: {_listed(paths)}; see `highwater quality`"
        yield from (hole.message for hole in missing if hole.cluster_id == UNKNOWN_CLUSTER or of(cluster_id, [hole]))

    return {cluster_id: tuple(doubts_of(cluster_id)) for cluster_id in judged}


def _missing_brokers(files: Iterable[LogFile], named: Mapping[str, Iterable[int]]) -> Iterator[str]:
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


def _unknown_versions(files: Iterable[LogFile], versions: Mapping[tuple[str, int], str]) -> Iterator[str]:
    nodes = {(file.cluster_id, file.broker_id) for file in files if file.broker_id is not None}
    unknown = sorted(node for node in nodes if release_of(versions.get(node)) is None)
    assumed = ".".join(map(str, ASSUMED))
    for cluster_id, broker_id in unknown[:NAMED_MAX]:
        version = versions.get((cluster_id, broker_id))
        what = (
            f"broker {broker_id} of cluster {cluster_id} logs Kafka version {version}, which is of no known release"
            if version is not None
            else f"no line tells the Kafka version of broker {broker_id} of cluster {cluster_id}"
        )
        remedy = "" if version is not None else "; add the server.log of its last start"
        yield f"{what}: its rules are taken for those of {assumed}, and nothing is claimed by them{remedy}"


def _missing_files(files: Iterable[LogFile], hours_by_log: Mapping[_Log, set[int]]) -> Iterator[str]:
    """A gap in a series of rotated files: a number that is left out, or an hour in which the broker wrote elsewhere."""
    by_series: dict[tuple[str, str], list[tuple[LogFile, re.Match[str]]]] = defaultdict(list)
    by_folder: dict[str, list[LogFile]] = defaultdict(list)
    for file in files:
        path = PurePath(file.path)
        by_folder[str(path.parent)].append(file)
        match = _ROTATED.fullmatch(path.name)
        if match is not None:
            by_series[str(path.parent), match["series"]].append((file, match))
    gaps = []
    for (folder, series), matches in sorted(by_series.items()):
        gaps += [f"{folder}/{series}.{number}" for number in _left_out(match["number"] for _, match in matches)]
        if matches[0][0].kind in ("server", "kafka-request"):
            gaps += [f"{folder}/{series}.{hour}" for hour in _silent_hours(matches, by_folder[folder], hours_by_log)]
    if gaps:
        yield f"rotated files are missing: {_listed(gaps)}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return f"{', '.join(names[:NAMED_MAX])}{more}"


def _left_out(numbers: Iterable[str | None]) -> list[int]:
    present = {int(number) for number in numbers if number is not None}
    return sorted(set(range(1, max(present) + 1)) - present) if present else []


def _hours_by_log(stretches: Iterable[Stretch]) -> dict[_Log, set[int]]:
    """Return the hours in which each broker logged to each kind of log."""
    hours: dict[_Log, set[int]] = defaultdict(set)
    for stretch in stretches:
        log = stretch.cluster_id, stretch.broker_id, stretch.file_kind
        hours[log].update(range(stretch.first_us // HOUR_US, stretch.last_us // HOUR_US + 1))
    return hours


def _silent_hours(
    matches: Iterable[tuple[LogFile, re.Match[str]]],
    neighbours: Iterable[LogFile],
    hours_by_log: Mapping[_Log, set[int]],
) -> list[str]:
    """Return hours between two files of an hourly series without a file, while another log of the broker has lines."""
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


def _steps(clock_steps: Iterable[tuple[str, int, float]]) -> Iterator[str]:
    for cluster_id, broker_id, seconds in sorted(clock_steps)[:NAMED_MAX]:
        yield (
            f"the clock of broker {broker_id} of cluster {cluster_id} was set back by {seconds:.0f} s: the order of "
            "what it logged around then is not known"
        )
