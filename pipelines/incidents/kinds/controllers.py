"""Controllers and their quorum: who took over, who could not reach whom, what they did not do."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from highwater.pipelines.base.values import UNKNOWN_CLUSTER
from highwater.pipelines.incidents.advice import is_open
from highwater.pipelines.incidents.episodes import Episode, before_shutdown, episodes, grouped
from highwater.pipelines.incidents.facts import Facts, Node, Row, node, place
from highwater.pipelines.incidents.incident import INFO, MAJOR, MINOR, LoggedIncident, Remedy, Severity
from highwater.pipelines.incidents.kind import ABSENT, SHOWN_BY, UNDECIDED, Signature, kind, preceding
from highwater.pipelines.incidents.witnesses import QUORUM_UNREACHABLE, losses
from highwater.pipelines.incidents.words import (
    brokers,
    clock,
    lasting,
    number,
    numbered,
    partitions,
    sentence,
    shortened,
    span,
    times,
    when,
)
from highwater.pipelines.timelines.controller import Away, ControllerEvidence, ControllerState, controller_states
from highwater.pipelines.timelines.missed import CLOCKS_US

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
    gap_s=1,
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
_SLOW = Signature(
    "controller_event_slow",
    ("EventPerformanceMonitor",),
    r"(?:\[[^\]]*\] )?Exceptionally slow controller event .* took (?P<key>\d{1,9}) ms\.",
    "org.apache.kafka.controller.EventPerformanceMonitor.observeEvent, 4.0 on",
    ("WARN", "ERROR"),
    gap_s=1,
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
#: Ends of a term by its process.
_PROCESS_ENDS = ("froze", "shutdown", "died")
#: Others replace a controller that does not answer after a timeout of this at least, microseconds.
_TIMEOUT_US = 1_000_000
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


def _away(facts: Facts) -> list[Away]:
    """Return when nodes could not act: they were dead, shut down or frozen."""
    away = [Away(death.node, death.last_us, death.boot_us, "died") for death in facts.brokers.deaths]
    away += [Away(stop.node, stop.start_us, stop.until_us, "shutdown") for stop in facts.brokers.stops]
    froze = (each for each in facts.brokers.aways if each.state.reason == "froze")
    return [*away, *(Away(each.node, each.start_us, each.up_us, "froze") for each in froze)]


def controller_timeline(facts: Facts) -> dict[str, list[ControllerState]]:
    """Return who was the active controller and when, by cluster and in time order."""
    return controller_states(
        ControllerEvidence(
            events=facts.controller_events,
            away=_away(facts),
            with_lines={node(row) for row in facts.last_lines},
            missed={
                of_node: [(loss.first_us, loss.last_us) for loss in of] for of_node, of in losses(facts.remarks).items()
            },
            voters=facts.voters,
        )
    )


class _Lost(NamedTuple):
    """A time without a leader of the quorum, since too few voters were up or could reach each other."""

    cluster_id: str
    gap: ControllerState
    down: frozenset[int]  #: Voters that were away meanwhile.


def _lost_quorums(facts: Facts) -> Iterable[_Lost]:
    """Yield times without a leader of the quorum in which too few voters were up, or the leader lost the majority."""
    away, ends = _away(facts), facts.brokers.shutdown_times
    lost = facts.remarked(_MAJORITY_LOST)
    for cluster_id, states in controller_timeline(facts).items():
        voters = facts.voters.get(cluster_id, frozenset())
        for gap in states:
            if gap.controller is not None or gap.begin_by_us >= ends.get(cluster_id, gap.begin_by_us + 1):
                continue
            until_us = gap.end_by_us or facts.ends.get(cluster_id, gap.begin_by_us)
            since_us = gap.begin_by_us if gap.begin_after_us is None else gap.begin_after_us
            # A voter that is away for less than half of the time does not explain it.
            half_us = (until_us - gap.begin_by_us) / 2
            down = frozenset(
                each.node[1]
                for each in away
                if each.node[0] == cluster_id
                and each.node[1] in voters
                and min(each.until_us or until_us, until_us) - max(each.since_us, gap.begin_by_us) >= half_us
            )
            has_lost = any(
                row["cluster_id"] == cluster_id and since_us - _REASON_US <= row["first_time"] <= until_us
                for row in lost
            )
            lacks_majority = len(voters) - len(down) < len(voters) // 2 + 1
            if until_us - gap.begin_by_us >= _NONE_LONG_US and ((voters and lacks_majority) or has_lost):
                yield _Lost(cluster_id, gap, down)


@kind(
    meaning="The quorum of controllers had no leader for five seconds or more, as too few voters were up, or as its "
    "leader lost the majority: nothing is elected, fenced or committed meanwhile.",
    source="org.apache.kafka.raft.KafkaRaftClient, LeaderState.timeUntilCheckQuorumExpires; KIP-595",
    causes=(*ABSENT, *preceding("quorum_lost", UNDECIDED)),
)
def quorum_lost(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield times in which the quorum had no leader, with the voters that were down and the produces that waited."""
    for cluster_id, gap, down in _lost_quorums(facts):
        voters = facts.voters.get(cluster_id, frozenset())
        start, end = gap.begin_by_us, gap.end_by_us
        who = f": {len(down)} of {len(voters)} voters did not answer ({facts.named(cluster_id, down)})" if down else ""
        waits = [
            row
            for row in facts.waits
            if row["cluster_id"] == cluster_id
            and start <= row["second"] * 1_000_000 <= (end or row["second"] * 1_000_000)
            and row["wait_ms_max"] * 1000 >= _NONE_LONG_US / 2
        ]
        produces, longest_ms = (
            sum(row["operations"] for row in waits),
            max((row["wait_ms_max"] for row in waits), default=0),
        )
        hung = (
            f" {number(produces, 'acks=all produce')} waited meanwhile, the longest {lasting(longest_ms * 1000)}."
            if produces
            else ""
        )
        yield LoggedIncident(
            severity=MAJOR,
            cluster_id=cluster_id,
            start_us=start,
            end_us=end,
            broker_ids=tuple(sorted(down)),
            sentence=(
                f"No controller was active {span(start, end)}{who}. Meanwhile no leader was elected, no ISR "
                f"changed and no broker was fenced.{hung}"
            ),
            advice=Remedy("Start the voters that are down: a majority of them must reach each other.", is_open),
            unexplained=f"Look at the voters from {clock(start)} on: their processes, and the network between them.",
            figures={"down": len(down), "voters": len(voters), "produces": produces, "longest_ms": longest_ms},
            places=() if gap.place is None else (gap.place,),
            weight=60.0 if end is None else (end - start) / 1e6,
            by=tuple(sorted(down)),
            is_cluster_wide=True,
        )


@kind(
    meaning="Another node became the active controller, or the same one again: until then none was. Three changes or "
    "more within ten minutes of each other are one incident, except changes as controllers stop or die.",
    source="kafka.controller.KafkaController.elect; org.apache.kafka.controller.QuorumController.claim and renounce",
    signatures=(_MAJORITY_LOST,),
    causes=("controller_slow", *ABSENT, *preceding("controller_changed", UNDECIDED)),
)
def controller_changed(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield changes from one controller to another. Changes while the quorum had no majority are left out."""
    for series in _series(facts):
        if len(series) < _SERIES_MIN:
            yield from (_changed(facts, change) for change in series)
        else:
            yield _changed_repeatedly(facts, series)


@kind(
    meaning="The active controller took seconds for events: requests of brokers, heartbeats among them, waited.",
    source="org.apache.kafka.controller.EventPerformanceMonitor; controller.performance.always.log.threshold.ms",
    signatures=(_SLOW,),
    causes=preceding("logs_end_early"),
)
def controller_slow(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield slow events by controller, except while controllers changed often. A line marks an event's end."""
    known = [
        (series[0].cluster_id, series[0].start_us - _REASON_US, series[-1].end_us)
        for series in _series(facts)
        if len(series) >= _SERIES_MIN
    ]
    rows = [
        row
        for row in facts.remarked(_SLOW)
        if not any(row["cluster_id"] == of and since <= row["first_time"] <= until for of, since, until in known)
    ]
    for episode in episodes(rows, "broker_id", within_s=300):
        longest_us = max(int(row["key"]) for row in episode.rows) * 1000
        start = min(row["first_time"] - int(row["key"]) * 1000 for row in episode.rows)
        name = facts.named(episode.cluster_id, episode.broker_ids) or "the controller"
        yield episode.incident(
            MAJOR if longest_us >= _NONE_LONG_US else MINOR,
            f"{sentence(name)} was slow {span(start, episode.end_us)}: {number(episode.lines, 'event')} took "
            f"{lasting(longest_us)} at most. Heartbeats, elections and ISR changes waited for that long.",
            start_us=start,
            advice=f"Look at the disk of the metadata log, the CPU and gc.log of {name}.",
            figures={"longest_s": longest_us / 1e6, "events": episode.lines},
            weight=longest_us / 1e6,
            # Sessions of brokers end when the controller handles no heartbeat for most of their timeout.
            is_cluster_wide=longest_us >= _NONE_LONG_US,
        )


class _Change(NamedTuple):
    """A change from one active controller to the next."""

    cluster_id: str
    before: ControllerState
    after: ControllerState
    gap: ControllerState | None  #: Time without a controller. None if no line shows one.
    is_planned: bool  #: The controller was shut down or died.

    @property
    def start_us(self) -> int:
        """Return since when no controller was active, or when the next one became active, us since the epoch."""
        return self.after.begin_by_us if self.gap is None else self.gap.begin_by_us

    @property
    def end_us(self) -> int:
        """Return when the next controller became active, us since the epoch."""
        return self.after.begin_by_us

    @property
    def longest_us(self) -> int:
        """Return the longest possible time without an active controller, microseconds."""
        return self.end_us - (self.before.end_after_us or self.before.begin_by_us)

    @property
    def ids(self) -> tuple[int, int]:
        """Return the ids of the controllers before and after."""
        assert self.before.controller is not None
        assert self.after.controller is not None
        return self.before.controller, self.after.controller


def _series(facts: Facts) -> Iterable[list[_Change]]:
    """Yield changes of the controller of one cluster in groups with short gaps between them.

    A change because a controller stopped or died is a group by itself.
    """
    by_cluster: dict[str, list[_Change]] = defaultdict(list)
    for change in _changes(facts):
        if change.is_planned:
            yield [change]
        else:
            by_cluster[change.cluster_id].append(change)
    for changes in by_cluster.values():
        yield from grouped(changes, _continues)


def _continues(series: list[_Change], change: _Change) -> bool:
    """Return True if a change belongs to a series: nothing else changed the controller since."""
    return change.before == series[-1].after and change.start_us - series[-1].start_us <= _SERIES_US


def _changes(facts: Facts) -> Iterable[_Change]:
    ends = facts.brokers.shutdown_times
    lost = [(quorum.cluster_id, quorum.gap) for quorum in _lost_quorums(facts)]
    for cluster_id, states in controller_timeline(facts).items():
        led = [number_of for number_of, state in enumerate(states) if state.controller is not None]
        for first, second in pairwise(led):
            before, after = states[first], states[second]
            gap = states[first + 1] if second - first > 1 else None
            if after.begin_by_us >= ends.get(cluster_id, after.begin_by_us + 1):
                continue
            if (cluster_id, gap) in lost:
                continue
            if gap is not None or before.controller != after.controller:
                start = after.begin_by_us if gap is None else gap.begin_by_us
                has_died = gap is not None and gap.reason in ("died", "shutdown")
                is_planned = has_died or _is_shut_down(facts, (cluster_id, before.controller or 0), start)
                yield _Change(cluster_id, before, after, gap, is_planned)


def _is_shut_down(facts: Facts, controller: Node, time_us: int) -> bool:
    """Return True if a controller logged a shutdown within 30 seconds of an instant (us)."""
    return any(
        abs(row["time"] - time_us) < 30_000_000
        for row in facts.life(controller, "shutting_down", "controlled_shutdown", "signal")
    )


def _changed_repeatedly(facts: Facts, series: list[_Change]) -> LoggedIncident:
    """Return one incident of a series of changes, with their reasons."""
    first, last = series[0], series[-1]
    cluster_id, start, end = first.cluster_id, first.start_us, last.end_us
    ids = [first.ids[0], *(change.ids[1] for change in series)]
    gaps = [change.end_us - change.start_us for change in series]
    lost = _majority_lost(facts, cluster_id, start, end)
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
    slow = [
        row
        for row in facts.remarked(_SLOW)
        if row["cluster_id"] == cluster_id and start - _REASON_US <= row["first_time"] <= end
    ]
    beside = f" Controllers logged {times(logged.lines)}: {shortened(logged.line)}" if logged is not None else ""
    if slow:
        longest = max(slow, key=lambda row: int(row["key"]))
        count = sum(row["line_count"] for row in slow)
        beside = f" Controllers logged {times(count)}, such as: {shortened(longest['message'])}"
    is_exact = all(_is_end_exact(facts, change) for change in series)
    how_long = f"{lasting(max(gaps))} at most each time" if is_exact else f"at least {lasting(max(gaps))} once"
    without = f" No controller was active for {how_long}." if max(gaps) >= 1_000 else ""
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
        places=(*map(place, lost[:3]), *(change.after.place for change in series if change.after.place is not None)),
        weight=100.0 * len(series),
    )


def _majority_lost(facts: Facts, cluster_id: str, start_us: int, end_us: int) -> list[Row]:
    """Return rows of leaders that lost the majority of the voters and resigned, around a span in us."""
    return [
        row
        for row in facts.remarked(_MAJORITY_LOST)
        if row["cluster_id"] == cluster_id and start_us - _REASON_US <= row["first_time"] <= end_us
    ]


def _changed(facts: Facts, change: _Change) -> LoggedIncident:
    cluster_id, start, end = change.cluster_id, change.start_us, change.end_us
    gap_us, (old_id, new_id) = end - start, change.ids
    is_exact = _is_end_exact(facts, change)
    least, longest = lasting(gap_us), lasting(change.longest_us)
    bounds = f"at most {longest}" if change.gap is None else f"at least {least} and at most {longest}"
    how_long = least if is_exact or least == longest else bounds
    is_worth_it = max(gap_us, 0 if is_exact else change.longest_us) >= 1_000
    without = f"; no controller was active for {how_long}" if is_worth_it else ""
    has_stopped = _is_shut_down(facts, (cluster_id, old_id), start)
    old, new = (_voter(facts, cluster_id, of_id) for of_id in change.ids)
    if old_id == new_id:
        what = sentence(f"{new} became the active controller again at {clock(end)}")
    else:
        what = f"The active controller changed from {old} to {new} at {clock(end)}"
    severity = MAJOR if gap_us >= _NONE_LONG_US else INFO if has_stopped else MINOR
    lost = [row for row in _majority_lost(facts, cluster_id, start, end) if row["broker_id"] in (None, old_id)]
    why = (
        f" It resigned because no fetch request had come from the majority of the voters for {int(lost[-1]['key']):,} "
        "ms."
        if lost
        else ""
    )
    return LoggedIncident(
        severity=severity,
        cluster_id=cluster_id,
        start_us=start,
        end_us=end,
        broker_ids=(new_id,),
        sentence=f"{what}{without}.{why}",
        advice=(
            f"Look at the network between {old} and the other voters, and at pauses of its process at {clock(start)}."
            if lost
            else ""
        ),
        unexplained=(
            f"While no controller was active ({span(start, end)}), no leader was elected and no ISR "
            f"changed: look at {old} and at the quorum."
            if severity == MAJOR and not lost
            else ""
        ),
        figures={"without_controller_s": gap_us / 1e6}
        | ({} if is_exact else {"without_controller_max_s": change.longest_us / 1e6}),
        places=() if change.after.place is None else (change.after.place,),
        weight=gap_us / 1e6,
        by=(old_id,),
        cause_by_us=None if has_stopped else end - _TIMEOUT_US,
        is_cluster_wide=gap_us >= _NONE_LONG_US,
    )


def _is_end_exact(facts: Facts, change: _Change) -> bool:
    """Return True if a line of the controller itself, or of its process, dates the end of its leadership."""
    gap = change.gap
    if gap is None:
        return False
    if gap.reason in _PROCESS_ENDS:
        of_node = change.cluster_id, change.before.controller
        aways = [
            away for away in facts.brokers.aways if away.node == of_node and away.state.start_us == gap.begin_by_us
        ]
        return all(away.state.is_exact for away in aways)
    return gap.place is not None


def _voter(facts: Facts, cluster_id: str, node_id: int) -> str:
    """Return ``controller 4``, or ``node 2`` for a broker that is the controller, too."""
    return facts.named(cluster_id, [node_id]) if (cluster_id, node_id) in facts.controllers else f"node {node_id}"


@kind(
    meaning="The active controller of KRaft resigned more than once within minutes.",
    source="org.apache.kafka.controller.QuorumController.renounce",
    signatures=(_RENOUNCED, _WAITED),
    causes=("controller_slow", *ABSENT, *preceding("controller_renounced", UNDECIDED)),
)
def controller_renounced(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield resignations of controllers: one incident for those within ten minutes of each other.

    Resignations at a shutdown and in repeated changes of the controller are left out.
    """
    repeated = [series for series in _series(facts) if len(series) >= _SERIES_MIN]
    rows = [
        row
        for row in before_shutdown(facts, facts.remarked(_RENOUNCED))
        if not any(
            stop.node == node(row) and stop.start_us <= row["first_time"] <= (stop.until_us or row["first_time"])
            for stop in facts.brokers.stops
        )
    ]
    for episode in episodes(rows, "broker_id", within_s=600):
        first, last = episode.rows[0], episode.rows[-1]
        if episode.lines < 2 or any(
            series[0].cluster_id == episode.cluster_id
            and series[0].start_us <= episode.end_us
            and episode.start_us <= series[-1].end_us
            for series in repeated
        ):
            continue
        waits = [
            int(match[1])
            for other in facts.remarked(_WAITED)
            if other["broker_id"] == first["broker_id"]
            and other["first_time"] <= episode.end_us + 1_000_000
            and other["last_time"] >= episode.start_us - 1_000_000
            for match in _US.finditer(other["message"])
        ]
        waited_us = max(waits, default=0)
        epochs = [match[1] for text in (first["message"], last["last_message"]) if (match := _EPOCH.search(text))]
        of_epochs = f" (epochs {epochs[0]} to {epochs[-1]})" if len(set(epochs)) > 1 else ""
        waited = f" A write to the metadata log had waited for {lasting(waited_us)}." if waited_us else ""
        yield episode.incident(
            MAJOR,
            f"The active controller (node {first['broker_id']}) resigned {times(episode.lines)} "
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
    causes=(*ABSENT, "leader_unreachable"),
    yields_to=SHOWN_BY["quorum_unreachable"],
)
def quorum_unreachable(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield voters that were out of reach: one incident per node and long time. Short times are merged over nodes."""
    brief: list[Row] = []
    rows = [
        row
        for row in before_shutdown(facts, facts.remarked(QUORUM_UNREACHABLE))
        if row["key"] and row["key"] != str(row["broker_id"])
    ]
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
    # Ids below 0 are addresses of the configuration. They stay until the node has sent its id.
    known = [peer for peer in peers if peer >= 0]
    whom = numbered("node", known) if known else "its configured addresses"
    attempts = number(episode.lines, "attempt")
    return episode.incident(
        MINOR if lasted_us >= _LONG_US else INFO,
        sentence(f"{who} could not reach {whom} of the quorum {episode.when}: {attempts}."),
        unexplained=(
            f"If {whom} was up meanwhile, look at the network, and at its listener." if lasted_us >= _LONG_US else ""
        ),
        figures={"attempts": episode.lines, "peers": len(peers)},
        weight=lasted_us / 1e6,
        # Fetchers and the channel to the quorum notice one absence, in any order.
        cause_by_us=max(episode.start_us + CLOCKS_US, episode.end_us),
        by=tuple(peers),
    )


@kind(
    meaning="A broker could not hand its leaderships over before it stopped.",
    source="kafka.server.KafkaServer.controlledShutdown, KafkaController.doControlledShutdown; BrokerServer.shutdown",
    signatures=(_RETRY, _GIVEN_UP, _REMAINING),
    causes=(*ABSENT, *UNDECIDED),
)
def controlled_shutdown_failed(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield incidents of shutdowns that were requested again, or completed without the controller."""
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
    # In the shutdown of a whole cluster, the last brokers have no successor. The log of one broker does not show that.
    ends = facts.brokers.shutdowns.get(row["cluster_id"], ())
    if len(ends) > 1 and start >= ends[0].start_us:
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
    """Yield incidents of a KRaft migration that waited for brokers to register. They end when it starts."""
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
