"""What is true of a corpus, from beside its logs, and whether an audit says the same. The product never reads these.

``lost.json`` lists the acknowledged records that are gone; where there is none, `truth.toml` has what README and
NOTES.md say, and clients' histories tell which records of acks=1 were replaced. Everything that an audit accuses a
cluster of has to be among this, and all of this has to be found.
"""

from __future__ import annotations

import gzip
import json
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

#: Rules that say that an acknowledged record is gone.
LOSS = ("committed-data-lost", "acked-as-duplicate-of-another-batch")
LEADER_ONLY = "acked-by-leader-only-lost"
UNCLEAN = "unclean-election"
_SAID = Path(__file__).with_name("truth.toml")


class Place(NamedTuple):
    """Records that are about something true: of any of these rules; `offset_end` is after the last one."""

    rules: tuple[str, ...]
    topic: str
    partition: int
    offset_start: int
    offset_end: int


class Truth(NamedTuple):
    """What is true of a corpus."""

    broken: tuple[Place, ...] = ()  #: what an audit has to find
    #: rule and JIRA of what a bug of the release may bring about, wherever it does
    bugs: frozenset[tuple[str, str]] = frozenset()
    leader_only: tuple[Place, ...] = ()  #: records acknowledged by their leader alone (acks=1) that are gone
    uncleanly: bool = False  #: leaders were elected that were not in sync


class Judgement(NamedTuple):
    """How an audit's findings compare with the truth."""

    accused: tuple[str, ...]  #: violations, open cases and unclean elections that nothing true confirms
    missed: tuple[str, ...]  #: what is true, and in no violation
    leader_only_found: int  #: of `Truth.leader_only`, how many records are in an observation

    @property
    def agrees(self) -> bool:
        """Nobody is accused wrongly, and nothing is missed."""
        return not self.accused and not self.missed


def truth_of(corpus: Path) -> Truth:
    """The truth of a folder of logs.

    Raises:
        KeyError: its lost.json has an entry of another shape.
    """
    listed = corpus / "lost.json"
    lost = json.loads(listed.read_text(encoding="utf-8")) if listed.is_file() else _replaced(corpus)
    broken = [_lost(record, LOSS) for record in lost if record["acks"] == "all"]
    bugs: set[tuple[str, str]] = set()
    said = _said().get(corpus.name, {})
    for rule, places in said.items():
        for place in places:
            if rule == UNCLEAN:
                continue
            if place.startswith("KAFKA-"):
                bugs.add((rule, place))
            else:
                broken.append(_place(rule, place))
    leader_only = tuple(_lost(record, (LEADER_ONLY,)) for record in lost if record["acks"] == "1")
    return Truth(tuple(broken), frozenset(bugs), leader_only, UNCLEAN in said)


def _replaced(corpus: Path) -> list[dict[str, Any]]:
    """Records acknowledged with acks=1 in whose place consumers read another one, and never them."""
    history = corpus / "client-history.jsonl.gz"
    if not history.is_file():
        return []
    alone: list[dict[str, Any]] = []
    keys_read: dict[tuple[str, int, int], set[str]] = defaultdict(set)
    with gzip.open(history, "rt", encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            if record["kind"] == "consume":
                keys_read[record["topic"], record["partition"], record["offset"]].add(record["key"])
            elif record["kind"] == "produce" and record.get("acks") == "1" and record["error"] is None:
                alone.append(record)
    read = ((record, keys_read.get((record["topic"], record["partition"], record["offset"]))) for record in alone)
    return [record for record, keys in read if keys and record["key"] not in keys]


@cache
def _said() -> Mapping[str, Mapping[str, Sequence[str]]]:
    return tomllib.loads(_SAID.read_text(encoding="utf-8"))


def _lost(record: Mapping[str, Any], rules: tuple[str, ...]) -> Place:
    return Place(rules, record["topic"], record["partition"], record["offset"], record["offset"] + 1)


def _place(rule: str, text: str) -> Place:
    name, start, end = text.split()
    topic, _, partition = name.rpartition("-")
    return Place((rule,), topic, int(partition), int(start), int(end))


def judged(truth: Truth, findings: Iterable[Mapping[str, Any]]) -> Judgement:
    """Compare findings (rows of ``gold.violations``) with the truth; what follows from another one counts with it."""
    rows = [row for row in findings if row["implied_by"] is None]
    violations = [row for row in rows if row["severity"] == "violation"]
    suspected = [row for row in rows if row["severity"] in ("violation", "open")]
    unclean = [row for row in rows if row["rule_id"] == UNCLEAN and not truth.uncleanly]
    accused = [_described(row) for row in suspected if not _confirmed(truth, row)] + [
        _described(row) for row in unclean
    ]
    missed = _together(place for place in truth.broken if not any(_overlap(place, row) for row in violations))
    missed += [f"{rule} {bug}" for rule, bug in sorted(truth.bugs) if not _bug_named(rule, bug, violations)]
    observed = [row for row in rows if row["severity"] == "observation"]
    confirmed = sum(any(_overlap(place, row) for row in observed) for place in truth.leader_only)
    return Judgement(tuple(accused), tuple(missed), confirmed)


def _together(places: Iterable[Place]) -> list[str]:
    """One sentence for each partition."""
    groups: dict[tuple[tuple[str, ...], str, int], list[Place]] = defaultdict(list)
    for place in places:
        groups[place.rules, place.topic, place.partition].append(place)
    return [
        f"{' or '.join(rules)} {topic}-{partition}, {len(group)} places from {min(group, key=_start).offset_start} on"
        for (rules, topic, partition), group in groups.items()
    ]


def _start(place: Place) -> int:
    return place.offset_start


def _confirmed(truth: Truth, row: Mapping[str, Any]) -> bool:
    if (row["rule_id"], row["known_bug"]) in truth.bugs:
        return True
    return any(_overlap(place, row) for place in truth.broken)


def _overlap(place: Place, row: Mapping[str, Any]) -> bool:
    if row["rule_id"] not in place.rules or (row["topic"], row["partition"]) != (place.topic, place.partition):
        return False
    start = row["offset_start"]
    if start is None:
        return False
    end = row["offset_end"] if row["offset_end"] is not None else start + 1
    return bool(start < place.offset_end and place.offset_start < end)


def _bug_named(rule: str, bug: str, violations: Iterable[Mapping[str, Any]]) -> bool:
    return any((row["rule_id"], row["known_bug"]) == (rule, bug) for row in violations)


def _described(row: Mapping[str, Any]) -> str:
    where = "" if row["topic"] is None else f" {row['topic']}-{row['partition']}"
    offsets = "" if row["offset_start"] is None else f" {row['offset_start']} to {row['offset_end']}"
    return f"{row['severity']} {row['rule_id']}{where}{offsets}: {row['message']}"
