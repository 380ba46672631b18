"""Nodes of KRaft that the quorum has no place for, a quorum without a leader, and voters that change."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from highwater.pipelines.incidents.advice import is_open
from highwater.pipelines.incidents.episodes import Episode, before_shutdown, grouped
from highwater.pipelines.incidents.facts import Facts, Node, Row, node, place
from highwater.pipelines.incidents.incident import CRITICAL, INFO, MINOR, LoggedIncident, Place, Remedy
from highwater.pipelines.incidents.kind import ABSENT, Signature, kind
from highwater.pipelines.incidents.words import clock, lasting, listed, number, numbered, sentence, span, times
from highwater.pipelines.timelines.processes import BOOT_US

_STATE = r"\[RaftManager (?:node)?[iI]d=\d+\] Completed transition to "
_SEARCHING = Signature(
    "quorum_node_without_leader",
    ("QuorumState",),
    _STATE + r"(?:Unattached|Candidate|Prospective|Voted)(?:State)?\(.*",
    "org.apache.kafka.raft.QuorumState.durableTransitionTo, memoryTransitionTo",
    ("INFO",),
    gap_s=30,
)
_FOUND = Signature(
    "quorum_node_with_leader",
    ("QuorumState",),
    _STATE + r"(?:Leader|Follower)(?:State)?\(.*",
    "org.apache.kafka.raft.QuorumState.durableTransitionTo, memoryTransitionTo",
    ("INFO",),
    gap_s=1,
)
_REFUSED = Signature(
    "registration_refused",
    ("BrokerLifecycleManager", "BrokerRegistrationResponseHandler", "BrokerRegistrationResponseEvent"),
    r"(?:\[[^\]]*\]:? )?Unable to register broker -?\d+ because the controller returned error (?P<key>[A-Z_]+)",
    "kafka.server.BrokerLifecycleManager.BrokerRegistrationResponseHandler.onComplete",
    ("INFO", "WARN", "ERROR"),
    gap_s=60,
)
#: A broker that was killed gets this error until the session of its former process has expired.
_OF_RESTARTS = "DUPLICATE_BROKER_REGISTRATION"
#: What an error means, and what to do.
_REFUSALS = {
    _OF_RESTARTS: (
        "another live broker has this node.id, or the former process of this one is not fenced yet",
        "Check for two brokers with one node.id. A former process is fenced after broker.session.timeout.ms.",
    ),
    "UNSUPPORTED_VERSION": (
        "the broker's release does not support the cluster's metadata.version",
        "Install the release of the other nodes on this broker.",
    ),
    "INCONSISTENT_CLUSTER_ID": (
        "the data directories of the two nodes belong to different clusters",
        "Compare meta.properties with the controllers' cluster id, and controller.quorum.voters. Delete no data.",
    ),
    "CLUSTER_AUTHORIZATION_FAILED": (
        "the user of the node that asks may not act on the cluster",
        "Add the principal of that node to super.users on all nodes, or give it ClusterAction on the cluster.",
    ),
}
#: Entry of the line about an answer of a voter with an error.
_ANSWERED = "raft.quorum_unexpected_error"
_TO_DO = "Look at the log of the active controller at that time: it logs why it refuses a broker."
_EPOCH = re.compile(r"\bepoch=(\d{1,10})\b")
_VOTERS = re.compile(r"voters=\[(\d{1,10}(?:, ?\d{1,10})*+)\]")
#: A quorum that starts, or changes its leader, has none for less time, microseconds.
_LASTS_US = 10_000_000
_LINES_MIN = 3


@kind(
    meaning="Nodes of the KRaft quorum found no leader until the end of the logs, which show no controller at all.",
    source="org.apache.kafka.raft.QuorumState",
    signatures=(_SEARCHING, _FOUND),
    causes=(*ABSENT, "quorum_unreachable"),
)
def quorum_without_leader(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield nodes that searched for a controller, by cluster, if the logs show none. `quorum_lost` reports the rest."""
    found, known = facts.remarked(_FOUND), facts.brokers.terms
    rows = [
        row
        for row in before_shutdown(facts, facts.remarked_by_brokers(_SEARCHING))
        if row["cluster_id"] not in known
        and row["line_count"] >= _LINES_MIN
        and row["last_time"] - row["first_time"] >= _LASTS_US
        and not any(node(other) == node(row) and other["last_time"] >= row["first_time"] for other in found)
    ]
    for group in grouped(sorted(rows, key=_by_cluster), _is_same):
        yield _without_leader(facts, Episode(group))


def _by_cluster(row: Row) -> tuple[str, int]:
    return row["cluster_id"], row["first_time"]


def _is_same(group: list[Row], row: Row) -> bool:
    ends_us = max(int(other["last_time"]) for other in group)
    return bool(row["cluster_id"] == group[0]["cluster_id"]) and int(row["first_time"]) <= ends_us


def _without_leader(facts: Facts, episode: Episode) -> LoggedIncident:
    texts = [text for row in episode.rows for text in (row["message"], row["last_message"]) if text]
    epochs = [int(match[1]) for text in texts if (match := _EPOCH.search(text))]
    voters = {int(voter) for text in texts if (match := _VOTERS.search(text)) for voter in match[1].split(",")}
    absent = sorted(voters - {row["broker_id"] for row in facts.files})
    who = sentence(facts.named(episode.cluster_id, episode.broker_ids))
    tried = f", up to epoch {max(epochs)}" if epochs else ""
    of_others = (
        f" No log of {'voters' if len(absent) > 1 else 'voter'} {listed([str(voter) for voter in absent])} is here."
        if absent
        else ""
    )
    answers = Counter(
        {
            text.found.values["error"]: text.lines
            for text in facts.loud_texts
            if text.found is not None
            and (text.cluster_id, text.key) == (episode.cluster_id, _ANSWERED)
            and text.last_us >= episode.start_us
        }
    )
    error = answers.most_common(1)[0][0] if answers else ""
    reason, action = _REFUSALS.get(error, ("", ""))
    said = f" Voters answer with {error}{': ' if reason else ''}{reason}." if error else ""
    return episode.incident(
        CRITICAL,
        f"{who} found no leader of the metadata quorum from {clock(episode.start_us)} to the end of the logs "
        f"({lasting(episode.end_us - episode.start_us)}{tried}).{said} Without one no partition leader, ISR or topic "
        f"can change.{of_others}",
        end_us=None,
        advice=Remedy(
            action
            or "Bring a majority of the voters up, and check that they reach each other on the controller listener. "
            "Compare their controller.quorum.voters and cluster ids.",
            is_open,
        ),
        figures={"epoch": max(epochs)} if epochs else {},
        weight=8_000.0,
    )


@kind(
    meaning="The controller refused to register a broker, so the broker did not start.",
    source=_REFUSED.source,
    signatures=(_REFUSED,),
    causes=ABSENT,
)
def registration_refused(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield refused registrations of brokers: one incident per broker and error. Minor if the broker started later."""
    for row in facts.remarked_by_brokers(_REFUSED):
        episode, error = Episode([row]), row["key"]
        reason, action = _REFUSALS.get(error, ("", _TO_DO))
        up = facts.next_start(episode.node, row["last_time"])
        if up is not None and error == _OF_RESTARTS:
            continue
        after = f"It was up at {clock(up)}." if up is not None else "It did not start after that."
        yield episode.incident(
            CRITICAL if up is None else MINOR,
            f"The controller refused to register {facts.named(episode.cluster_id, episode.broker_ids)} "
            f"{times(episode.lines)} {span(episode.start_us, episode.end_us)}: {error}"
            f"{f' ({reason})' if reason else ''}. {after}",
            end_us=up,
            advice=Remedy(action, is_open),
            figures={"refusals": episode.lines},
            weight=9_000.0 if up is None else 1.0,
        )


_VOTER_SET = Signature(
    "voters_shown",
    ("KRaftControlRecordStateMachine",),
    r"(?:\[[^\]]*\]:? )?Latest set of voters is VoterSet\(voters=(?P<key>\{.*\})\) at offset -?\d+.*",
    "org.apache.kafka.raft.internals.KRaftControlRecordStateMachine, 3.9 on (KIP-853)",
    ("INFO",),
    gap_s=1,
)
_VOTER = re.compile(r"\b(\d{1,10})=VoterNode\(voterKey=ReplicaKey\(id=\d+, directoryId=([^)\s,]+)\)")
#: Nodes learn of one change within this, microseconds.
_LEARNT_US = 60_000_000
#: Changes that follow each other within this are one incident, microseconds.
_VOTERS_US = 600_000_000


class _VoterChange(NamedTuple):
    """A change of the set of voters. Directory ids are by voter."""

    cluster_id: str
    time_us: int
    before: Mapping[int, str]
    after: Mapping[int, str]
    place: Place

    @property
    def removed(self) -> list[int]:
        """Return the voters that left, with a directory that did not stay."""
        return sorted(voter for voter, of in self.before.items() if self.after.get(voter) != of)

    @property
    def added(self) -> list[int]:
        """Return the voters that came, or came with another directory."""
        return sorted(voter for voter, of in self.after.items() if self.before.get(voter) != of)


@kind(
    meaning="Voters of the KRaft quorum were added or removed.",
    source="KIP-853; " + _VOTER_SET.source,
    signatures=(_VOTER_SET,),
)
def voters_changed(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield changes of each quorum's set of voters. Consecutive changes are one incident."""
    by_cluster: dict[str, list[_VoterChange]] = defaultdict(list)
    for change in sorted(_voter_changes(facts), key=lambda change: change.time_us):
        same = [
            other
            for other in by_cluster[change.cluster_id]
            if other.after == change.after and change.time_us - other.time_us <= _LEARNT_US
        ]
        if not same:
            by_cluster[change.cluster_id].append(change)
    for changes in by_cluster.values():
        for group in grouped(changes, lambda group, change: change.time_us - group[-1].time_us <= _VOTERS_US):
            yield _voters_changed(facts, group)


def _voter_changes(facts: Facts) -> Iterable[_VoterChange]:
    """Yield changes of the set of voters that each node logs. What a node reads as it starts is past and left out."""
    by_node: dict[Node, list[Row]] = defaultdict(list)
    for row in facts.remarked_by_brokers(_VOTER_SET):
        by_node[node(row)].append(row)
    for of_node, rows in by_node.items():
        boots = [state.by_us for state in facts.brokers.states.get(of_node, ()) if state.state == "starting"]
        for before, row in pairwise(sorted(rows, key=lambda row: (row["first_time"], row["byte_offset"]))):
            time = row["first_time"]
            sets = _voters_of(before), _voters_of(row)
            is_start = any(boot is not None and boot <= time <= boot + BOOT_US for boot in boots)
            if sets[0] != sets[1] and all(sets) and not is_start:
                yield _VoterChange(of_node[0], time, *sets, place(row))


def _voters_of(row: Row) -> dict[int, str]:
    return {int(voter): directory for voter, directory in _VOTER.findall(row["key"])}


def _voters_changed(facts: Facts, group: Sequence[_VoterChange]) -> LoggedIncident:
    first, last = group[0], group[-1]
    done = []
    for change in group:
        for verb, ids in (("removed", change.removed), ("added", change.added)):
            known = {voter for each in group for voter in each.removed} if verb == "added" else set()
            other = " with another data directory" if known.intersection(ids) else ""
            if ids:
                was = "were" if len(ids) > 1 else "was"
                done.append(f"{numbered('node', ids)} {was} {verb}{other} at {clock(change.time_us)}")
    changed = {voter for change in group for voter in (*change.removed, *change.added)}
    return LoggedIncident(
        severity=INFO,
        cluster_id=first.cluster_id,
        start_us=first.time_us,
        end_us=last.time_us,
        broker_ids=tuple(sorted(changed)),
        sentence=(
            f"The voters of the metadata quorum changed: {listed(done)}. It has "
            f"{number(len(last.after), 'voter')} now: {numbered('node', sorted(last.after))}."
        ),
        figures={"changes": len(group), "voters": len(last.after)},
        places=tuple(change.place for change in group),
        weight=float(len(changed)),
    )
