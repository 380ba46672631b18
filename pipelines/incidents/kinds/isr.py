"""In-sync sets: replicas that left them, and leaders whose changes of them were refused."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from highwater.pipelines.incidents.advice import is_any_not_restarted, is_open
from highwater.pipelines.incidents.episodes import Window, before_shutdown, episodes, grouped, windows_together
from highwater.pipelines.incidents.facts import Facts, Node, Row, partition_name
from highwater.pipelines.incidents.incident import INFO, MAJOR, MINOR, LoggedIncident, Remedy, bug_of
from highwater.pipelines.incidents.kind import ABSENT, LAGGING, UNDECIDED, Signature, kind
from highwater.pipelines.incidents.words import brokers, clock, lasting, number, partitions, span, times, within

#: Absences that begin within this, and end within this, are one incident, microseconds: up to 2.4 leaders check for
#: lag every 5 s (replica.lag.time.max.ms / 2).
_TOGETHER_US = 5_000_000
#: One window is true of absences that begin within this, and end within this, microseconds.
_SPREAD_US = 2_000_000
_NOT_BACK = "was not back at the end of the logs"
#: A produce that waited for a replica is answered so shortly after it left at most, microseconds.
_ANSWERED_US = 2_000_000
#: Role of a replica that closed a wait by leaving the in-sync set.
LEFT = "left_isr"
#: Leaving so often, with no more than the gap between two times, is flapping.
_TIMES_MIN = 4
_GAP_US = 600_000_000
#: A leader accepts a state that is sent again sooner than this, microseconds.
_STUCK_US = 30_000_000
#: A leader that is replaced in order learns of it sooner, milliseconds.
_LONG_MS = 1_000
_REFUSED = Signature(
    "isr_change_refused",
    ("Partition",),
    r"\[?Partition (?P<partition>\S+) (?:broker=\d+\] |on broker \d+: )(?:Cached zkVersion \[\d+\] "
    r"not equal to that in zookeeper, skip updating ISR|Failed to (?:update ISR|alter partition) to .* (?:"
    r"leader epoch is old|an old leader epoch|invalid version|version is invalid|invalid update version).*)",
    "kafka.cluster.Partition.updateIsr up to 2.7, submitAlterPartition from 2.7 on",
    ("INFO", "WARN", "ERROR"),
)
_JOIN_REJECTED = Signature(
    "isr_join_rejected",
    ("Partition",),
    r"\[Partition (?P<partition>\S+) broker=\d+\] Failed to alter partition to PendingExpandIsr\(newInSyncReplicaId="
    r"(?P<key>\d+).* since the controller rejected the request with \w+\..*",
    "kafka.cluster.Partition.handleAlterPartitionError, 3.3 on: INELIGIBLE_REPLICA, OPERATION_NOT_ATTEMPTED",
    ("INFO",),
    gap_s=120,
)
_ERROR_CODE = re.compile(r"rejected the request with (?P<error>\w+)\.")


@kind(
    meaning="A replica was taken out of in-sync sets, and came back or did not.",
    source="kafka.cluster.Partition.maybeShrinkIsr: replica.lag.time.max.ms; the controller when a broker is fenced",
    causes=("controller_slow", "heartbeats_not_sent", *LAGGING),
)
def isr_shrunk(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield replicas that left the ISR. If one leaves and rejoins several partitions together, that is one incident."""
    by_replica: dict[Node, list[_Absence]] = defaultdict(list)
    last_states = {(row["cluster_id"], partition_name(row)): row for row in facts.last_states}
    for row in before_shutdown(facts, facts.absences, "left_time"):
        last = last_states.get((row["cluster_id"], partition_name(row)))
        if _may_be_moved(facts, row, None if last is None else last["replicas"]):
            continue
        by_replica[row["cluster_id"], row["replica_id"]].append(_absence(facts, row, last))
    for replica, absences in sorted(by_replica.items()):
        waits = [
            row for row in facts.waits if row["role"] == LEFT and (row["cluster_id"], row["replica_id"]) == replica
        ]
        # A wait counts once: in the group with the most partitions.
        for group, unseen in _groups(absences):
            left = [absence.row["left_time"] for absence in (*group, *unseen)]
            ended = [row for row in waits if any(abs(row["completed_us"] - at) <= _ANSWERED_US for at in left)]
            waits = [row for row in waits if row not in ended]
            yield _shrunk(replica, group, unseen, ended)


class _Absence(NamedTuple):
    """A time in which a replica was out of the ISR, and what lines show of its end."""

    row: Row
    until_us: int | None  #: Last instant at which the replica was certainly outside. None: to the end of the logs.
    is_whole: bool  #: Lines show when it ended, or that it did not.

    @property
    def window(self) -> Window:
        """Return the cluster and time in which the replica was certainly out of the ISR."""
        return Window(self.row["cluster_id"], self.row["left_time"], self.until_us)


def _absence(facts: Facts, row: Row, last: Row | None) -> _Absence:
    """Return the time in which a replica was out of the ISR, with its end.

    Args:
        row: row of `gold` with the times at which the replica left and came back.
        last: last state of the partition. None if it has no leader then, so that the ISR does not change.
    """
    back_us, outside_us = row["back_time"], row["outside_time"] or row["left_time"]
    if back_us is not None:
        # Two clocks may differ so much that it is back before it left.
        is_whole = row["ended"] != "unseen" and row["left_time"] <= back_us <= outside_us + _SPREAD_US
        return _Absence(row, back_us if is_whole else outside_us, is_whole)
    if last is None or facts.brokers.is_gone_since((row["cluster_id"], row["replica_id"]), row["left_time"]):
        return _Absence(row, None, True)
    if last["leader"] is None:
        return _Absence(row, outside_us, False)
    until_us = facts.brokers.shown_until((row["cluster_id"], last["leader"]), last["begin_by_time"])
    return _Absence(row, until_us, until_us is None)


def _may_be_moved(facts: Facts, row: Row, replicas: Sequence[int] | None) -> bool:
    """Return True if a replica that a controller took out and that was not back may have been moved to another broker.

    The replica's broker joined sets of other partitions since, and its own lines, which show a deleted log, are
    missing.

    Args:
        replicas: last assigned replicas of the partition. None if unknown.
    """
    of_node = row["cluster_id"], row["replica_id"]
    is_back = row["back_time"] is not None and row["ended"] != "unseen"
    if is_back or row["made_by"] != "controller" or replicas is not None or facts.has_lines(of_node):
        return False
    return bool(facts.joined.get(of_node, 0) > row["left_time"])


def _groups(absences: Sequence[_Absence]) -> Iterable[tuple[list[_Absence], list[_Absence]]]:
    """Yield times out of the ISR in groups that begin and end together, the largest group first.

    Each group comes with the times that begin with it and whose end no line shows.
    """
    unseen = [absence for absence in absences if not absence.is_whole]
    whole = [absence for absence in absences if absence.is_whole]
    for group in sorted(windows_together(whole, lambda each: each.window, _TOGETHER_US), key=len, reverse=True):
        start = min(absence.window.start_us for absence in group)
        with_it = [absence for absence in unseen if abs(absence.window.start_us - start) <= _TOGETHER_US]
        unseen = [absence for absence in unseen if absence not in with_it]
        yield group, with_it
    for group in windows_together(unseen, lambda each: each.window, _TOGETHER_US):
        yield [], group


def _shrunk(
    replica: Node, group: Sequence[_Absence], unseen: Sequence[_Absence], waits: Sequence[Row]
) -> LoggedIncident:
    """Return the incident of one replica that was out of the ISR.

    Args:
        replica: (cluster, broker id).
        group: times out of the ISR that begin and end together.
        unseen: times out of the ISR without a line about their end.
        waits: produces that were answered when the replica left.
    """
    shown = group or unseen
    rows = [absence.row for absence in shown]
    names = frozenset(map(partition_name, rows))
    windows = [absence.window for absence in shown]
    start = min(window.start_us for window in windows)
    ends = [window.end_us for window in windows if window.end_us is not None]
    end = max(ends, default=None)
    repeated = len(rows) - len(names)
    again = f" It left {times(repeated)} more." if repeated and group else ""
    removed = {partition_name(row) for row in rows if row["ended"] in ("removed", "deleted")}
    gone = f" It holds {partitions(removed)} no longer." if removed else ""
    leaders = {row["leader"] for row in rows} - {replica[1], -1}
    is_by_leader = len(leaders) == 1 and all(row["made_by"] == "leader" and row["leader"] in leaders for row in rows)
    by = f" (leader: {brokers(leaders)})" if is_by_leader else ""
    outside = (_outside if group else _outside_at_least)(f"the ISR of {partitions(names)}{by}", shown)
    others = {partition_name(absence.row) for absence in unseen} - names
    more = f" It left {partitions(others)}, too: no line shows when it was back there." if others else ""
    operations = sum(row["operations"] for row in waits)
    longest_ms = max((row["wait_ms_max"] for row in waits), default=0.0)
    produces = number(operations, "acks=all produce")
    waited = (
        f" Until then {produces} had waited for it, the longest {lasting(longest_ms * 1000)}." if operations else ""
    )
    lasted_s = 60.0 if end is None else (end - start) / 1e6
    return LoggedIncident(
        severity=MAJOR if end is None else MINOR,
        cluster_id=replica[0],
        start_us=start,
        end_us=end,
        broker_ids=(replica[1],),
        partitions=names,
        sentence=f"Broker {replica[1]} {outside}{again}{gone}{more}{waited}",
        advice=Remedy(f"Find out why broker {replica[1]} did not keep up or is not there.", is_open),
        unexplained=(
            f"Look outside Kafka at broker {replica[1]} at {clock(start)}: garbage collection (gc.log), its disk, its "
            "network to the leader."
        ),
        figures={
            "partitions": len(names),
            "not_back": len(rows) - len(ends),
            "produces": operations,
            "longest_ms": longest_ms,
        },
        weight=len(names) * lasted_s,
        # A leader that froze removes, when it resumes, all replicas that could not fetch from it.
        by=(replica[1], *sorted(leaders)),
    )


def _outside(what: str, absences: Sequence[_Absence]) -> str:
    """Return words for when a replica was out of the ISR of the partitions `what`. Lines show the ends."""
    lefts = [absence.window.start_us for absence in absences]
    backs = [absence.window.end_us for absence in absences if absence.window.end_us is not None]
    is_repeated = len({partition_name(absence.row) for absence in absences}) < len(absences)
    if not is_repeated and all(max(each) - min(each) <= _SPREAD_US for each in (lefts, backs) if each):
        return f"was out of {what} {span(min(lefts), max(backs, default=None))}."
    back = _NOT_BACK
    if backs:
        lasted = sorted(
            absence.window.end_us - absence.window.start_us for absence in absences if absence.window.end_us
        )
        shortest_to_longest = " to ".join(dict.fromkeys(lasting(each) for each in (lasted[0], lasted[-1])))
        back = f"was back {within(min(backs), max(backs))}, after {shortest_to_longest}"
    return f"left {what} {within(min(lefts), max(lefts))} and {back}."


def _outside_at_least(what: str, absences: Sequence[_Absence]) -> str:
    """Return words for when a replica was certainly out of the ISR of the partitions `what`. No line shows the end."""
    lefts = [absence.window.start_us for absence in absences]
    until = min(absence.window.end_us or absence.window.start_us for absence in absences)
    rows = [absence.row for absence in absences if absence.row["ended"] not in (None, "unseen")]
    backs = [row["back_time"] for row in rows if row["back_time"] >= row["left_time"]]
    back = f"It was back by {clock(max(backs))}." if len(backs) == len(absences) else "No line shows when it was back."
    if until - max(lefts) <= _SPREAD_US:
        return f"was out of {what} {within(min(lefts), max(lefts))}. {back}"
    return f"was out of {what} from {clock(max(lefts))} to {clock(until)} at least. {back}"


@kind(
    meaning="A leader took one replica out of the ISR of a partition four times or more, ten minutes apart at most.",
    source="kafka.cluster.Partition.maybeShrinkIsr and maybeExpandIsr; IsrShrinksPerSec",
    causes=LAGGING,
)
def isr_flapping(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield replicas that left one partition's ISR four times or more, each within ten minutes of the last."""
    left: dict[tuple[Node, str], list[int]] = defaultdict(list)
    for row in facts.absences:
        if row["made_by"] == "leader":
            left[(row["cluster_id"], row["replica_id"]), partition_name(row)].append(row["left_time"])
    flapping: dict[Node, dict[str, list[int]]] = defaultdict(dict)
    for (replica, name), of_partition in left.items():
        run = grouped(of_partition, lambda run, time_us: time_us - run[-1] <= _GAP_US)[-1]
        if len(run) >= _TIMES_MIN:
            flapping[replica][name] = run
    for (cluster_id, broker_id), runs in sorted(flapping.items()):
        start, end = min(run[0] for run in runs.values()), max(run[-1] for run in runs.values())
        count = sum(map(len, runs.values()))
        yield LoggedIncident(
            severity=MAJOR,
            cluster_id=cluster_id,
            start_us=start,
            end_us=end,
            broker_ids=(broker_id,),
            partitions=frozenset(runs),
            sentence=(
                f"Broker {broker_id} left the ISR of {partitions(runs)} again and again {span(start, end)}: "
                f"{number(count, 'time')}."
            ),
            advice=(
                f"Look at the disk and network of broker {broker_id}, which keeps up only now and then, at "
                "num.replica.fetchers, and at replica.lag.time.max.ms if it was lowered."
            ),
            figures={"times": count, "partitions": len(runs)},
            weight=float(count),
            by=(broker_id,),
        )


@kind(
    meaning="A broker took itself for the leader of partitions, and its ISR changes were refused as out of date.",
    source="kafka.cluster.Partition.updateIsr and submitAlterPartition; KAFKA-2729",
    signatures=(_REFUSED,),
    causes=(*ABSENT, *UNDECIDED),
)
def zombie_leader(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield leaders whose ISR changes were refused, with the time with two leaders if the logs show it.

    Records that such a leader accepted after the next election were never committed.
    """
    for episode in episodes(facts.remarked_by_brokers(_REFUSED), "broker_id"):
        (cluster_id, broker_id), refused, names = episode.node, episode.lines, episode.partitions
        two_ms = max(
            (
                row["elected_to_stepped_down_ms"]
                for row in facts.failovers
                if row["cluster_id"] == cluster_id
                and row["old_leader"] == broker_id
                and row["elected_to_stepped_down_ms"] is not None
                and row["stepped_down_time"] >= episode.start_us
                and row["elected_time"] <= episode.end_us
            ),
            default=0.0,
        )
        is_old_state = any("Cached zkVersion" in row["message"] for row in episode.rows)
        where = f" of {partitions(names)}" if names else ""
        were = "was" if refused == 1 else "were"
        changes = f"{number(refused, 'ISR change')}{where} {were} refused {episode.when}"
        fields = {
            "partitions": names,
            "figures": {"isr_changes_refused": refused, "two_leaders_s": two_ms / 1000},
            "weight": 700.0 + refused,
            "by": (broker_id,),
        }
        if two_ms >= _LONG_MS:
            yield episode.incident(
                MAJOR,
                f"Broker {broker_id} kept acting as leader after it had been replaced: {changes}. There were two "
                f"leaders for {two_ms / 1000:.1f} s.",
                advice=(
                    f"Look at what acks=1 producers sent broker {broker_id} meanwhile: it is cut off as the broker "
                    "becomes a follower."
                ),
                **fields,
            )
        else:
            is_stuck = is_old_state and episode.end_us - episode.start_us >= _STUCK_US
            yield episode.incident(
                MINOR,
                f"{changes} to leader {broker_id}: its state is older than in ZooKeeper or the controller.",
                advice=Remedy(
                    f"If more are refused, restart broker {broker_id}: it does not read its state again by itself.",
                    is_any_not_restarted,
                ),
                known_bug=bug_of("KAFKA-2729", facts.version(episode.node, episode.start_us)) if is_stuck else None,
                **fields,
            )


@kind(
    meaning="A controller did not let a replica back into in-sync sets: it is fenced, stops, or started again since.",
    source="KIP-841; ReplicationControlManager.validateAlterPartitionData",
    signatures=(_JOIN_REJECTED,),
    causes=ABSENT,
)
def isr_join_rejected(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield replicas that were kept from joining the ISR: one incident per replica for refusals with short gaps.

    A broker that starts or stops is normally rejected for seconds.
    """
    for episode in episodes(before_shutdown(facts, facts.remarked(_JOIN_REJECTED)), "key", within_s=120):
        replica, names = int(episode.keys[0]), episode.partitions
        error = _ERROR_CODE.search(episode.message)
        answer = f" with {error['error']}" if error else ""
        is_stuck = episode.end_us - episode.start_us >= _STUCK_US
        yield episode.incident(
            MAJOR if is_stuck else INFO,
            f"Broker {replica} could not join the ISR of {partitions(names)} {episode.when}: the controller rejected "
            f"{number(episode.lines, 'request')}{episode.at_brokers}{answer}.",
            broker_ids=(replica,),
            advice=f"See whether broker {replica} is fenced. Restart it if its heartbeats reach the controller."
            if is_stuck
            else "",
            figures={"rejected": episode.lines, "partitions": len(names)},
        )
