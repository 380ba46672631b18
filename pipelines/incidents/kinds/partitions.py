"""Partitions without a live leader, or with too few in-sync replicas."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from highwater.pipelines.incidents.advice import is_any_offline, is_open
from highwater.pipelines.incidents.episodes import Episode, Window, before_shutdown, episodes, windows_together
from highwater.pipelines.incidents.facts import Facts, Node, Row, partition_name, place
from highwater.pipelines.incidents.incident import CRITICAL, MAJOR, MINOR, LoggedIncident, Place, Remedy
from highwater.pipelines.incidents.kind import ABSENT, LAGGING, UNDECIDED, Signature, kind
from highwater.pipelines.incidents.kinds.clients import TOO_FEW, failed_produces
from highwater.pipelines.incidents.witnesses import LEADER_UNREACHABLE
from highwater.pipelines.incidents.words import brokers, clock, lasting, number, partitions, sentence, span, when
from highwater.pipelines.kafka.errors import NOT_ENOUGH_REPLICAS_AFTER_APPEND
from highwater.pipelines.timelines.broker import Death

#: Windows whose starts and ends follow each other within this are of one episode, microseconds: a controller elects for
#: one event in one pass, and notices the next broker after broker.heartbeat.interval.ms (2 s) at the earliest.
_TOGETHER_US = 2_000_000
#: A controller that is there fences a broker so soon after its session has run out, microseconds.
_PROMPT_US = 5_000_000
#: A node that followers missed so shortly before the logs end is out of reach to the end, microseconds.
_STILL_US = 30_000_000
#: zookeeper.session.timeout.ms since 2.5, twice broker.session.timeout.ms.
_SESSION_MS = 18_000
#: Ends of leaderships that a live leader saw.
_MOVED = ("controlled_shutdown", "preferred", "reassignment", "log_dir_failed")
#: Longest gap between refused appends of one window, seconds. No line shows the state between two appends.
_REFUSED_GAP_S = 10
_MINIMUM = re.compile(r"(?:min\.isr requirement of |required minimum \[)(\d+)")
_NOT_ELECTED = Signature(
    "election_failed",
    ("logger", "KafkaController"),
    r"(?:\[[^\]]*\]:? )?(?:Controller \d+ epoch \d+ (?:failed to change state for partition (?P<partition>\S+) from .*"
    r"|initiated state change for partition .* failed|encountered error while electing leader for partition .*"
    r"|aborted leader election for partition .*)|Error completing (?:preferred )?replica leader election .*"
    r"|Partition .* failed to complete preferred replica leader election.*)",
    "kafka.controller.PartitionStateMachine, ZooKeeper controllers",
    ("ERROR", "WARN"),
    gap_s=10,
)
_PREFERRED = Signature(
    "preferred_election_failed",
    ("KafkaController",),
    r"(?:\[[^\]]*\]:? )?(?:Error completing (?:preferred replica leader election|replica leader election "
    r"\(PREFERRED\)) for partition|Partition) (?P<partition>[\w.-]+-\d+)"
    r"(?: failed to complete preferred replica leader election.*)?",
    "kafka.controller.KafkaController.onReplicaElection, onPreferredReplicaElection",
    ("ERROR", "WARN"),
    gap_s=600,
)


class Outage(NamedTuple):
    """A time without a leader, with the time in which a dead broker was still the leader before or after it."""

    row: Row
    start_us: int  #: death of the leader, or the begin of the window
    end_us: int | None  #: next leader that lives; None if there is none until the logs end
    dead: int | None = None  #: broker that was dead and led until the window began

    @property
    def is_older(self) -> bool:
        """Return True if the logs begin within the outage: no line shows the state before."""
        return self.dead is None and "started_after_time" in self.row and self.row["started_after_time"] is None

    @property
    def dead_us(self) -> int:
        """Return how long a dead broker was the leader before the partition had none, microseconds."""
        return int(self.row["started_time"]) - self.start_us

    @property
    def leaderless_us(self) -> int:
        """Return how long the partition had no leader, microseconds. 0 if that lasts until the logs end."""
        return int(self.row["ended_time"] or self.row["started_time"]) - int(self.row["started_time"])


def _windows(facts: Facts, state: str) -> list[Row]:
    return [row for row in before_shutdown(facts, facts.availability, "started_time") if row["state"] == state]


def _outages(facts: Facts) -> list[list[Outage]]:
    """Return times without a leader. Times of one cluster that begin and end together are grouped."""
    died = facts.brokers.deaths
    elections: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for row in facts.failovers:
        if row["elected_time"] is not None and row["new_leader"] is not None:
            elections[row["cluster_id"], partition_name(row)].append((row["elected_time"], row["new_leader"]))
    outages = [
        _outage(died, elections[row["cluster_id"], partition_name(row)], row) for row in _windows(facts, "offline")
    ]
    return [
        group
        for is_older in (False, True)
        for group in windows_together(
            [outage for outage in outages if outage.is_older == is_older],
            lambda outage: Window(outage.row["cluster_id"], outage.start_us, outage.end_us),
            _TOGETHER_US,
            is_chain=True,
        )
    ]


def _outage(died: Sequence[Death], elections: Iterable[tuple[int, int]], row: Row) -> Outage:
    """Return a time without a leader with the time in which a dead broker was still the leader.

    Args:
        elections: time (us) and leader of the partition's elections.
    """
    start, end = row["started_time"], row["ended_time"]
    leader = row.get("previous_leader")
    death = _dead_at(died, (row["cluster_id"], leader), start)
    if end is not None:
        elected = sorted(election for election in elections if election[0] >= start)
        # A leader that was dead as it was elected ends no outage.
        while elected and _dead_at(died, (row["cluster_id"], elected[0][1]), elected[0][0]) is not None:
            elected.pop(0)
            end = elected[0][0] if elected else None
    return Outage(row, start, end) if death is None else Outage(row, death.last_us, end, leader)


def _dead_at(died: Iterable[Death], broker: tuple[str, int | None], time_us: int) -> Death | None:
    """Return the end of the process of a broker (cluster, id) that was dead at an instant (us). None if it was not."""
    return next(
        (
            death
            for death in died
            if death.node == broker and death.last_us <= time_us and (death.boot_us is None or death.boot_us > time_us)
        ),
        None,
    )


@kind(
    meaning="Partitions had no live leader: no reads, no writes.",
    source="OfflinePartitionsCount; kafka.controller.PartitionStateMachine, ReplicationControlManager in KRaft",
    causes=(*ABSENT, *UNDECIDED),
)
def partitions_without_leader(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield times without a live leader: from the death of the leader to the next leader that lives.

    Times that begin and end together are one incident.
    """
    for group in _outages(facts):
        names = frozenset(partition_name(outage.row) for outage in group)
        start = group[0].start_us
        ends = [outage.end_us for outage in group if outage.end_us is not None]
        open_ended = len(group) - len(ends)
        end = max(ends, default=None)
        longest_s = max(((outage.end_us or outage.start_us) - outage.start_us) / 1e6 for outage in group)
        dead = sorted({outage.dead for outage in group if outage.dead is not None})
        led = ""
        if dead:
            led_s = lasting(max(outage.dead_us for outage in group))
            leaderless_us = max(outage.leaderless_us for outage in group)
            then = f", leaderless for {lasting(leaderless_us)}" if leaderless_us else ""
            led = f" Led by dead {brokers(dead)} for {led_s}{then}."
        lasted = span(start, end)
        if group[0].is_older:
            until = "the end of the logs" if end is None else f"{clock(end)} (at least {lasting(end - start)})"
            lasted = f"since before {clock(start)}, where the logs begin, to {until}"
        yield LoggedIncident(
            severity=CRITICAL,
            cluster_id=group[0].row["cluster_id"],
            start_us=start,
            end_us=end,
            partitions=names,
            sentence=sentence(f"{partitions(names)} had no {'live ' if dead else ''}leader {lasted}.{led}"),
            advice=Remedy(
                "Bring back a broker that was in the ISR before; an unclean election would lose what only it has.",
                is_open,
            ),
            figures={"partitions": len(names), "longest_s": longest_s, "to_the_end": open_ended},
            weight=len(names) * (longest_s or 60.0),
        )


def _merge_windows(incidents: Sequence[LoggedIncident]) -> LoggedIncident:
    """Return one incident for several that have one cause and follow each other."""
    ends = [incident.end_us for incident in incidents if incident.end_us is not None]
    lengths = [end - incident.start_us for end, incident in zip(ends, incidents, strict=True)]
    names = frozenset(name for incident in incidents for name in incident.partitions)
    shortest, longest = lasting(min(lengths)), lasting(max(lengths))
    start, end = min(incident.start_us for incident in incidents), max(ends)
    each = longest if shortest == longest else f"{shortest} to {longest}"
    return _under_min_isr(
        incidents[0].cluster_id,
        names,
        (start, end),
        {int(incident.figures.get("min_insync_replicas", 0)) for incident in incidents},
        sum(int(incident.figures["produces_refused"]) for incident in incidents),
        sum(int(incident.figures.get("produces_written", 0)) for incident in incidents),
        how_long=f"between {clock(start)} and {clock(end)}, for {each} at a time",
        places=tuple(place for incident in incidents for place in incident.places),
    )


@kind(
    meaning="Partitions had a leader, and fewer in-sync replicas than min.insync.replicas: acks=all is refused. "
    "Windows of one cause that follow each other are one incident, with the produces that were refused.",
    source="kafka.cluster.Partition.appendRecordsToLeader: NotEnoughReplicasException; UnderMinIsrPartitionCount",
    causes=(*LAGGING, "isr_shrunk"),
    merge=_merge_windows,
)
def partitions_under_min_isr(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield times under min.insync.replicas with produces refused meanwhile, then produces refused at other times.

    Times of several partitions that begin and end together are one incident.
    """

    def window(row: Row) -> Window:
        return Window(row["cluster_id"], row["started_time"], row["ended_time"])

    groups = windows_together(_windows(facts, "under_min_isr"), window, _TOGETHER_US, is_chain=True)
    of_group: dict[int, list[Row]] = defaultdict(list)
    elsewhere: list[Row] = []
    too_few = [row for error, rows in failed_produces(facts) if error in TOO_FEW for row in rows]
    for row in before_shutdown(facts, too_few):
        shared = [_shared(row, group) for group in groups]
        if any(shared):
            of_group[shared.index(max(shared))].append(row)
        else:
            elsewhere.append(row)
    for number_of, group in enumerate(groups):
        rows = of_group[number_of]
        counted = sum(row["produces_refused"] or 0 for row in group)
        start, end = group[0]["started_time"], max(row["ended_time"] or 0 for row in group)
        yield _under_min_isr(
            group[0]["cluster_id"],
            frozenset(map(partition_name, group)),
            (start, end or None),
            {row["min_insync_replicas"] for row in group if row["min_insync_replicas"] is not None},
            sum(row["answers"] for row in rows) or counted,
            _written(rows),
            places=tuple(map(place, rows)),
        )
    for episode in episodes(elsewhere, within_s=_REFUSED_GAP_S):
        start, end = _unchanged(facts, episode)
        yield _under_min_isr(
            episode.cluster_id,
            episode.partitions,
            (start, end),
            {int(match[1]) for row in episode.rows for match in _MINIMUM.finditer(row.get("message") or "")},
            sum(row["answers"] for row in episode.rows),
            _written(episode.rows),
            how_long=f"at least {when(start, end)}",
            places=episode.places,
        )


def _unchanged(facts: Facts, episode: Episode) -> tuple[int, int]:
    """Return (start, end), us, of the time in which the ISR of the refused partitions did not change."""
    changes = [
        time_us
        for row in facts.absences
        if row["cluster_id"] == episode.cluster_id and partition_name(row) in episode.partitions
        for time_us in (row["left_time"], row["back_time"])
        if time_us is not None
    ]
    return (
        max((time_us for time_us in changes if time_us <= episode.start_us), default=episode.start_us),
        min((time_us for time_us in changes if time_us >= episode.end_us), default=episode.end_us),
    )


def _shared(refused: Row, group: Sequence[Row]) -> int:
    """Return how many partitions of `group`, which were under min.insync.replicas, `refused` produces meanwhile."""
    first = group[0]
    ends = [row["ended_time"] for row in group]
    is_meanwhile = refused["last_time"] >= first["started_time"] - _TOGETHER_US and (
        None in ends or refused["first_time"] <= max(ends) + _TOGETHER_US
    )
    is_of_cluster = refused["cluster_id"] == first["cluster_id"]
    return len({*refused["partitions"]} & {*map(partition_name, group)}) if is_meanwhile and is_of_cluster else 0


def _written(rows: Iterable[Row]) -> int:
    """Return how many produces were refused after they were written."""
    return sum(row["answers"] for row in rows if row.get("error_code") == NOT_ENOUGH_REPLICAS_AFTER_APPEND)


def _under_min_isr(
    cluster_id: str,
    names: frozenset[str],
    window: tuple[int, int | None],
    minimum: Collection[int],
    refused: int,
    written: int,
    how_long: str = "",
    places: tuple[Place, ...] = (),
) -> LoggedIncident:
    """Return the incident of partitions that were under min.insync.replicas at the same time.

    Args:
        window: start and end in us. No end: until the logs end.
        minimum: values of min.insync.replicas. 0 for an unknown value.
        refused: number of refused produces.
        written: number of refused produces that were written to the leader's log first.
        how_long: words for the duration, if it differs between partitions.
    """
    start, end = window
    lasted_s = 60.0 if end is None else (end - start) / 1e6
    known = sorted(value for value in minimum if value)
    wanted = f" ({' or '.join(map(str, known))})" if known and 0 not in minimum else ""
    few = "fewer in-sync replicas than min.insync.replicas"
    after = f", {written} of them after they were written" if written else ""
    were = "was" if refused == 1 else "were"
    clients = f" {number(refused, 'acks=all produce')} {were} refused{after}." if refused else ""
    figures: dict[str, float] = {"partitions": len(names), "produces_refused": refused}
    return LoggedIncident(
        severity=CRITICAL if refused else MAJOR,
        cluster_id=cluster_id,
        start_us=start,
        end_us=end,
        partitions=names,
        sentence=sentence(f"{partitions(names)} had {few}{wanted} {how_long or span(start, end)}.{clients}"),
        advice=Remedy(
            "Bring the replicas back that are out of sync; do not lower min.insync.replicas to let writes through.",
            is_open,
        ),
        figures=figures
        | ({"produces_written": written} if written else {})
        | ({"min_insync_replicas": known[0]} if wanted and len(known) == 1 else {}),
        places=places,
        weight=refused + len(names) * lasted_s,
    )


@kind(
    meaning="A dead broker was still the leader long after its session had run out: partitions were unavailable.",
    source="org.apache.kafka.controller.ReplicationControlManager.maybeFenceOneStaleBroker, which a quorum has to "
    "commit; KafkaController.onBrokerFailure with ZooKeeper",
    causes=(*ABSENT, *UNDECIDED),
    yields_to=("partitions_without_leader",),
)
def leader_not_fenced(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield dead brokers that stayed leaders for longer than a session and some seconds.

    Partitions that had no leader in between are left to `partitions_without_leader`. Leaders that followers cannot
    reach to the end of the logs, without an election, come last.
    """
    offline: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in _windows(facts, "offline"):
        offline[row["cluster_id"], partition_name(row)].append(row)

    def had_leader(row: Row, since_us: int, until_us: int) -> bool:
        return all(
            each["started_time"] >= until_us or (each["ended_time"] is not None and each["ended_time"] <= since_us)
            for each in offline[row["cluster_id"], partition_name(row)]
        )

    for death in facts.brokers.deaths:
        session_us = _session_ms(facts, death.node) * 1000
        rows = [
            row
            for row in facts.failovers
            if (row["cluster_id"], row["old_leader"]) == death.node
            and row["reason"] not in _MOVED
            and row["elected_time"] is not None
            and row["elected_time"] - death.last_us > session_us + _PROMPT_US
            and (death.boot_us is None or row["elected_time"] < death.boot_us)
            and had_leader(row, death.last_us, row["elected_time"])
        ]
        if not rows:
            continue
        groups = windows_together(
            rows, lambda row: Window(row["cluster_id"], 0, row["serving_time"] or row["elected_time"]), _TOGETHER_US
        )
        for group in groups:
            until = max(row["serving_time"] or row["elected_time"] for row in group)
            yield _not_fenced(
                death.node,
                frozenset(map(partition_name, group)),
                (death.last_us, until),
                f"which was dead, {span(death.last_us, until)}: no reads, no writes. Its session had run "
                f"out after {lasting(session_us)}, and no controller fenced it before.",
                {"session_s": session_us / 1e6},
            )
    yield from _leaders_out_of_reach(facts)


def _leaders_out_of_reach(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield leaders that their followers could not reach to the end of the logs.

    A follower that is a replica of the partition would have logged the next leader.
    """
    missed: dict[Node, dict[int, Row]] = defaultdict(dict)
    for row in before_shutdown(facts, facts.remarked_by_brokers(LEADER_UNREACHABLE)):
        if row["key"].isdigit() and facts.ends.get(row["cluster_id"], 0) - row["last_time"] <= _STILL_US:
            missed[row["cluster_id"], int(row["key"])][row["broker_id"]] = row
    led: dict[Node, dict[str, Row]] = defaultdict(dict)
    for state in facts.last_states:
        leader = state["cluster_id"], state["leader"]
        replicas = {*(state["isr"] or ()), *(state["replicas"] or ())}
        rows = [row for broker_id, row in missed.get(leader, {}).items() if broker_id in replicas]
        if rows and state["begin_by_time"] <= min(row["first_time"] for row in rows):
            led[leader][partition_name(state)] = min(rows, key=lambda row: row["first_time"])
    for leader, rows_by_name in sorted(led.items()):
        session_us = _session_ms(facts, leader) * 1000
        start, end = min(row["first_time"] for row in rows_by_name.values()), facts.ends[leader[0]]
        if end - start <= session_us + _PROMPT_US:
            continue
        yield _not_fenced(
            leader,
            frozenset(rows_by_name),
            (start, None),
            f"which followers could not reach, {span(start, None)} ({lasting(end - start)}): no other leader was "
            "elected.",
            {"session_s": session_us / 1e6},
            places=tuple(map(place, rows_by_name.values())),
            lasted_us=end - start,
        )


def _not_fenced(
    leader: Node,
    names: frozenset[str],
    window: tuple[int, int | None],
    what: str,
    figures: Mapping[str, float],
    places: tuple[Place, ...] = (),
    lasted_us: int = 0,
) -> LoggedIncident:
    start, end = window
    lasted_us = lasted_us if end is None else end - start
    were = "were" if len(names) > 1 else "was"
    return LoggedIncident(
        severity=CRITICAL,
        cluster_id=leader[0],
        start_us=start,
        end_us=end,
        broker_ids=(leader[1],),
        partitions=names,
        sentence=sentence(f"{partitions(names)} {were} led by broker {leader[1]}, {what}"),
        unexplained="Look at the controllers: without a quorum majority no broker is fenced and no leader elected.",
        figures={"partitions": len(names), "dead_s": lasted_us / 1e6, **figures},
        places=places,
        weight=len(names) * lasted_us / 1e6,
    )


def _session_ms(facts: Facts, broker: Node) -> int:
    in_kraft = facts.config(broker, "process.roles") not in (None, "", "[]")
    timeout_ms = facts.config(broker, "broker.session.timeout.ms" if in_kraft else "zookeeper.session.timeout.ms")
    return int(timeout_ms) if timeout_ms is not None and timeout_ms.isdigit() else _SESSION_MS


@kind(
    meaning="A ZooKeeper controller found no eligible replica, or another controller had elected before it.",
    source="kafka.controller.PartitionStateMachine.doElectLeaderForPartitions",
    signatures=(_PREFERRED, _NOT_ELECTED),
    causes=("partitions_without_leader", "controlled_shutdown_failed", *ABSENT, *UNDECIDED),
)
def elections_failed(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield failed elections: one incident per cluster and time span, except in the shutdown of a cluster."""
    for episode in episodes(before_shutdown(facts, facts.remarked(_NOT_ELECTED)), within_s=15):
        ids, names = episode.broker_ids, episode.partitions
        who = f"The controller ({brokers(ids)})" if ids else "The controller"
        where = f" of {partitions(names)}" if names else ""
        attempts = number(episode.lines, "failed attempt")
        yield episode.incident(
            MINOR,
            f"{who} could not elect a leader{where} {episode.when}: {attempts}.",
            partitions=names,
            advice=Remedy("Bring back a broker that was in the ISR: no other replica is eligible.", is_any_offline),
            figures={"attempts": episode.lines, "partitions": len(names)},
        )
    for episode in episodes(before_shutdown(facts, facts.remarked(_PREFERRED)), within_s=600):
        ids, names = episode.broker_ids, episode.partitions
        who = f"The controller ({brokers(ids)})" if ids else "The controller"
        yield episode.incident(
            MINOR,
            f"{who} could not make the preferred replicas of {partitions(names)} leaders {episode.when} "
            f"({number(episode.lines, 'failed attempt')}): they were not alive, or not in the ISR. The partitions keep "
            "their leaders.",
            partitions=names,
            advice="Look at the first replica of these partitions (kafka-topics.sh --describe): it is not in the ISR.",
            figures={"attempts": episode.lines, "partitions": len(names)},
        )
