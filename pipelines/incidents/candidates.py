"""Lines at WARN or above before an incident without a cause: its nearest candidates. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from highwater.pipelines.incidents.facts import Facts
from highwater.pipelines.incidents.incident import INFO, LoggedIncident
from highwater.pipelines.incidents.kind import SHOWN_BY
from highwater.pipelines.incidents.loud_text import LoudText
from highwater.pipelines.incidents.questions import MOMENTS_MAX
from highwater.pipelines.incidents.words import lasting, shortened
from highwater.pipelines.messages.atlas import HOUSEKEEPING

#: Lines count this long before an incident, microseconds.
_BEFORE_US = 30_000_000
#: Characters of a line that a sentence shows.
_SHOWN_MAX = 600
#: A line belongs to an incident that begins at most this long after it, or ended this long before it, microseconds.
SLACK_US = 30_000_000
#: A line that precedes an incident by less has no distance worth a number, microseconds.
_AT_ONCE_US = 1_000_000


class _Candidate(NamedTuple):
    time_us: int
    who: str
    line: str


class Candidates:
    """Logged lines at WARN or above that are part of no incident and may explain one."""

    def __init__(self, facts: Facts, incidents: Iterable[LoggedIncident]) -> None:
        self._facts = facts
        self._reported: dict[tuple[str, str], list[LoggedIncident]] = defaultdict(list)
        for incident in incidents:
            self._reported[incident.cluster_id, incident.kind].append(incident)
        lines: Counter[tuple[str, str]] = Counter()
        for text in facts.loud_texts:
            lines[text.cluster_id, text.key] += text.lines
        self._texts = [
            text
            for text in facts.loud_texts
            if text.found is None or (text.found.message.part != HOUSEKEEPING and text.found.message.severity != INFO)
            # A text with more lines precedes everything.
            if text.is_of_node and lines[text.cluster_id, text.key] <= MOMENTS_MAX
        ]

    def nearest(self, incident: LoggedIncident) -> str:
        """Return sentences that quote the nearest line before an incident. Empty if there is none.

        Lines of brokers that have no part in the incident are left out.
        """
        lines = [*self._of_logs(incident), *self._of_containers(incident)]
        nearest = max(lines, key=lambda line: line.time_us, default=None)
        if nearest is None:
            return ""
        before_us = incident.start_us - nearest.time_us
        distance = "just" if before_us < _AT_ONCE_US else lasting(before_us)
        line = shortened(nearest.line.rstrip(". "), _SHOWN_MAX)
        end = "" if line.endswith("…") else "."
        return f"The logs do not show why. A line of {nearest.who}, {distance} before it: {line}{end}"

    def _of_logs(self, incident: LoggedIncident) -> Iterable[_Candidate]:
        own = {*incident.by, *incident.broker_ids}
        for text in self._texts:
            others = (other for other in incidents_with(text, self._reported) if other.kind != incident.kind)
            if text.cluster_id != incident.cluster_id or any(others):
                continue
            for row in text.moments:
                broker_id, time_us = row["broker_id"], row["first_time"]
                is_own = not own or broker_id is None or broker_id in own
                if is_own and 0 <= incident.start_us - time_us <= _BEFORE_US:
                    who = "a node" if broker_id is None else self._facts.named(text.cluster_id, [broker_id])
                    yield _Candidate(time_us, who, str(row["message"]).partition("\n")[0])

    def _of_containers(self, incident: LoggedIncident) -> Iterable[_Candidate]:
        own = {*incident.by, *incident.broker_ids}
        for row in self._facts.exits:
            is_own = row["cluster_id"] == incident.cluster_id and row["broker_id"] in own
            if is_own and 0 <= incident.start_us - row["time"] <= _BEFORE_US:
                name = self._facts.named(row["cluster_id"], [row["broker_id"]])
                yield _Candidate(row["time"], f"the host or container of {name}", row["text"])


def incidents_with(
    text: LoudText, reported: Mapping[tuple[str, str], Sequence[LoggedIncident]], kinds: Iterable[str] = ()
) -> Iterator[LoggedIncident]:
    """Yield the incidents that lines of one text are part of.

    Args:
        reported: incidents by cluster and kind of incident.
        kinds: further kinds of incident that the text may be part of.
    """
    own = {*text.kinds, *kinds}
    for name in own.union(*(SHOWN_BY.get(name, ()) for name in own)):
        for incident in reported.get((text.cluster_id, name), ()):
            has_ended = incident.end_us is not None and incident.end_us + SLACK_US < text.first_us
            if incident.start_us <= text.last_us + SLACK_US and not has_ended:
                yield incident
