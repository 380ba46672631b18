"""Lines at WARN or above that no other kind tells of: the most frequent texts, so that none is silent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pipelines.incidents.episodes import episodes
from pipelines.incidents.facts import Facts, Row, place
from pipelines.incidents.incident import INFO, LoggedIncident
from pipelines.incidents.kind import Signature, kind
from pipelines.incidents.witnesses import CONTROLLER_UNREACHABLE
from pipelines.incidents.words import sentence, span, times

_DAY_US = 86_400_000_000
#: Texts of a cluster and a day that are told.
SHOWN_MAX = 5
_RANK = {"FATAL": 0, "ERROR": 1, "WARN": 2}
_GAP_S = 60
#: A line goes with an incident that begins so shortly after it at most, or ended so shortly before, microseconds.
_SLACK_US = 30_000_000
_PREFIX = r"(?:\[[^\]]*\]:?,? ?)?"
_AWAY = (
    *("broker_died", "broker_halted", "broker_stalled", "broker_stopped", "broker_fenced", "logs_end_early"),
    *("session_expired", "log_directory_failed", "leader_unreachable", "quorum_unreachable"),
)
_ELECTED = (*_AWAY, "controller_changed", "partitions_without_leader", "elections_failed", "controlled_shutdown_failed")


class Companion(NamedTuple):
    """Lines that go with what another incident tells."""

    signature: Signature  #: the lines
    kinds: tuple[str, ...]  #: of the incidents; empty: they are part of each start or stop, and never told


def _companion(
    name: str, loggers: str, pattern: str, source: str, kinds: Sequence[str] = (), level: str = "WARN"
) -> Companion:
    return Companion(
        Signature(name, tuple(loggers.split()), _PREFIX + pattern, source, (level,), gap_s=_GAP_S), tuple(kinds)
    )


COMPANIONS = (
    _companion(
        "first_start",
        "BrokerMetadataCheckpoint",
        r"No meta\.properties file under dir .*",
        "kafka.server.BrokerMetadataCheckpoint.read: a broker's first start",
    ),
    _companion(
        "controller_activated",
        "QuorumController ActivationRecordsGenerator",
        r"Performing controller activation\..*",
        "org.apache.kafka.controller.ActivationRecordsGenerator: each time a controller becomes active",
    ),
    _companion(
        "raft_not_handed_over",
        "KafkaRaftClient",
        r"Graceful shutdown timed out after \d+ ?ms",
        "org.apache.kafka.raft.KafkaRaftClient.GracefulShutdown: the last node of a quorum has nobody to hand over to",
        ("broker_stopped",),
    ),
    _companion(
        "raft_ended",
        "KafkaRaftClientDriver KafkaRaftManager$RaftIoThread RaftIoThread",
        r"Graceful shutdown of RaftClient failed",
        "org.apache.kafka.raft.KafkaRaftClientDriver.doWork",
        ("broker_stopped",),
        "ERROR",
    ),
    _companion(
        "transactions_loaded",
        "TransactionStateManager",
        r"Unloaded transaction metadata .* as part of loading metadata at epoch \d+",
        "kafka.coordinator.transaction.TransactionStateManager.addLoadedTransactionsToCache",
    ),
    _companion(
        "topic_is_there",
        "DefaultAutoTopicCreationManager",
        r"Auto topic creation failed for \S+ with error 'TOPIC_ALREADY_EXISTS'.*",
        "kafka.server.DefaultAutoTopicCreationManager: two brokers create an internal topic at once",
    ),
    _companion(
        "metadata_version_is_known",
        "ClusterControlManager",
        r"Broker \d+ registered with feature metadata\.version that is unknown to the controller",
        "org.apache.kafka.controller.ClusterControlManager.registerBroker, 3.7 and 3.8",
    ),
    _companion(
        "created_by_reassignment",
        "state.change.logger",
        r"Expected partition \S+ with topic id \S+ to exist, but it was missing\. Creating\.\.\.",
        "kafka.server.ReplicaManager.getOrCreatePartition: KRaft, a replica that a broker has not had before",
        level="ERROR",
    ),
    _companion(
        "high_watermark_steps_back",
        "Log UnifiedLog MergedLog",
        r"Non-monotonic update of high watermark from .*",
        "kafka.log.UnifiedLog.updateHighWatermarkMetadata: rules judge it, and trace finding shows it",
        ("unclean_election", "data_lost", "controller_changed", *_AWAY),
    ),
    Companion(CONTROLLER_UNREACHABLE, _AWAY),
    _companion(
        "controller_sends_in_vain",
        "RequestSendThread",
        r"Controller \d+ fails to send a request to broker .*",
        "kafka.controller.RequestSendThread.doWork",
        (*_AWAY, "controller_changed"),
        "ERROR",
    ),
    _companion(
        "leader_is_known",
        "state.change.logger",
        r"(?:Broker \d+ )?(?i:ignoring) LeaderAndIsr request from controller \d+ with .* since its associated leader "
        r"epoch \d+ is (?:not higher than|old).*",
        "kafka.server.ReplicaManager.becomeLeaderOrFollower, up to 2.2: a request that is sent again",
        _ELECTED,
    ),
    _companion(
        "old_controller_is_refused",
        "state.change.logger",
        r"(?:Broker \d+ )?Received (?:LeaderAndIsr|update metadata|stop replica) request .* from an old controller .*",
        "kafka.server.ReplicaManager: fencing by controller epoch",
        _ELECTED,
    ),
    _companion(
        "no_leader_to_follow",
        "state.change.logger",
        r"(?:Broker \d+ )?[Rr]eceived LeaderAndIsrRequest .* cannot become follower since the new leader -?\d+ is "
        r"unavailable.*",
        "kafka.server.ReplicaManager.makeFollowers",
        _ELECTED,
        "ERROR",
    ),
    _companion(
        "is_not_in_isr",
        "KafkaController",
        r"Cannot remove replica \d+ from ISR of partition .* since it is not in the ISR\..*",
        "kafka.controller.KafkaController.removeReplicaFromIsr",
        _ELECTED,
    ),
    _companion(
        "shutdown_is_asked_for_again",
        "KafkaServer",
        r"Error during controlled shutdown, possibly because .*",
        "kafka.server.KafkaServer.controlledShutdown",
        ("broker_stopped", "controlled_shutdown_failed"),
    ),
    _companion(
        "client_is_gone",
        "Processor",
        r"Attempting to send response via channel for which there is no open connection, connection id .*",
        "kafka.network.Processor.sendResponse",
        _AWAY,
    ),
    _companion(
        "zookeeper_was_silent",
        "ClientCnxn",
        r"(?:Client session timed out, have not heard from server in .*|Unable to reconnect to ZooKeeper service, "
        r"session .* has expired|Session 0x\S+ for se?r?ver .*, Closing socket connection\. Attempting reconnect .*"
        r"|An exception was thrown while closing send thread for session .*)",
        "org.apache.zookeeper.ClientCnxn.SendThread.run",
        ("session_expired", "broker_stalled"),
    ),
    _companion(
        "isr_task_lost_session",
        "KafkaScheduler",
        r"Uncaught exception in scheduled task 'isr-(?:expiration|change-propagation)'",
        "kafka.utils.KafkaScheduler.schedule",
        ("session_expired",),
        "ERROR",
    ),
    _companion(
        "broker_epoch_is_stale",
        "AlterIsrManagerImpl DefaultAlterIsrManager DefaultAlterPartitionManager",
        r"Broker had a stale broker epoch.*",
        "kafka.server.DefaultAlterPartitionManager.handleAlterPartitionResponse",
        ("session_expired", "broker_fenced", "broker_stalled", "broker_stopped", "broker_died"),
    ),
    _companion(
        "directory_is_off_line",
        "state.change.logger ReplicationControlManager LogManager LogCleaner",
        r"(?:Unable to bring up new local leader .* because it resides in an offline log directory\.|Directories .* in "
        r"broker \d+ marked offline, remaining directories: .*|Logs for partitions .* are offline .*"
        r"|Stopping cleaning logs in dir .*)",
        "kafka.log.LogManager.handleLogDirFailure, kafka.cluster.Partition, ReplicationControlManager",
        ("log_directory_failed",),
    ),
    _companion(
        "controller_has_moved",
        "ControllerApis",
        r"Unexpected error handling request .*",
        "kafka.server.ControllerApis.handle: NotControllerException and the like, as a controller comes or goes",
        ("controller_changed", "broker_died", "broker_stopped", "broker_stalled", "quorum_unreachable"),
        "ERROR",
    ),
    _companion(
        "controller_event_is_late",
        "QuorumController EventPerformanceMonitor",
        r"(?:\w+: unable to start processing because of NotControllerException.*|Exceptionally slow controller event"
        r" .*)",
        "org.apache.kafka.controller.QuorumController; EventPerformanceMonitor, 4.0 on",
        ("controller_changed", "broker_died", "broker_stopped", "broker_stalled", "quorum_unreachable"),
        "ERROR",
    ),
)


@kind(
    meaning="Lines at WARN, ERROR or FATAL of one text, which no other kind of incident tells of, at most five texts a "
    "day. Lines of each start and stop, and those of what an incident tells already, are left out.",
    source="any class",
    signatures=tuple(companion.signature for companion in COMPANIONS),
    is_rest=True,
)
def also_logged(facts: Facts, incidents: Sequence[LoggedIncident] = ()) -> Iterable[LoggedIncident]:
    """The most frequent texts of each cluster and day, errors before warnings.

    Args:
        incidents: all others: what goes with one of them is not told again.
    """
    of_day: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in (*facts.loud, *_unexplained(facts, incidents)):
        of_day[row["cluster_id"], row["first_time"] // _DAY_US].append(row)
    for rows in of_day.values():
        ordered = sorted(rows, key=lambda row: (_RANK[row["level"]], -row["line_count"], row["template"]))
        for row in ordered[:SHOWN_MAX]:
            yield _logged(facts, row)


def _unexplained(facts: Facts, incidents: Sequence[LoggedIncident]) -> Iterable[Row]:
    """Companions whose incident is not there, as rows of `Facts.loud`."""
    by_kind: dict[tuple[str, str], list[LoggedIncident]] = defaultdict(list)
    for incident in incidents:
        by_kind[incident.cluster_id, incident.kind].append(incident)
    for signature, kinds in COMPANIONS:
        alone = [
            row
            for row in facts.remarked(signature)
            if kinds
            and not any(_goes_with(row, incident) for kind in kinds for incident in by_kind[row["cluster_id"], kind])
        ]
        by_day = [row | {"day": row["first_time"] // _DAY_US} for row in map(dict, alone)]
        for episode in episodes(by_day, "day", within_s=_DAY_US // 1_000_000):
            yield {
                **episode.rows[0],
                "level": signature.levels[0],
                "template": signature.name,
                "line_count": episode.lines,
                "first_time": episode.start_us,
                "last_time": episode.end_us,
                "broker_ids": episode.broker_ids,
            }


def _goes_with(row: Row, incident: LoggedIncident) -> bool:
    begins_before = incident.start_us <= row["last_time"] + _SLACK_US
    return bool(begins_before and (incident.end_us is None or row["first_time"] <= incident.end_us + _SLACK_US))


def _logged(facts: Facts, row: Row) -> LoggedIncident:
    first_line = row["message"].split("\n")[0]
    text = first_line if len(first_line) <= 160 else first_line[:159] + "…"
    ids = [broker_id for broker_id in row["broker_ids"] or () if broker_id is not None]
    who = sentence(facts.named(row["cluster_id"], ids)) if ids else "Nodes that no line names"
    when = span(row["first_time"], row["last_time"]) if row["line_count"] > 1 else ""
    return LoggedIncident(
        severity=INFO,
        cluster_id=row["cluster_id"],
        start_us=row["first_time"],
        end_us=row["last_time"],
        broker_ids=tuple(ids),
        sentence=f"{who} also logged at {row['level']} {times(row['line_count'])}{' ' + when if when else ''}: {text}",
        figures={"lines": row["line_count"]},
        places=(place(row),),
        weight=float(row["line_count"]),
        subject=f"{row['level']} {row.get('logger', '')} {row['template']}",
    )
