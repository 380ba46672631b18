"""Partitions that nobody led or wrote to, that a dead broker led, or whose replicas were moved."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.incidents.episodes import before_shutdown, episodes, grouped
from pipelines.incidents.facts import Facts, Node, Row, partition_name, place
from pipelines.incidents.incident import CRITICAL, MAJOR, MINOR, LoggedIncident
from pipelines.incidents.kind import Signature, kind
from pipelines.incidents.processes import deaths, shutdown_times
from pipelines.incidents.words import brokers, clock, lasting, number, partitions, sentence, span

#: Windows that begin so close to each other are of one episode, microseconds.
_TOGETHER_US = 2_000_000
#: A controller that is there fences a broker so soon after its session has run out, microseconds.
_PROMPT_US = 5_000_000
#: zookeeper.session.timeout.ms since 2.5, twice broker.session.timeout.ms.
_SESSION_MS = 18_000
#: Ends of leaderships that a live leader saw.
_MOVED = ("controlled_shutdown", "preferred", "reassignment", "log_dir_failed")
#: A reassignment that is younger may end at any time, microseconds.
_OLD_US = 60_000_000
_PREFIX = r"(?:\[[^\]]*\]:?,? ?)?"
_BEGUN = Signature(
    "reassignment_begun",
    ("KafkaController",),
    _PREFIX + r"Handling reassignment of partition (?P<key>\S+) to new replicas .*",
    "kafka.controller.KafkaController.onPartitionReassignment, up to 2.3",
    ("INFO",),
)
_ENDED = Signature(
    "reassignment_ended",
    ("KafkaController",),
    _PREFIX + r"(?:Removed|Removing) partitions? (?P<key>.+) from the list of reassigned partitions in zookeeper",
    "kafka.controller.KafkaController.removePartitionsFromReassignedPartitions",
    ("INFO",),
)
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


def _outages(facts: Facts, state: str) -> list[list[Row]]:
    """Windows of `gold.availability`, those of one cluster that begin together as one."""
    rows = [row for row in before_shutdown(facts, facts.availability, "started_time") if row["state"] == state]
    return grouped(sorted(rows, key=lambda row: (row["cluster_id"], row["started_time"])), _begins_with)


def _begins_with(group: list[Row], row: Row) -> bool:
    last = group[-1]
    return bool(row["cluster_id"] == last["cluster_id"] and row["started_time"] - last["started_time"] <= _TOGETHER_US)


@kind(
    meaning="Partitions had no leader: nobody could write to them or read from them.",
    source="OfflinePartitionsCount; kafka.controller.PartitionStateMachine, ReplicationControlManager in KRaft",
    causes=("broker_died", "broker_halted", "log_directory_failed", "broker_stopped", "broker_stalled"),
)
def partitions_without_leader(facts: Facts) -> Iterable[LoggedIncident]:
    """Windows without leader, those that begin together as one."""
    for rows in _outages(facts, "offline"):
        names = frozenset(map(partition_name, rows))
        start = rows[0]["started_time"]
        ends = [row["ended_time"] for row in rows]
        open_ended = sum(end is None for end in ends)
        end = None if open_ended else max(ends)
        some = open_ended not in (0, len(rows))
        still = f" {open_ended:,} of them still had none when the logs end." if some else ""
        longest_s = max(((row["ended_time"] or start) - row["started_time"]) / 1e6 for row in rows)
        yield LoggedIncident(
            severity=CRITICAL,
            cluster_id=rows[0]["cluster_id"],
            start_us=start,
            end_us=end,
            partitions=names,
            sentence=sentence(f"{partitions(names)} had no leader {span(start, end)}.{still}"),
            advice="Bring back a broker that was in the ISR before; an unclean election would lose what only it has.",
            figures={"partitions": len(names), "longest_s": longest_s, "to_the_end": open_ended},
            weight=len(names) * (longest_s or 60.0),
        )


@kind(
    meaning="Partitions had a leader, and fewer in-sync replicas than min.insync.replicas: acks=all is refused.",
    source="kafka.cluster.Partition.appendRecordsToLeader: NotEnoughReplicasException; UnderMinIsrPartitionCount",
    causes=("broker_died", "broker_halted", "log_directory_failed", "broker_stalled", "broker_stopped", "isr_shrunk"),
)
def partitions_under_min_isr(facts: Facts) -> Iterable[LoggedIncident]:
    """Windows under min.insync.replicas, those that begin together as one."""
    for rows in _outages(facts, "under_min_isr"):
        names = frozenset(map(partition_name, rows))
        start = rows[0]["started_time"]
        ends = [row["ended_time"] for row in rows]
        end = None if None in ends else max(ends)
        refused = sum(row["produces_refused"] or 0 for row in rows)
        lasted_s = 60.0 if end is None else (end - start) / 1e6
        minimum = sorted({row["min_insync_replicas"] for row in rows if row["min_insync_replicas"] is not None})
        wanted = f" ({' or '.join(map(str, minimum))})" if minimum else ""
        were = "was" if refused == 1 else "were"
        clients = f" {number(refused, 'acks=all produce')} {were} refused." if refused else ""
        few = "fewer in-sync replicas than min.insync.replicas"
        yield LoggedIncident(
            severity=CRITICAL if refused else MAJOR,
            cluster_id=rows[0]["cluster_id"],
            start_us=start,
            end_us=end,
            partitions=names,
            sentence=sentence(f"{partitions(names)} had {few}{wanted} {span(start, end)}.{clients}"),
            advice=(
                "Bring the replicas back that are out of sync; do not lower min.insync.replicas to let writes through."
            ),
            figures={"partitions": len(names), "produces_refused": refused},
            weight=refused + len(names) * lasted_s,
        )


@kind(
    meaning="A dead broker was still the leader long after its session had run out: partitions were unavailable.",
    source="org.apache.kafka.controller.ReplicationControlManager.maybeFenceOneStaleBroker, which a quorum has to "
    "commit; KafkaController.onBrokerFailure with ZooKeeper",
    causes=("broker_died", "broker_halted", "controller_changed", "quorum_unreachable"),
)
def leader_not_fenced(facts: Facts) -> Iterable[LoggedIncident]:
    """Leaderships of dead brokers that another one took over later than a session and some seconds."""
    for death in deaths(facts):
        session_us = _session_ms(facts, death.node) * 1000
        rows = [
            row
            for row in facts.failovers
            if (row["cluster_id"], row["old_leader"]) == death.node
            and row["reason"] not in _MOVED
            and row["elected_time"] is not None
            and row["elected_time"] - death.last_us > session_us + _PROMPT_US
            and (death.boot_us is None or row["elected_time"] < death.boot_us)
        ]
        if not rows:
            continue
        cluster_id, broker_id = death.node
        names = frozenset(map(partition_name, rows))
        until = max(row["serving_time"] or row["elected_time"] for row in rows)
        were = "were" if len(names) > 1 else "was"
        yield LoggedIncident(
            severity=CRITICAL,
            cluster_id=cluster_id,
            start_us=death.last_us,
            end_us=until,
            broker_ids=(broker_id,),
            partitions=names,
            sentence=sentence(
                f"{partitions(names)} {were} led by broker {broker_id}, which was dead, {span(death.last_us, until)}: "
                f"nobody could write there or read. Its session had run out after {lasting(session_us)}, and no "
                "controller fenced it before."
            ),
            unexplained=(
                "Look at the controllers: without a majority of the quorum nobody is fenced, no leader elected."
            ),
            figures={
                "partitions": len(names),
                "dead_s": (until - death.last_us) / 1e6,
                "session_s": session_us / 1e6,
            },
            weight=len(names) * (until - death.last_us) / 1e6,
        )


def _session_ms(facts: Facts, broker: Node) -> int:
    in_kraft = facts.config(broker, "process.roles") not in (None, "", "[]")
    timeout_ms = facts.config(broker, "broker.session.timeout.ms" if in_kraft else "zookeeper.session.timeout.ms")
    return int(timeout_ms) if timeout_ms is not None and timeout_ms.isdigit() else _SESSION_MS


@kind(
    meaning="A reassignment of a partition began, and had not ended a minute or more later, when the logs end.",
    source="KIP-455; kafka.controller.KafkaController, org.apache.kafka.controller.ReplicationControlManager: "
    "addingReplicas and removingReplicas of a partition's state",
    signatures=(_BEGUN, _ENDED),
    causes=("broker_died", "broker_halted", "log_directory_failed", "fetcher_died"),
)
def reassignment_unfinished(facts: Facts) -> Iterable[LoggedIncident]:
    """Partitions whose last state within the logs adds or removes replicas, each by itself."""
    ends = shutdown_times(facts)
    for row in (*facts.reassignments, *_begun_by_controller(facts)):
        name, start = partition_name(row), row["first_time"]
        lasted_us = ends.get(row["cluster_id"], facts.ends.get(row["cluster_id"], start)) - start
        if lasted_us < _OLD_US:
            continue
        sides = (("adds", row["adding"]), ("removes", row["removing"]))
        changes = [f"{verb} {brokers(ids)}" for verb, ids in sides if ids]
        what = f" ({' and '.join(changes)})" if changes else ""
        yield LoggedIncident(
            severity=MINOR,
            cluster_id=row["cluster_id"],
            start_us=start,
            end_us=None,
            broker_ids=tuple(sorted({*row["adding"], *row["removing"]})),
            partitions=frozenset({name}),
            sentence=(
                f"The reassignment of {partitions([name])}{what} began at {clock(start)} and had not ended "
                f"{lasting(lasted_us)} later, when the logs end."
            ),
            advice=(
                "Ask kafka-reassign-partitions --verify: a broker that is away, a full disk, or a throttle below what "
                "is produced (follower.replication.throttled.rate) keep a new replica back. --cancel ends it."
            ),
            figures={"unfinished_s": lasted_us / 1e6},
            places=(place(row),),
            weight=lasted_us / 1e6,
        )


def _begun_by_controller(facts: Facts) -> Iterable[Row]:
    """The same by lines of ZooKeeper controllers whose brokers do not log what a reassignment adds."""
    ended = facts.remarked(_ENDED)
    for row in facts.remarked(_BEGUN):
        topic, _, number = row["key"].strip("[]").replace(",", "-").rpartition("-")
        names = (f"{topic}-{number}", f"{topic},{number}")
        is_over = any(
            other["cluster_id"] == row["cluster_id"]
            and other["last_time"] >= row["last_time"]
            and any(name in other["key"] for name in names)
            for other in ended
        )
        if not is_over and number.isdigit():
            yield {**row, "topic": topic, "partition": int(number), "adding": (), "removing": ()}


@kind(
    meaning="A ZooKeeper controller found no eligible replica, or another controller had elected before it.",
    source="kafka.controller.PartitionStateMachine.doElectLeaderForPartitions",
    signatures=(_NOT_ELECTED,),
    causes=(
        *("partitions_without_leader", "controlled_shutdown_failed", "broker_died", "broker_stalled", "broker_stopped"),
        "controller_changed",
    ),
)
def elections_failed(facts: Facts) -> Iterable[LoggedIncident]:
    """Episodes by cluster, but for those in which the whole cluster is shut down."""
    for episode in episodes(before_shutdown(facts, facts.remarked(_NOT_ELECTED)), within_s=15):
        ids, names = episode.broker_ids, episode.partitions
        who = f"The controller ({brokers(ids)})" if ids else "The controller"
        where = f" of {partitions(names)}" if names else ""
        attempts = number(episode.lines, "failed attempt")
        yield episode.incident(
            MINOR,
            f"{who} could not elect a leader{where} {episode.when}: {attempts}.",
            partitions=names,
            advice="Bring back a broker that was in the ISR: no other replica is eligible.",
            figures={"attempts": episode.lines, "partitions": len(names)},
        )
