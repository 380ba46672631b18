"""Controllers and their quorum: who took over, who could not reach whom, what they did not do."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from pipelines.base.values import UNKNOWN_CLUSTER
from pipelines.incidents.advice import is_open
from pipelines.incidents.episodes import Episode, before_shutdown, episodes, grouped
from pipelines.incidents.facts import Facts, Node, Row, node, place
from pipelines.incidents.incident import INFO, MAJOR, MINOR, LoggedIncident, Place, Remedy, Severity
from pipelines.incidents.kind import ABSENT, UNDECIDED, Effect, Signature, kind, preceding
from pipelines.incidents.processes import Death, deaths, is_steady, shutdown_times
from pipelines.incidents.witnesses import QUORUM_UNREACHABLE, Loss, losses
from pipelines.incidents.words import (
    brokers,
    clock,
    lasting,
    listed,
    number,
    partitions,
    sentence,
    shortened,
    span,
    times,
    when,
)

_RETRY = Signature(
    "controlled_shutdown_retried",
    ("KafkaServer",),
    r"(?:\[[^\]]*\]:?,? )?Retrying controlled shutdown after the previous attempt failed\.\.\.",
    "kafka.server.KafkaServer.controlledShutdown",
)
_GIVEN_UP = Signature(
    "controlled_shutdown_given_up",
    ("KafkaServer", "BrokerServer"),
    r"(?:\[[^\]]*\]:?,? )?(?:Proceeding to do an unclean shutdown as all the controlled shutdown attempts failed"
    r"|Timed out waiting for the controller to approve controlled shutdown)",
    "kafka.server.KafkaServer.controlledShutdown, BrokerServer.shutdown in KRaft",
)
_REMAINING = Signature(
    "partitions_left_to_move",
    ("KafkaServer",),
    r"(?:\[[^\]]*\]:?,? )?Remaining partitions to move: (?P<partition>\S+)",
    "kafka.server.KafkaServer.controlledShutdown",
    ("INFO",),
)
_RENOUNCED = Signature(
    "controller_renounced",
    ("QuorumController",),
    r"\[[^\]]*\] (?:Renouncing the leadership (?:at|due to) .*|.*\bRenouncing leadership and reverting to .*)",
    "org.apache.kafka.controller.QuorumController.handleEventException, QuorumMetaLogListener.handleLeaderChange",
    ("WARN", "ERROR", "INFO"),
    gap_s=600,
)
_WAITED = Signature(
    "controller_event_failed",
    ("QuorumController",),
    r"\[[^\]]*\] \w+: (?:event )?failed with NotControllerException in \d{7,} (?:us|microseconds).*",
    "org.apache.kafka.controller.QuorumController.handleEventException: seven digits are a second or more",
    ("INFO",),
    gap_s=600,
)
_WAITS = Signature(
    "migration_waits_for_brokers",
    ("KRaftMigrationDriver",),
    r"\[[^\]]*\] (?:Controller Quorum is ready for Zk to KRaft migration\. Now waiting for ZK brokers\."
    r"|Still waiting for ZK brokers \[?[\d, ]*\]?.* to register with KRaft\."
    r"|No brokers are (?:known to KRaft|registered in ZK), waiting for brokers to register\.)",
    "org.apache.kafka.metadata.migration.KRaftMigrationDriver, 3.4 to 3.9 (KIP-866)",
    ("INFO", "WARN"),
    gap_s=600,
)
_BEGUN = Signature(
    "migration_begun",
    ("KRaftMigrationDriver",),
    r"\[[^\]]*\] (?:Starting ZK migration|Zk brokers are registered and ready for migration|Performing a full metadata "
    r"sync from KRaft to ZK|.* transitioning from .* to ZK_MIGRATION state).*",
    "org.apache.kafka.metadata.migration.KRaftMigrationDriver",
    ("INFO",),
    gap_s=600,
)
MIGRATION_COPIED = Signature(
    "migration_copied",
    ("KRaftMigrationDriver",),
    r"\[[^\]]*\] Completed migration of metadata from Z[Kk].*",
    "org.apache.kafka.metadata.migration.KRaftMigrationDriver.MigrateMetadataEvent",
    ("INFO",),
    gap_s=600,
)
_MAJORITY_LOST = Signature(
    "quorum_majority_lost",
    ("LeaderState",),
    r"(?:\[[^\]]*\] )?Did not receive fetch request from the majority of the voters within (?P<key>\d+) ?ms\..*",
    "org.apache.kafka.raft.LeaderState.timeUntilCheckQuorumExpires, 3.7 on",
    ("INFO",),
    gap_s=1,
)
_EPOCH = re.compile(r"at (?:old)?[Ee]poch (\d+)")
_US = re.compile(r"in (\d+) (?:us|microseconds)")
_IDS = re.compile(r"Still waiting for ZK brokers \[?([\d, ]+)\]?")
#: A peer tries again at least this often to reach a node, microseconds.
_STILL_MISSED_US = 15_000_000
#: Without a controller for longer, elections and ISR changes waited noticeably, microseconds.
_NONE_LONG_US = 5_000_000
#: Nodes that start one after the other miss each other no longer, microseconds.
_LONG_US = 10_000_000
#: A quorum that is started comes up within this of its first line, microseconds.
_COMES_UP_US = 60_000_000


#: Changes of the controller that follow each other within this are one series, microseconds.
_SERIES_US = 600_000_000
#: Changes that make a series worth one incident of its own.
_SERIES_MIN = 3
#: The reason of a change precedes it by this at most, microseconds.
_REASON_US = 30_000_000


class ControllerTerm(NamedTuple):
    """One node's time as the active controller."""

    controller: int
    elected_us: int  #: its first line of it, else another node's
    place: Place
    epoch: int | None = None  #: of the controller; None where no line tells it


def terms(facts: Facts) -> dict[str, list[ControllerTerm]]:
    """Return the active controllers of each cluster, in order.

    A node's own line counts; another node's line counts only for nodes without any line.
    """
    with_lines = {node(row) for row in facts.last_lines}
    with_lines |= {node(row) for row in facts.controller_events if row["broker_id"] == row["subject_broker_id"]}
    in_order: dict[str, list[ControllerTerm]] = defaultdict(list)
    for row in facts.controller_events:
        if row["event"] != "controller_elected" or row["subject_broker_id"] is None:
            continue
        is_own = row["broker_id"] == row["subject_broker_id"]
        if not is_own and (row["cluster_id"], row["subject_broker_id"]) in with_lines:
            continue
        of_cluster = in_order[row["cluster_id"]]
        if not of_cluster or _is_another(of_cluster[-1], row):
            of_cluster.append(
                ControllerTerm(row["subject_broker_id"], row["time"], place(row), row.get("controller_epoch"))
            )
    return in_order


def _is_another(last: ControllerTerm, row: Row) -> bool:
    """Another node took over, or the same one again, in a newer epoch."""
    epoch = row.get("controller_epoch")
    is_newer = epoch is not None and last.epoch is not None and epoch > last.epoch
    return last.controller != row["subject_broker_id"] or is_newer


@kind(
    meaning="Another node became the active controller, or the same one again: until then none was. Three changes or "
    "more within ten minutes of each other are one incident, except changes as controllers stop or die.",
    source="kafka.controller.KafkaController.elect; org.apache.kafka.controller.QuorumController.claim and renounce",
    signatures=(_MAJORITY_LOST,),
    causes=(*ABSENT, *preceding("controller_changed", UNDECIDED)),
    effect=Effect.LATENCY,
)
def controller_changed(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield each change from one controller to another, and each time in which there was none."""
    for series in _series(facts):
        if len(series) < _SERIES_MIN:
            yield from (_changed(facts, change) for change in series)
        else:
            yield _changed_repeatedly(facts, series)


class _Change(NamedTuple):
    """The end of a term and the next term."""

    cluster_id: str
    before: ControllerTerm
    after: ControllerTerm
    term_end: int | None  #: None if no line shows it
    is_exact: bool  #: the controller's own lines show the end
    is_planned: bool  #: the controller was shut down or died

    @property
    def start_us(self) -> int:
        """End of the term, or the begin of the next one."""
        return self.after.elected_us if self.term_end is None else self.term_end


def _series(facts: Facts) -> Iterable[list[_Change]]:
    """Yield series of changes of one cluster. A change as a controller stops or dies is a series by itself."""
    by_cluster: dict[str, list[_Change]] = defaultdict(list)
    for change in _changes(facts):
        if change.is_planned:
            yield [change]
        else:
            by_cluster[change.cluster_id].append(change)
    for changes in by_cluster.values():
        yield from grouped(changes, lambda series, change: change.start_us - series[-1].start_us <= _SERIES_US)


def _changes(facts: Facts) -> Iterable[_Change]:
    ends, died, missed = shutdown_times(facts), deaths(facts), losses(facts)
    with_lines = {node(row) for row in facts.last_lines}
    for cluster_id, in_order in terms(facts).items():
        for before, after in pairwise(in_order):
            if after.elected_us >= ends.get(cluster_id, after.elected_us + 1):
                continue
            term_end = _own_end(facts, cluster_id, before, after, died)
            is_exact = term_end is not None
            if term_end is None:
                term_end = _seen_end(facts, cluster_id, before, after)
            if term_end is None and (cluster_id, before.controller) not in with_lines:
                term_end = _missed_since(facts, cluster_id, before, after, missed)
            if term_end is not None or before.controller != after.controller:
                start = after.elected_us if term_end is None else term_end
                is_planned = _is_shut_down(facts, (cluster_id, before.controller), start) or any(
                    death.node == (cluster_id, before.controller)
                    and before.elected_us < death.last_us <= after.elected_us
                    for death in died
                )
                yield _Change(cluster_id, before, after, term_end, is_exact, is_planned)


def _own_end(
    facts: Facts, cluster_id: str, before: ControllerTerm, after: ControllerTerm, died: Sequence[Death]
) -> int | None:
    """Return when a term ended by the controller's own lines: it resigned, lost its leadership, froze or died."""
    of_node = cluster_id, before.controller
    ends = [
        row["time"]
        for row in facts.controller_events
        if row["cluster_id"] == cluster_id
        and (
            (row["event"] == "controller_resigned" and row["subject_broker_id"] == before.controller)
            or (row["broker_id"] == before.controller and _has_no_leader(row))
        )
    ]
    ends += [
        row["start_time"]
        for row in facts.silences
        if node(row) == of_node and is_steady(row) and row["end_time"] >= after.elected_us
    ]
    since = _last_sign(facts, cluster_id, before, after)
    ends = [time_us for time_us in ends if since <= time_us <= after.elected_us]
    # A term ends with its process. The next process may take itself for the leader of the same epoch.
    ends += [
        death.last_us
        for death in died
        if death.node == of_node and before.elected_us < death.last_us <= after.elected_us
    ]
    return min(ends, default=None)


def _seen_end(facts: Facts, cluster_id: str, before: ControllerTerm, after: ControllerTerm) -> int | None:
    """Return when a majority of the quorum had no leader. None if no majority says so.

    A node that is cut off says so, too, while the others still have their leader.
    """
    rows = [row for row in facts.controller_events if row["cluster_id"] == cluster_id]
    voters = {row["broker_id"] for row in rows if _has_no_leader(row) or row["event"] == "controller_elected"}
    firsts = sorted(_without_leader(facts, cluster_id, before, after).values())
    majority = len(voters) // 2 + 1
    return firsts[majority - 1] if len(firsts) >= majority else None


def _missed_since(
    facts: Facts, cluster_id: str, before: ControllerTerm, after: ControllerTerm, missed: Mapping[Node, Sequence[Loss]]
) -> int | None:
    """Return since when peers missed a controller without lines of its own. None if they do not."""
    since = _last_sign(facts, cluster_id, before, after)
    ends = [
        loss.first_us
        for loss in missed.get((cluster_id, before.controller), ())
        if since <= loss.first_us <= after.elected_us <= loss.last_us + _STILL_MISSED_US
    ]
    return min(ends, default=None)


def _without_leader(facts: Facts, cluster_id: str, before: ControllerTerm, after: ControllerTerm) -> dict[int, int]:
    """Return when each node first logged in a term, after the last sign of its controller, that there is no leader."""
    since = _last_sign(facts, cluster_id, before, after)
    firsts: dict[int, int] = {}
    for row in facts.controller_events:
        if row["cluster_id"] == cluster_id and since <= row["time"] <= after.elected_us and _has_no_leader(row):
            firsts.setdefault(row["broker_id"], row["time"])
    return firsts


def _last_sign(facts: Facts, cluster_id: str, before: ControllerTerm, after: ControllerTerm) -> int:
    """Return the last instant of a term at which the controller did what only the active one does."""
    return max(
        (
            row["time"]
            for row in facts.controller_events
            if node(row) == (cluster_id, before.controller)
            and before.elected_us <= row["time"] < after.elected_us
            and row["event"] not in ("controller_resigned", "other")
        ),
        default=before.elected_us,
    )


def _has_no_leader(row: Row) -> bool:
    """Return True if a node of a quorum logs an epoch without a leader."""
    return row["event"] == "other" and (row["detail"] or "").endswith("the leader is (none).")


def _is_shut_down(facts: Facts, controller: Node, time_us: int) -> bool:
    """Return True if a controller was shutting down at an instant."""
    return any(
        abs(row["time"] - time_us) < 30_000_000
        for row in facts.life(controller, "shutting_down", "controlled_shutdown", "signal")
    )


def _changed_repeatedly(facts: Facts, series: list[_Change]) -> LoggedIncident:
    """Return one incident of a series of changes, with their reasons."""
    first, last = series[0], series[-1]
    cluster_id, start, end = first.cluster_id, first.start_us, last.after.elected_us
    ids = [first.before.controller, *(change.after.controller for change in series)]
    gaps = [change.after.elected_us - change.start_us for change in series]
    lost = [
        row
        for row in facts.remarked(_MAJORITY_LOST)
        if row["cluster_id"] == cluster_id and start - _REASON_US <= row["first_time"] <= end
    ]
    count = sum(row["line_count"] for row in lost)
    how_often = "Each time" if count >= len(series) else sentence(times(count))
    why = (
        f" {how_often} the leader had received no fetch request from the majority of the voters within "
        f"{max(int(row['key']) for row in lost):,} ms."
        if lost
        else ""
    )
    texts = [
        text
        for text in facts.loud_texts
        if text.cluster_id == cluster_id
        and "controller_changed" in text.kinds
        and text.first_us <= end
        and text.last_us >= start - _REASON_US
    ]
    logged = max(texts, key=lambda text: text.lines, default=None)
    beside = f" Controllers logged {times(logged.lines)}: {shortened(logged.line)}" if logged is not None else ""
    without = f" No controller was active for {lasting(max(gaps))} at most each time." if max(gaps) >= 1_000 else ""
    return LoggedIncident(
        severity=MAJOR,
        cluster_id=cluster_id,
        start_us=start,
        end_us=end,
        broker_ids=tuple(sorted(set(ids))),
        sentence=(
            f"The active controller changed {number(len(series), 'time')} {span(start, end)} (node "
            f"{', '.join(map(str, ids))} in turn).{without}{why}{beside}"
        ),
        advice=(
            "Look at the disk, the CPU and gc.log of the controllers, and at the network between them: no metadata "
            "changes while no controller is active."
        ),
        figures={"changes": len(series), "without_controller_s": sum(gaps) / 1e6},
        places=(*map(place, lost[:3]), *(change.after.place for change in series)),
        weight=100.0 * len(series),
    )


def _changed(facts: Facts, change: _Change) -> LoggedIncident:
    cluster_id, before, after, _, is_exact, _ = change
    start = change.start_us
    gap = after.elected_us - start
    least = "" if is_exact else "at least "
    without = f"; no controller was active for {least}{lasting(gap)}" if gap >= 1_000 else ""
    resigned = _is_shut_down(facts, (cluster_id, before.controller), start)
    old, new = (_voter(facts, cluster_id, term.controller) for term in (before, after))
    if before.controller == after.controller:
        what = sentence(f"{new} became the active controller again at {clock(after.elected_us)}")
    else:
        what = f"The active controller changed from {old} to {new} at {clock(after.elected_us)}"
    severity = MAJOR if gap >= _NONE_LONG_US else INFO if resigned else MINOR
    return LoggedIncident(
        severity=severity,
        cluster_id=cluster_id,
        start_us=start,
        end_us=after.elected_us,
        broker_ids=(after.controller,),
        sentence=f"{what}{without}.",
        unexplained=(
            f"While no controller was active ({span(start, after.elected_us)}), no leader was elected and no ISR "
            f"changed: look at {old} and at the quorum."
            if severity == MAJOR
            else ""
        ),
        figures={"without_controller_s": gap / 1e6},
        places=(after.place,),
        weight=gap / 1e6,
        by=(before.controller,),
    )


def _voter(facts: Facts, cluster_id: str, node_id: int) -> str:
    """``controller 4``, or ``node 2`` for a broker that is the controller, too."""
    return facts.named(cluster_id, [node_id]) if (cluster_id, node_id) in facts.controllers else f"node {node_id}"


@kind(
    meaning="The active controller of KRaft renounced its leadership more than once within minutes.",
    source="org.apache.kafka.controller.QuorumController.renounce",
    signatures=(_RENOUNCED, _WAITED),
    causes=(*ABSENT, *preceding("controller_renounced", UNDECIDED)),
)
def controller_renounced(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield two or more within ten minutes of each other, except at a shutdown and in a series of changes."""
    repeated = [series for series in _series(facts) if len(series) >= _SERIES_MIN]
    for row in before_shutdown(facts, facts.remarked(_RENOUNCED)):
        episode = Episode([row])
        if episode.lines < 2 or any(
            series[0].cluster_id == episode.cluster_id
            and series[0].start_us <= episode.end_us
            and episode.start_us <= series[-1].after.elected_us
            for series in repeated
        ):
            continue
        waits = [
            int(match[1])
            for other in facts.remarked(_WAITED)
            if other["broker_id"] == row["broker_id"]
            and other["first_time"] <= episode.end_us + 1_000_000
            and other["last_time"] >= episode.start_us - 1_000_000
            for match in _US.finditer(other["message"])
        ]
        waited_us = max(waits, default=0)
        epochs = [match[1] for text in (row["message"], row["last_message"]) if (match := _EPOCH.search(text))]
        of_epochs = f" (epochs {epochs[0]} to {epochs[-1]})" if len(set(epochs)) > 1 else ""
        waited = f" A write to the metadata log had waited for {lasting(waited_us)}." if waited_us else ""
        yield episode.incident(
            MAJOR,
            f"The active controller (node {row['broker_id']}) renounced {times(episode.lines)} "
            f"{span(episode.start_us, episode.end_us)}{of_epochs}.{waited}",
            advice=(
                "Look at the disk and the network between the controllers: the leader of the quorum lost its majority "
                "each time (controller.quorum.fetch.timeout.ms), and no metadata changed meanwhile."
            ),
            figures={"times": episode.lines, "waited_s": waited_us / 1e6},
            weight=100.0 * episode.lines,
        )


@kind(
    meaning="Nodes got no connection to a node of the KRaft quorum.",
    source="org.apache.kafka.clients.NetworkClient.processDisconnection, of RaftManager and the channel to controllers",
    signatures=(QUORUM_UNREACHABLE,),
    causes=ABSENT,
)
def quorum_unreachable(facts: Facts) -> Iterable[LoggedIncident]:
    """Episodes by the node that could not be reached, those of several nodes together."""
    brief: list[Row] = []
    rows = [row for row in before_shutdown(facts, facts.remarked(QUORUM_UNREACHABLE)) if row["key"]]
    for episode in episodes(rows, "key", within_s=15):
        if episode.end_us - episode.start_us >= _LONG_US:
            yield _unreachable(facts, episode)
        else:
            brief += episode.rows
    begins: dict[str, int] = {}
    for row in facts.files:
        if row["first_time"] is not None:
            cluster_id = row["cluster_id"] or UNKNOWN_CLUSTER
            begins[cluster_id] = min(begins.get(cluster_id, row["first_time"]), row["first_time"])
    for episode in episodes(brief, within_s=15):
        if episode.start_us > begins.get(episode.cluster_id, 0) + _COMES_UP_US:
            yield _unreachable(facts, episode)


def _unreachable(facts: Facts, episode: Episode) -> LoggedIncident:
    lasted_us = episode.end_us - episode.start_us
    peers = sorted(map(int, episode.keys))
    who = facts.named(episode.cluster_id, episode.broker_ids) or "nodes that no line names"
    # Below 0 are addresses of the configuration, before a node has told its number.
    known = [peer for peer in peers if peer >= 0]
    whom = f"node{'s' if len(known) > 1 else ''} {listed([*map(str, known)])}" if known else "its configured addresses"
    attempts = number(episode.lines, "attempt")
    return episode.incident(
        MINOR if lasted_us >= _LONG_US else INFO,
        sentence(f"{who} could not reach {whom} of the quorum {episode.when}: {attempts}."),
        unexplained=(
            f"If {whom} was up meanwhile, look at the network, and at its listener." if lasted_us >= _LONG_US else ""
        ),
        figures={"attempts": episode.lines, "peers": len(peers)},
        weight=lasted_us / 1e6,
        by=tuple(peers),
    )


@kind(
    meaning="A broker could not hand its leaderships over before it stopped.",
    source="kafka.server.KafkaServer.controlledShutdown, KafkaController.doControlledShutdown; BrokerServer.shutdown",
    signatures=(_RETRY, _GIVEN_UP, _REMAINING),
    causes=(*ABSENT, *UNDECIDED),
)
def controlled_shutdown_failed(facts: Facts) -> Iterable[LoggedIncident]:
    """Shutdowns that were asked for again, or done without the controller."""
    retried = facts.remarked(_RETRY)
    given_up = facts.remarked(_GIVEN_UP)
    for row in given_up:
        before = [other for other in retried if _is_before(other, row)]
        yield _not_handed_over(facts, row, before, MAJOR)
    for row in retried:
        if not any(_is_before(row, other) for other in given_up):
            yield _not_handed_over(facts, row, [row], MINOR)


def _is_before(row: Row, other: Row) -> bool:
    return node(row) == node(other) and 0 <= other["first_time"] - row["first_time"] <= 300_000_000


def _not_handed_over(facts: Facts, row: Row, retries: list[Row], severity: Severity) -> LoggedIncident:
    start = min([row["first_time"], *(other["first_time"] for other in retries)])
    end = row["last_time"]
    gave_up = " It then stopped without the controller." if severity == MAJOR else " It then went through."
    # With a whole cluster the last brokers have nobody to hand over to.
    if start >= shutdown_times(facts).get(row["cluster_id"], start + 1):
        severity = INFO
    attempts = max(sum(other["line_count"] for other in retries), 1)
    left = [
        other
        for other in facts.remarked(_REMAINING)
        if node(other) == node(row) and start - 60_000_000 <= other["first_time"] <= end + 1_000_000
    ]
    names = frozenset(name for other in left for part in other["partitions"] or () for name in part.split(","))
    why = f": {partitions(names)} had no other replica in the ISR to move to" if names else ""
    return LoggedIncident(
        severity=severity,
        cluster_id=row["cluster_id"],
        start_us=start,
        end_us=end,
        broker_ids=(row["broker_id"],),
        partitions=names,
        sentence=(
            f"The controlled shutdown of broker {row['broker_id']} failed {times(attempts)} {when(start, end)}{why}."
            f"{gave_up}"
        ),
        advice=(
            "Restart a broker only when all partitions are fully replicated (UnderReplicatedPartitions is 0); "
            "partitions with one replica have no leader while it is away."
            if severity == MAJOR
            else ""
        ),
        figures={"attempts": attempts, "partitions": len(names)},
        places=(*map(place, left[:2]), *map(place, retries[:3]), place(row)),
        weight=100.0 + len(names),
        subject=str(row["first_time"]),
    )


@kind(
    meaning="The controllers are ready to migrate from ZooKeeper, and brokers have not registered with them.",
    source="KIP-866; org.apache.kafka.metadata.migration.KRaftMigrationDriver.WaitForZkBrokersEvent",
    signatures=(_WAITS, _BEGUN, MIGRATION_COPIED),
)
def migration_waits(facts: Facts) -> Iterable[LoggedIncident]:
    """Waiting that no line of the migration's begin follows."""
    begun = facts.remarked(_BEGUN, MIGRATION_COPIED)
    for row in facts.remarked(_WAITS):
        start = row["first_time"]
        end = min((other["first_time"] for other in begun if other["first_time"] >= start), default=None)
        ids = [
            int(broker_id) for match in _IDS.finditer(row["last_message"]) for broker_id in re.findall(r"\d+", match[1])
        ]
        whom = brokers(ids) if ids else "brokers"
        until = (
            f"at {clock(start)}, and it still waits at the end of the logs"
            if end is None
            else f"from {clock(start)} to {clock(end)}"
        )
        yield Episode([row]).incident(
            MINOR,
            f"The migration from ZooKeeper to KRaft waited for {whom} to register with KRaft {until}.",
            end_us=end,
            broker_ids=tuple(sorted(ids)),
            advice=Remedy(
                "Give each of these brokers zookeeper.metadata.migration.enable=true, controller.quorum.voters and "
                "controller.listener.names, and restart it; the migration begins when all have registered.",
                is_open,
            ),
            figures={"brokers": len(ids)},
            weight=60.0,
        )
