"""Find logs that are silent while their broker does what it used to log. Pure.

A log has a rhythm of its own: a request log has lines all the time, a server log at default levels has none for hours.
So a silence is judged by the same work. Fetches of followers, fetches of the broker and produces are seen in request
logs, of this broker or of others. Where a kind of line has always accompanied such work, and once does not, lines are
missing. A broker that is paused or killed does no such work.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import combinations
from operator import attrgetter
from typing import Final, NamedTuple

from highwater.pipelines.base.instants import NEVER_US, SECOND_US
from highwater.pipelines.base.values import iso_utc
from highwater.pipelines.cluster.premises import (
    GROWTH,
    LOW_LEVELS,
    PRODUCE,
    REQUEST_FILE,
    SHUTTING_DOWN,
    STARTING,
    FetchRun,
    LifecycleRow,
    Stretch,
)
from highwater.pipelines.kafka.seals import Broker
from highwater.pipelines.rules.holes import EDGE_US, SILENT, Hole, between
from highwater.pipelines.rules.spans import Silence, Spans, covered_time, length_of, merge
from highwater.pipelines.rules.vanished import RHYTHM, find_absent, find_vanished

#: Work continues over gaps up to this: a fetch waits for half a second, and its line may be late.
WORK_GAP_US: Final = 2_000_000
#: The time with lines is longer than a silence by this factor. Retries in every second, for a while, stay below 3.
ENOUGH: Final = 5
#: Share of a silence during which a work has to continue.
SAME: Final = 0.9
#: A broker that logged so shortly before and after an instant was alive. One that starts or stops may miss lines.
ALIVE_US: Final = 10_000_000
TURN_US: Final = 60_000_000
_LOST: Final = {
    "server": "ISR changes, truncations, high watermarks, starts and stops",
    "state-change": "changes of leaders and ISRs",
    "controller": "elections and failures of brokers",
    REQUEST_FILE: "acknowledged produces",
}
#: Logs whose TRACE and DEBUG come from work of the controller. Fetches and produces do not show it.
_OF_CONTROLLERS: Final = ("controller", "state-change")
#: Work that is compared with produces only.
APPENDS: Final = "records are appended to its partitions"


def silent_logs(
    stretches: Iterable[Stretch], runs: Iterable[FetchRun], topic_names: Mapping[tuple[str, str], str]
) -> list[Hole]:
    """Return gaps (`Hole`) in logs without lines while their broker did work that it used to log.

    Args:
        stretches, runs, topic_names: as in `pipelines.cluster.premises.Premises`: times of lines and of work, fetches,
            and topic names by (cluster, topic id).
    """
    works, voices = _collect_works(runs), defaultdict(list)
    for stretch in stretches:
        broker, span = (stretch.cluster_id, stretch.broker_id), (stretch.first_us, stretch.last_us)
        if stretch.detail == GROWTH:
            if not _is_internal(stretch, topic_names):
                works[broker, APPENDS].append(span)
        elif stretch.detail == PRODUCE:
            works[broker, "it answers produces"].append(span)
            voices[broker, stretch.file_kind, PRODUCE].append(span)
        elif stretch.file_kind != REQUEST_FILE:
            voices[broker, stretch.file_kind, ""].append(span)
            if stretch.detail.startswith(LOW_LEVELS) and stretch.file_kind not in _OF_CONTROLLERS:
                voices[broker, stretch.file_kind, stretch.detail].append(span)
    by_broker: dict[Broker, dict[str, Spans]] = defaultdict(dict)
    for (broker, work), spans in works.items():
        by_broker[broker][work] = merge(spans, WORK_GAP_US)
    holes = []
    by_detail: dict[tuple[str, str, str], dict[Broker, Spans]] = defaultdict(dict)
    for (broker, kind, detail), of_voice in sorted(voices.items()):
        if detail:
            by_detail[broker[0], kind, detail][broker] = merge(of_voice, 0)
        else:
            works_of = {work: of_work for work, of_work in by_broker[broker].items() if work != APPENDS}
            holes += [_make_hole(broker, kind, "", one) for one in find_silences(merge(of_voice, 0), works_of)]
    # A level comes before its loggers.
    for (cluster_id, kind, detail), of_brokers in sorted(by_detail.items(), key=lambda item: (" " in item[0][2], item)):
        is_produce = detail == PRODUCE
        of_works = {
            broker: {work: spans for work, spans in of_broker.items() if is_produce == (work == APPENDS)}
            for broker, of_broker in by_broker.items()
            if broker[0] == cluster_id
        }
        found = [*find_vanished(of_brokers, of_works), *(find_absent(of_brokers, of_works) if is_produce else ())]
        holes += [_make_hole(broker, kind, detail, one) for broker, one in found]
    return _drop_repeats(holes)


def _is_internal(stretch: Stretch, topic_names: Mapping[tuple[str, str], str]) -> bool:
    """Return True if the broker itself may have written the topic's records: internal topics."""
    topic = stretch.topic or ""
    if topic.startswith("id:"):
        topic = topic_names.get((stretch.cluster_id, topic.removeprefix("id:")), "__unknown")
    return topic.startswith("__")


def _collect_works(runs: Iterable[FetchRun]) -> dict[tuple[Broker, str], list[tuple[int, int]]]:
    works: dict[tuple[Broker, str], list[tuple[int, int]]] = defaultdict(list)
    for run in runs:
        if run.missing:
            continue
        span = run.first_us, run.last_us
        works[(run.cluster_id, run.broker_id), "its followers fetch from it"].append(span)
        works[(run.cluster_id, run.replica_id), "it fetches from other brokers"].append(span)
    return works


def find_silences(voice: Spans, works: Mapping[str, Spans]) -> Iterator[Silence]:
    """Yield silences of one kind of line, longer than all others during the same work.

    A silence's work is what the broker did during the whole silence. Lines at other times count if it did no more then.

    Args:
        voice: (start, end) times in which such lines were logged.
        works: by description, (start, end) times in which the broker did such work.
    """
    found: list[Silence] = []
    for size in range(1, len(works) + 1):
        for names in combinations(sorted(works), size):
            spans = _drop_larger(works, names)
            silences = [silence for span in spans for silence in _find_gaps(voice, *span)]
            longest = max(silences, key=length_of, default=(0, 0))
            length, total = length_of(longest), sum(map(length_of, spans))
            is_alone = sum(RHYTHM * length_of(other) >= length for other in silences) == 1
            is_same = all(covered_time(works[name], longest) >= SAME * length for name in names)
            is_long = length >= EDGE_US and total - length >= ENOUGH * length
            if is_long and is_alone and is_same:
                found.append(Silence(*longest, ", and ".join(names)))
    last = 0
    for silence in sorted(found):
        if silence.since_us >= last:
            yield silence
            last = silence.until_us


def _drop_larger(works: Mapping[str, Spans], names: Collection[str]) -> Spans:
    """Return the times in which the broker did one of the named works and no other."""
    edges = sorted(
        (at, 1 if is_begin else -1, name in names)
        for name, spans in works.items()
        for span in spans
        for at, is_begin in zip(span, (True, False), strict=True)
    )
    counts = {True: 0, False: 0}
    spans, last = [], 0
    for at, change, is_named in edges:
        if at > last and counts[True] and not counts[False]:
            spans.append((last, at))
        counts[is_named] += change
        last = at
    return merge(spans, 0)


def _find_gaps(voice: Spans, since_us: int, until_us: int) -> Iterator[tuple[int, int]]:
    """Yield the (start, end) parts of a time range without lines."""
    last = since_us
    for begin, end in voice:
        if begin > until_us:
            break
        if end < since_us:
            continue
        if begin > last:
            yield last, begin
        last = max(last, end)
    if last < until_us:
        yield last, until_us


class Leadership(NamedTuple):
    """A leadership that followers name and the leader itself did not log."""

    cluster_id: str
    broker_id: int
    kind: str | None  #: Kind of log in which brokers of the cluster log that they lead. None if none does.
    topic: str
    partition: int
    leader_epoch: int
    time_us: int  #: Of the first follower's line.
    next_us: int | None  #: When a later leader epoch was first named. None if never.


def unlogged_leaderships(
    named: Iterable[Leadership], stretches: Iterable[Stretch], lives: Iterable[LifecycleRow]
) -> list[Hole]:
    """Return a gap (`Hole`) for each log that lacks leadership lines of a live broker.

    A broker that is down or paused misses a leader epoch. So does one that receives the next epoch together with it.

    Args:
        named: leaderships that only followers name.
        stretches, lives: as in `pipelines.cluster.premises.Premises`: times of lines, and starts and stops of brokers.
    """
    logged: dict[Broker, list[tuple[int, int]]] = defaultdict(list)
    for stretch in stretches:
        if stretch.detail not in (PRODUCE, GROWTH):
            logged[stretch.cluster_id, stretch.broker_id].append((stretch.first_us, stretch.last_us))
    turns: dict[Broker, list[int]] = defaultdict(list)
    for life in lives:
        if life.event in (STARTING, SHUTTING_DOWN):
            turns[life.cluster_id, life.broker_id].append(life.time_us)
    missed: dict[tuple[Broker, str], list[Leadership]] = defaultdict(list)
    for one in named:
        broker = one.cluster_id, one.broker_id
        before, after = (one.time_us - ALIVE_US, one.time_us), (one.time_us + SECOND_US, one.time_us + ALIVE_US)
        is_alive = all(
            any(since <= end and begin <= until for since, until in logged[broker]) for begin, end in (before, after)
        )
        is_turning = any(abs(turn - one.time_us) <= TURN_US for turn in turns[broker])
        if one.kind and is_alive and not is_turning and (one.next_us is None or one.next_us > after[1]):
            missed[broker, one.kind].append(one)
    holes = []
    for (broker, kind), of_log in sorted(missed.items()):
        cluster_id, broker_id = broker
        first, last = min(one.time_us for one in of_log), max(one.time_us for one in of_log)
        example = min(of_log)
        message = (
            f"broker {broker_id}'s {kind} log of cluster {cluster_id} lacks lines{between(first, last)}: followers "
            f"name it as leader {len(of_log)} times, such as of {example.topic}-{example.partition} in epoch "
            f"{example.leader_epoch}; add the lines"
        )
        holes.append(Hole(cluster_id, broker_id, kind, SILENT, first, last, len(of_log), message))
    return holes


class Unpaired(NamedTuple):
    """A broker's line without its counterpart in another log of that broker.

    A replica that changes its role logs the epoch, and the removal of its fetcher. An added fetcher has such a change
    before it. All of 13,000 changes in the corpora have both lines.
    """

    cluster_id: str
    broker_id: int
    kind: str  #: Kind of log in which this broker logs such counterparts.
    other_kind: str  #: Kind of log with the line.
    line: str  #: `CHANGE` or `ADDED`.
    topic: str
    partition: int
    time_us: int
    paired: int  #: Lines of this kind and broker that have their counterpart.


#: `Unpaired.line`.
CHANGE, ADDED = "change", "added"


def unpaired_silences(
    unpaired: Iterable[Unpaired], stretches: Iterable[Stretch], lives: Iterable[LifecycleRow]
) -> list[Hole]:
    """Return a gap (`Hole`) for each silent log of a live broker whose other log has lines that belong in both.

    Args:
        unpaired: lines without their counterpart.
        stretches, lives: as in `pipelines.cluster.premises.Premises`: times of lines, and starts and stops of brokers.
    """
    spans: dict[tuple[Broker, str], list[tuple[int, int]]] = defaultdict(list)
    for stretch in stretches:
        if stretch.detail not in (PRODUCE, GROWTH):
            log = (stretch.cluster_id, stretch.broker_id), stretch.file_kind
            spans[log].append((stretch.first_us, stretch.last_us))
    voices = {log: merge(of_log, 0) for log, of_log in spans.items()}
    starts: dict[Broker, list[int]] = defaultdict(list)
    for life in lives:
        if life.event == STARTING:
            starts[life.cluster_id, life.broker_id].append(life.time_us)
    lines: dict[tuple[Broker, str, int, int | None], list[Unpaired]] = defaultdict(list)
    for one in unpaired:
        broker = one.cluster_id, one.broker_id
        silence = _find_silence(voices.get((broker, one.kind), ()), one.time_us)
        others = [span for log, of_log in voices.items() if log[0] == broker and log[1] != one.kind for span in of_log]
        if silence is not None and one.paired >= ENOUGH and _is_continued(one, others, starts[broker]):
            lines[broker, one.kind, *silence].append(one)
    holes = []
    for (broker, kind, since_us, until_us), of_silence in sorted(lines.items(), key=lambda item: item[0][:3]):
        last = max(of_silence, key=attrgetter("time_us"))
        until_us = last.time_us if until_us is None else until_us
        if until_us - since_us >= EDGE_US:
            work = (
                f"its {last.other_kind} log has {len(of_silence)} changes of replicas, such as of "
                f"{last.topic}-{last.partition} at {iso_utc(last.time_us)}"
            )
            holes.append(_make_hole(broker, kind, "", Silence(since_us, until_us, work)))
    return holes


def _find_silence(voice: Spans, time_us: int) -> tuple[int, int | None] | None:
    """Return (end of the last line before, start of the next line after) a time. None if a line is near.

    Also None if the log begins later. The second value is None after the last line.
    """
    before, after = None, None
    for since, until in voice:
        if since <= time_us + SECOND_US and time_us - SECOND_US <= until:
            return None
        if until < time_us:
            before = until
        elif after is None:
            after = since
    return None if before is None else (before, after)


def _is_continued(one: Unpaired, others: Iterable[tuple[int, int]], starts: Iterable[int]) -> bool:
    """Return True if other logs show that the broker lived until the counterpart of a line was due.

    A fetcher is added after the role change and removed up to half a second after it. A paused broker takes longer.
    """
    if one.line == ADDED:
        return True
    end_us = min((start for start in starts if start > one.time_us), default=NEVER_US)
    later = [(since, min(until, end_us)) for since, until in others if since < end_us and until > one.time_us]
    is_paused = all(since > one.time_us + ALIVE_US for since, _ in later)
    return not is_paused and any(until >= one.time_us + EDGE_US for _, until in later)


def _make_hole(broker: Broker, kind: str, detail: str, silence: Silence) -> Hole:
    cluster_id, broker_id = broker
    span = silence.since_us, silence.until_us
    what = "line" if not detail else f"{detail} line"
    message = (
        f"broker {broker_id}'s {kind} log of cluster {cluster_id} has no {what}{between(*span)}, while {silence.work}: "
        f"{_LOST.get(kind, 'lines')} may be missing; add the lines"
    )
    return Hole(cluster_id, broker_id, kind, SILENT, *span, None, message)


def _drop_repeats(holes: Iterable[Hole]) -> list[Hole]:
    """Return holes without level holes that are inside another hole of the same log."""
    kept: list[Hole] = []
    for hole in holes:
        log = hole.cluster_id, hole.broker_id, hole.kind
        is_known = any(
            log == (other.cluster_id, other.broker_id, other.kind)
            and (other.since_us or 0) <= (hole.until_us or 0)
            and (hole.since_us or 0) <= (other.until_us or 0)
            for other in kept
        )
        if not is_known:
            kept.append(hole)
    return kept
