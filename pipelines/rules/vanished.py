"""Find kinds of lines that vanish for a while: levels, loggers and APIs that are logged again later. Pure.

An operator may switch a level on and off. So such a kind of line is judged between its first and its last line only,
and by its own work: work that all these lines are near. All brokers of a cluster are compared, since a broker rarely
does the same for long.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from itertools import pairwise
from typing import Final

from highwater.pipelines.kafka.seals import Broker
from highwater.pipelines.rules.holes import EDGE_US
from highwater.pipelines.rules.spans import Silence, Spans, covered_time, length_of, merge

#: A line may be so much later than the work that it shows.
NEAR_US: Final = 1_000_000
#: A silence is longer than any other by this factor. Where nothing is missing, the corpora stay below 3.
RHYTHM: Final = 5
#: Share of a kind of line that is near a work, from which on this work is its own.
OWN: Final = 0.95
#: Silences that are looked at, for each kind of line and work: the longest.
LOOKED_AT: Final = 20

#: A span, and the works that a broker does all the while.
Doing = tuple[int, int, Set[str]]
Works = Mapping[str, Spans]


def find_vanished(voices: Mapping[Broker, Spans], works: Mapping[Broker, Works]) -> Iterator[tuple[Broker, Silence]]:
    """Yield (broker, silence) of a kind of line during work that brings such lines at all other times.

    A silence is compared with times in which a broker did the same work and no more.

    Args:
        voices: by broker, (start, end) times in which this kind of line was logged.
        works: by broker and description, (start, end) times in which it did such work.
    """
    logged = [_Logged(broker, merge(voice, EDGE_US), works.get(broker, {})) for broker, voice in voices.items()]
    for name in _select_own_works(voices, works):
        gaps = [(one.time_of(gap, name, one.works), one, gap) for one in logged for gap in one.gaps]
        longest = sorted((gap for gap in gaps if gap[0] >= EDGE_US), key=lambda gap: -gap[0])[:LOOKED_AT]
        for length, one, gap in longest:
            allowed = {work for work in one.works if 2 * one.time_of(gap, work, one.works) >= length} | {name}
            missed = one.time_of(gap, name, allowed)
            silent = [(other.time_of(span, name, allowed), span) for _, other, span in gaps]
            # Where all brokers lack lines at once, these silences are one.
            others = [time for time, span in silent if 2 * covered_time([span], gap) < length_of(gap)]
            lines = sum(other.time_of(other.span, name, allowed) for other in logged) - sum(time for time, _ in silent)
            if missed >= EDGE_US and missed > RHYTHM * max(others, default=0) and lines >= missed:
                yield one.broker, Silence(gap[0] - NEAR_US, gap[1] + NEAR_US, name)


def find_absent(voices: Mapping[Broker, Spans], works: Mapping[Broker, Works]) -> Iterator[tuple[Broker, Silence]]:
    """Yield (broker, silence) for brokers that never log a kind of line, which others log during such work.

    Args:
        voices, works: see `find_vanished`.
    """
    for broker in sorted(works.keys() - voices.keys()):
        for work, spans in works[broker].items():
            if sum(map(length_of, spans)) >= EDGE_US:
                yield broker, Silence(spans[0][0], spans[-1][1], work)


class _Logged:
    """Lines of one kind by one broker, and its work between the first and last of them."""

    def __init__(self, broker: Broker, voice: Spans, works: Works) -> None:
        self.broker, self.works = broker, works
        self.span = voice[0][0], voice[-1][1]
        #: Spans without lines, but for their edges.
        self.gaps = [(before[1] + NEAR_US, after[0] - NEAR_US) for before, after in pairwise(voice)]
        self._doing = list(_doing(works))
        self._ends = [until for _, until, _ in self._doing]

    def time_of(self, span: tuple[int, int], wanted: str, allowed: Container[str]) -> int:
        """Return how long the broker did the wanted work within `span`, and nothing that is not allowed, us."""
        total = 0
        for place in range(bisect_left(self._ends, span[0]), len(self._doing)):
            since, until, names = self._doing[place]
            if since >= span[1]:
                break
            if wanted in names and all(name in allowed for name in names):
                total += max(0, min(until, span[1]) - max(since, span[0]))
        return total


def _doing(works: Works) -> Iterator[Doing]:
    """Yield (start, end, names of all works at that time), in time order."""
    edges = sorted(
        (at, is_begin, name)
        for name, spans in works.items()
        for since, until in merge(spans, NEAR_US)
        for at, is_begin in ((since, True), (until + NEAR_US, False))
    )
    names: frozenset[str] = frozenset()
    last = 0
    for at, is_begin, name in edges:
        if names and at > last:
            yield last, at, names
        names = names | {name} if is_begin else names - {name}
        last = at


def _select_own_works(voices: Mapping[Broker, Spans], works: Mapping[Broker, Works]) -> Sequence[str]:
    """Return the names of works without which this kind of line is not logged."""
    return [
        name
        for name in sorted({name for broker in voices for name in works.get(broker, {})})
        if _share(voices.items(), {broker: works.get(broker, {}).get(name, ()) for broker in voices}) >= OWN
    ]


def _share(voices: Iterable[tuple[Broker, Spans]], work: Mapping[Broker, Spans]) -> float:
    """Return the share of the lines' time that is near a work, 0 to 1."""
    near, total = 0, 0
    for broker, voice in voices:
        of_work = merge([(since - NEAR_US, until + NEAR_US) for since, until in work[broker]], 0)
        for span in merge([(since, until + NEAR_US) for since, until in voice], 0):
            near += covered_time(of_work, span)
            total += length_of(span)
    return near / total
