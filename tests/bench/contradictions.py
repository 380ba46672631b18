"""Incidents of one report that exclude each other: ``python -m tests.bench.contradictions REPORT...``

Each kind claims a state of its nodes and partitions, for a time. No node has two states at once, and nothing begins
before its cause. The checks read fields of report.json, and the clock times of sentences. Prints a line for each pair,
and returns 1 if there is one.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]

#: Clocks of two nodes, and bounds of one instant, may differ by this much, seconds.
SLACK_S = 2.0
#: State of the process of each node that a kind names.
_PROCESS = {
    "broker_died": "gone",
    "broker_stopped": "gone",
    "broker_stalled": "silent",
    "broker_fenced": "alive",
    "logs_end_early": "unseen",
}
#: Kinds that show lines of the process, at their begin.
_WRITES = ("broker_stalled", "broker_fenced", "session_expired", "heartbeats_not_sent", "broker_stopped", "broker_died")
#: States that one process does not have at once. A process that others miss may be dead: both are claimed of its logs.
_EXCLUSIVE = ({"gone", "silent"}, {"gone", "alive"}, {"unseen", "gone"}, {"unseen", "silent"}, {"unseen", "alive"})
#: State of each partition that a kind names.
_LED = {"partitions_without_leader": False, "leader_not_fenced": True}
_CLOCK = re.compile(r"\b(\d\d):(\d\d):(\d\d)\b")
#: A node that starts writes lines before it is up.
_START_S = "start_s"


def contradictions(rows: Iterable[Row]) -> list[str]:
    """Return pairs of incidents that cannot both be true, each as a sentence."""
    claims = [_Claim(row) for row in rows]
    found = [
        f"{why}: {one.row['sentence']} | {other.row['sentence']}"
        for one, other in combinations(claims, 2)
        if one.cluster == other.cluster and (why := _excludes(one, other) or _excludes(other, one))
    ]
    by_id = {(claim.cluster, claim.row["incident_id"]): claim for claim in claims}
    for effect in claims:
        cause = by_id.get((effect.cluster, effect.row["caused_by"]))
        if cause is not None and cause.earliest > effect.end + SLACK_S:
            found.append(f"over before its cause: {effect.row['sentence']} | {cause.row['sentence']}")
    return found


class _Claim:
    """An incident, with its times in seconds."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.kind: str = row["kind"]
        self.sentence: str = row["sentence"]
        self.cluster = row["cluster_id"]
        self.brokers = frozenset(row["broker_ids"])
        self.partitions = frozenset(row["topic_partitions"])
        self.start = datetime.fromisoformat(row["start_time"]).timestamp()
        ended = row["end_time"]
        self.end = float("inf") if ended is None else datetime.fromisoformat(ended).timestamp()

    @property
    def gone_until(self) -> float:
        """Return when a process that was gone wrote again at the latest."""
        return self.end - float(self.row["figures"].get(_START_S, 0.0))

    @property
    def earliest(self) -> float:
        """Return the earliest instant of its day that the sentence names, or the begin."""
        day = datetime.fromtimestamp(self.start, UTC)
        named = [day.replace(hour=int(h), minute=int(m), second=int(s)) for h, m, s in _CLOCK.findall(self.sentence)]
        return min([self.start, *(time.timestamp() for time in named)])

    def overlap_s(self, other: _Claim) -> float:
        """Return for how long both are claimed."""
        return min(self.gone_until, other.gone_until) - max(self.start, other.start)


def _excludes(one: _Claim, other: _Claim) -> str:
    """Return why two incidents exclude each other; empty if they do not."""
    shared = one.overlap_s(other)
    # The time of several nodes is that of all of them.
    if one.brokers == other.brokers and len(one.brokers) == 1:
        states = {_PROCESS.get(one.kind, ""), _PROCESS.get(other.kind, "")}
        if shared > SLACK_S and states in _EXCLUSIVE:
            return f"one node {' and '.join(sorted(states))} at once"
        is_gone = _PROCESS.get(one.kind) in ("gone", "unseen")
        if is_gone and other.kind in _WRITES and one.start + SLACK_S < other.start < one.gone_until - SLACK_S:
            return "a node that is gone writes lines"
    if one.partitions & other.partitions and shared > SLACK_S:
        if one.kind in _LED and other.kind in _LED and one is not other:
            return "one partition twice at once" if one.kind == other.kind else "led and without a leader at once"
        if one.kind == other.kind == "isr_shrunk" and one.brokers == other.brokers:
            return "one absence twice at once"
    return ""


def main(arguments: Sequence[str]) -> int:
    """Print the contradictions of each report."""
    found = [
        (path, text) for path in arguments for text in contradictions(json.loads(Path(path).read_text())["incidents"])
    ]
    for path, text in found:
        print(f"{path}: {text}")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
