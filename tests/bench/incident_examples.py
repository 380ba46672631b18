"""An example of each kind of incident: lines as brokers log them, or rows, and the sentence that they give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

#: The instant of second 0, microseconds: 2026-11-20 12:00:00.
START_US = 1_795_176_000_000_000
BOOT = "kafka.utils.Log4jControllerRegistration$"


@dataclass(frozen=True)
class Example:
    """What is known, and what is said of it."""

    sentence: str  #: of the first incident of the kind
    lines: Sequence[tuple[float, int, str, str, str]] = ()  #: second, broker, level, logger, message
    #: fields of `pipelines.incidents.facts.Facts`; instants as seconds, in columns that end in time
    rows: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)


def steady(broker_id: int, *spans: tuple[int, int]) -> list[tuple[float, int, str, str, str]]:
    """Return a line in each half second, of two loggers in turn: a log of one logger alone is an excerpt."""
    return [
        (half / 2, broker_id, "INFO", f"kafka.{'AB'[half % 2]}", "x")
        for first, end in spans
        for half in range(2 * first, 2 * end - 1)
    ]


def _life(second: float, broker_id: int, event: str, detail: str | None = None) -> dict[str, Any]:
    return {"time": second, "broker_id": broker_id, "event": event, "kafka_version": None, "detail": detail}


def _absence(left: float, back: float | None, replica_id: int = 2, leader: int = 1) -> dict[str, Any]:
    of = {"topic": "ledger", "partition": 0, "leader": leader, "replica_id": replica_id, "made_by": "leader"}
    ended = None if back is None else "joined"
    times = {"left_time": left, "outside_time": left if back is None else back, "back_time": back}
    return of | times | {"ended": ended, "isr": [leader, 3]}


def _finding(rule_id: str, message: str, severity: str = "violation") -> dict[str, Any]:
    of = {"finding_id": "0946c89cffff", "rule_id": rule_id, "severity": severity, "implied_by": None, "time": 30}
    at = {"topic": "ledger", "partition": 0, "brokers": [1, 2], "records": 1, "known_bug": None, "offset_start": 118}
    return of | at | {"message": message}


def _outage(state: str, refused: int | None) -> dict[str, Any]:
    of = {"topic": "ledger", "partition": 4, "state": state, "started_time": 10, "ended_time": 44.2}
    return of | {"produces_refused": refused, "min_insync_replicas": 2}


def _controller(second: float, broker_id: int, event: str, subject: int) -> dict[str, Any]:
    of = {"time": second, "broker_id": broker_id, "event": event, "subject_broker_id": subject}
    return of | {"brokers": None, "detail": None}


def _error(code: int, answers: int) -> dict[str, Any]:
    of = {"broker_id": 1, "error_code": code, "first_time": 10, "last_time": 12.5, "answers": answers}
    return of | {"partitions": ["ledger-0"], "client_ids": ["bank"]}


def _wait(second: int) -> dict[str, Any]:
    of = {"second": START_US // 1_000_000 + second, "replica_id": 2, "role": "isr_member", "operations": 20}
    waited = {"slow_wait_ms": 900.0, "score_ms": 900.0, "wait_ms_max": 110.0, "completed_us": 0}
    return of | waited | {"leader_ids": [1, 3], "topics": ["trades"]}


def _voter_set(second: float, node_id: int, directories: Mapping[int, str]) -> tuple[float, int, str, str, str]:
    """Return a line about the voters of the quorum."""
    voters = ", ".join(
        f"{voter}=VoterNode(voterKey=ReplicaKey(id={voter}, directoryId={directory}), listeners=Endpoints(endpoints="
        "{ListenerName(CONTROLLER)=10.0.0.1/<unresolved>:9093}), supportedKRaftVersion=SupportedVersionRange"
        "[min_version:0, max_version:1])"
        for voter, directory in directories.items()
    )
    text = f"[RaftManager id={node_id}] Latest set of voters is VoterSet(voters={{{voters}}}) at offset 7"
    return second, node_id, "INFO", "org.apache.kafka.raft.internals.KRaftControlRecordStateMachine", text


_FETCHER = "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] "

EXAMPLES: dict[str, Example] = {
    "data_lost": Example(
        "Partition ledger-0: 1 acknowledged record is lost: offset 118.",
        rows={"findings": [_finding("committed-data-lost", "1 acknowledged record is lost: offset 118.")]},
    ),
    "guarantee_broken": Example(
        "Partition ledger-0: Replicas 1 and 2 differ at offset 118.",
        rows={"findings": [_finding("replica-divergence", "Replicas 1 and 2 differ at offset 118.")]},
    ),
    "unclean_election": Example(
        "Partition ledger-0: Broker 2 was elected leader of epoch 3 though the ISR was [1].",
        rows={
            "findings": [
                _finding(
                    "unclean-election", "Broker 2 was elected leader of epoch 3 though the ISR was [1]", "observation"
                )
            ]
        },
    ),
    "partitions_without_leader": Example(
        "Partition ledger-4 had no leader from 12:00:10 to 12:00:44 (34.2 s).",
        rows={"availability": [_outage("offline", None)]},
    ),
    "leader_not_fenced": Example(
        "Partition ledger-0 was led by broker 2, which was dead, from 12:00:39 to 12:01:13 (34.5 s): no reads, no "
        "writes. Its session had run out after 9.0 s, and no controller fenced it before.",
        lines=[*steady(2, (0, 40)), (80, 2, "INFO", BOOT, "Registered"), *steady(2, (81, 120))],
        rows={
            "files": [{"broker_id": 2, "first_time": 0, "last_time": 120, "kafka_version": None}],
            "lifecycle": [_life(80.5, 2, "starting"), _life(82, 2, "started")],
            "configs": [
                {"broker_id": 2, "key": "process.roles", "value": "[broker]"},
                {"broker_id": 2, "key": "broker.session.timeout.ms", "value": "9000"},
            ],
            "failovers": [
                {"topic": "ledger", "partition": 0, "old_leader": 2, "reason": "fenced", "isr_before": [2, 3]}
                | {"new_leader": 3}
                | {"elected_time": 73, "serving_time": 73.5}
            ],
        },
    ),
    "partitions_under_min_isr": Example(
        "Partition ledger-4 had fewer in-sync replicas than min.insync.replicas (2) from 12:00:10 to 12:00:44 (34.2 s)."
        " 1 acks=all produce was refused.",
        rows={"availability": [_outage("under_min_isr", 1)]},
    ),
    "isr_shrunk": Example(
        "Broker 2 was out of the ISR of partition ledger-0 (leader: broker 1) from 12:00:10 to 12:00:20 (10.0 s).",
        rows={"absences": [_absence(10, 20)]},
    ),
    "isr_flapping": Example(
        "Broker 2 left the ISR of partition ledger-0 again and again from 12:00:00 to 12:03:00 (3 min): 4 times.",
        rows={
            "absences": [_absence(second, second + 9) for second in (0, 60, 120, 180)],
        },
    ),
    "reassignment_unfinished": Example(
        "The reassignment of partition ledger-3 (adds broker 3 and removes broker 1) began at 12:00:10 and had not "
        "ended 110.0 s later, when the logs end.",
        lines=[(120, 1, "INFO", "kafka.A", "x")],
        rows={
            "assignments": [
                {"topic": "ledger", "partition": 3, "begin_by_time": 10, "adding_replicas": [3]}
                | {"removing_replicas": [1], "replicas": [1, 2, 3]},
            ]
        },
    ),
    "reassignment_ended": Example(
        "Partition ledger-3 was reassigned (adds broker 3 and removes broker 1) from 12:00:10 to 12:00:24 (14.0 s).",
        rows={
            "reassignment_lines": [
                {"topic": "ledger", "partition": 3, "time": 10, "replicas": None}
                | {"detail": "ReplicaAssignment(replicas=2,3,1, addingReplicas=3, removingReplicas=1)"},
                {"topic": "ledger", "partition": 3, "time": 24, "replicas": None}
                | {"detail": "ReplicaAssignment(replicas=2,3, addingReplicas=, removingReplicas=)"},
            ]
        },
    ),
    "voters_changed": Example(
        "The voters of the metadata quorum changed: node 2 was removed at 12:00:20 and node 2 was added with another "
        "data directory at 12:00:50. It has 2 voters now: nodes 1 and 2.",
        lines=[
            _voter_set(10, 1, {1: "A", 2: "B"}),
            *(_voter_set(second, node_id, {1: "A"}) for second, node_id in ((20, 1), (20.2, 3))),
            _voter_set(50, 1, {1: "A", 2: "C"}),
        ],
    ),
    "topics_created_again": Example(
        "Topic ledger was deleted at 12:00:10 and created again at 12:00:15: 6 new partitions, without the records "
        "before.",
        rows={
            "topics_again": [
                {"topic": "ledger", "deleted_time": 10, "created_time": 15, "partitions": 6}
                | {"created_file_id": "f", "created_byte_offset": 9}
            ]
        },
    ),
    "zombie_leader": Example(
        "Broker 2 kept acting as leader after it had been replaced: 2 ISR changes of partitions ledger-1 and ledger-2 "
        "were refused at 12:00:30. There were two leaders for 37.6 s.",
        lines=[
            (
                *(30.0, 2, "INFO", "kafka.cluster.Partition"),
                "Partition [ledger,1] on broker 2: Cached zkVersion [0] not equal to that in zookeeper, skip updating "
                "ISR",
            ),
            (
                *(30.1, 2, "INFO", "kafka.cluster.Partition"),
                "[Partition ledger-2 broker=2] Cached zkVersion [3] not equal to that in zookeeper, skip updating ISR",
            ),
        ],
        rows={
            "failovers": [
                {"topic": "ledger", "partition": 1, "old_leader": 2, "new_leader": 3, "isr_before": [2, 3]}
                | {"elected_to_stepped_down_ms": 37_600.0, "elected_time": -7.0, "stepped_down_time": 30.6}
            ]
        },
    ),
    "high_watermark_below_start": Example(
        "Partition returns-0 cannot replicate from 12:00:00 to the end of the logs: its leader, broker 4, has high "
        "watermark 0, below its own log start 20, and answers fetches with an error (once).",
        lines=[
            (
                *(0, 4, "ERROR", "kafka.server.ReplicaManager"),
                "[ReplicaManager broker=4] Error processing fetch with max size 1048576 from replica [2] on partition "
                "returns-0: (fetchOffset=20, logStartOffset=20, maxBytes=1048576, currentLeaderEpoch=Optional[6])\n"
                "org.apache.kafka.common.errors.OffsetOutOfRangeException: Received request for offset 0 for partition "
                "returns-0, but we only have log segments in the range 20 to 20.",
            )
        ],
    ),
    "broker_halted": Example(
        "Broker 304 ended itself at 12:00:05: its log of meter.readings ends at 7002830, the leader's at 7002101, and "
        "unclean leader election is off, so that it may not truncate. Its leader does not have these 729 records; no "
        "line says whether they were committed.",
        lines=[
            (
                *(5, 304, "FATAL", "kafka.server.ReplicaFetcherThread"),
                "[ReplicaFetcherThread-0-301], Halting because log truncation is not allowed for topic meter.readings, "
                "Current leader 301's latest offset 7002101 is less than replica 304's latest offset 7002830",
            )
        ],
    ),
    "broker_died": Example(
        "Broker 2 died without shutting down at 12:00:39, its last line. It was up again at 12:00:52, after 13.0 s, "
        "800 ms of them to recover its logs.",
        lines=[*steady(2, (0, 40)), (50, 2, "INFO", BOOT, "Registered"), *steady(2, (51, 90))],
        rows={
            "files": [{"broker_id": 2, "first_time": 0, "last_time": 90, "kafka_version": None}],
            "lifecycle": [
                *(_life(50.5, 2, "starting"), _life(50.6, 2, "log_loading", "Loading logs from log dirs [/data]")),
                _life(51.4, 2, "log_loading", "Loaded 18 logs in 800ms (unclean log dirs = [/data])"),
                _life(52, 2, "started"),
            ],
        },
    ),
    "broker_stalled": Example(
        "Broker 2 froze from 12:00:39 to 12:00:53 (14.0 s): it wrote no line to any log, and then the same process "
        "wrote again.",
        lines=steady(2, (0, 40), (53, 90)),
    ),
    "broker_fenced": Example(
        "The controller fenced broker 2 at 12:00:30, though its process lived: no heartbeat had come for "
        "broker.session.timeout.ms; it was let in again after 9.6 s.",
        lines=steady(2, (0, 90)),
        rows={
            "controller_events": [
                _controller(30, 3, "broker_fenced", 2),
                _controller(39.6, 3, "broker_unfenced", 2),
            ]
        },
    ),
    "logs_end_early": Example(
        "The logs of broker 2 end at 12:00:39, 50.0 s before those of the others, and no line says that it stops: it "
        "died or hung, or later logs are not here.",
        lines=[*steady(1, (0, 90)), *steady(2, (0, 40))],
    ),
    "broker_stopped": Example(
        "Broker 2 was shut down at 12:00:05; it was up again at 12:00:15, after 10.7 s.",
        rows={
            "lifecycle": [
                *(_life(5, 2, "shutting_down"), _life(7, 2, "shut_down")),
                *(_life(12, 2, "starting"), _life(15.7, 2, "started")),
            ]
        },
    ),
    "clock_set_back": Example(
        "The clock of broker 2 was set back by 3.5 s or more shortly before 12:00:10: times of its lines from then on "
        "are not those of the lines before.",
        rows={"lifecycle": [_life(10, 2, "clock_set_back", "3.500")]},
    ),
    "clock_skewed": Example(
        "The clock of broker 2 was 36.9 s or more ahead of that of brokers 1 and 3 at 12:00:10: times of its lines do "
        "not compare with theirs.",
        rows={
            "clocks": [
                {"broker_a": 1, "broker_b": 2, "lowest_ms": 36_900.0, "lowest_time": 10}
                | {"highest_ms": None, "highest_time": None},
                {"broker_a": 2, "broker_b": 3, "lowest_ms": None, "lowest_time": None}
                | {"highest_ms": -36_500.0, "highest_time": 12},
            ]
        },
    ),
    "broker_out_of_memory": Example(
        "Broker 2 ran out of memory at 12:00:10 (Java heap space): 1 line with OutOfMemoryError. The JVM has no heap "
        "left: what the failing thread did is undone or half done. Threads that met it may be gone for good.",
        lines=[(10, 2, "ERROR", "kafka.A", "Uncaught exception\njava.lang.OutOfMemoryError: Java heap space")],
    ),
    "broker_out_of_files": Example(
        "Broker 2 had too many files open at 12:00:10: 1 line says so. It takes no connection and opens no segment "
        "meanwhile.",
        lines=[
            (
                *(10, 2, "ERROR", "kafka.network.Acceptor"),
                "Error while accepting connection\njava.io.IOException: Too many open files",
            )
        ],
    ),
    "log_directory_failed": Example(
        "Log directory /var/lib/kafka/data of broker 1001 failed at 12:00:10: IOException: No space left on "
        "device. The disk is full.",
        lines=[
            (
                *(10, 1001, "ERROR", "kafka.server.LogDirFailureChannel"),
                "Error while writing\njava.io.IOException: No space left on device",
            )
        ],
        rows={"lifecycle": [_life(10, 1001, "log_dir_failure", "Stopping serving logs in dir /var/lib/kafka/data")]},
    ),
    "indexes_rebuilt": Example(
        "Broker 301 found 1 segment with a damaged index or end at 12:00:11: the process before had not ended in "
        "order.",
        lines=[
            (
                *(11, 301, "WARN", "kafka.log.Log"),
                "Found a corrupted index file, /data/kafka/meter.readings-7/00000000000007000100.index, deleting and "
                "rebuilding index...",
            )
        ],
    ),
    "controlled_shutdown_failed": Example(
        "The controlled shutdown of broker 0 failed once from 12:00:16 to 12:00:27 (10.3 s): partitions events-9 and "
        "licences-21 had no other replica in the ISR to move to. It then stopped without the "
        "controller.",
        lines=[
            (
                *(11.65, 0, "INFO", "kafka.server.KafkaServer"),
                "[Kafka Server 0], Remaining partitions to move: licences-21,events-9",
            ),
            (
                *(16.7, 0, "WARN", "kafka.server.KafkaServer"),
                "[Kafka Server 0], Retrying controlled shutdown after the previous attempt failed...",
            ),
            (
                *(27, 0, "WARN", "kafka.server.KafkaServer"),
                "[Kafka Server 0], Proceeding to do an unclean shutdown as all the controlled shutdown attempts failed",
            ),
        ],
    ),
    "session_expired": Example(
        "The ZooKeeper session of broker 2 had expired by 12:00:02, as lines of the controller show; the broker "
        "noticed at 12:00:07; it registered again after 31 ms. Until then it may have acted as leader of partitions "
        "that others led.",
        rows={
            "controller_events": [_controller(2, 3, "broker_failed", 2)],
            "lifecycle": [_life(7, 2, "zookeeper_expired"), _life(7.031, 2, "registered")],
        },
    ),
    "controller_changed": Example(
        "The active controller changed from node 2 to node 1 at 12:00:38; no controller was active for 12.7 s.",
        rows={
            "controller_events": [
                _controller(0, 2, "controller_elected", 2),
                _controller(25.3, 2, "controller_resigned", 2),
                _controller(38, 1, "controller_elected", 1),
            ]
        },
    ),
    "quorum_lost": Example(
        "No controller was active from 12:00:11 to 12:00:42 (31.0 s): 2 of 3 voters did not answer (brokers 1 and 2). "
        "Meanwhile no leader was elected, no ISR changed and no broker was fenced.",
        lines=[*steady(1, (0, 10)), *steady(2, (0, 12)), *steady(3, (0, 60))],
        rows={
            "configs": [{"broker_id": 3, "key": "controller.quorum.voters", "value": "1@a:1,2@b:1,3@c:1"}],
            "controller_events": [
                _controller(0, 2, "controller_elected", 2),
                _controller(42, 3, "controller_elected", 3),
            ],
        },
    ),
    "controller_renounced": Example(
        "The active controller (node 3) resigned twice from 12:00:03 to 12:01:03 (60.0 s) (epochs 2641 to 2645).",
        lines=[
            (
                *(second, 3, "WARN", "org.apache.kafka.controller.QuorumController"),
                f"[Controller 3] maybeFenceReplicas: failed with unknown server exception NotLeaderException at epoch "
                f"{epoch} in 1913 us.  Renouncing leadership and reverting to the last committed offset 9986340.",
            )
            for second, epoch in ((3, 2641), (63, 2645))
        ],
    ),
    "quorum_unreachable": Example(
        "Brokers 1 and 3 could not reach node 2 of the quorum from 12:00:05 to 12:00:17 (12.0 s): 4 attempts.",
        lines=[
            (
                *(second, broker_id, "WARN", "org.apache.kafka.clients.NetworkClient"),
                f"[RaftManager id={broker_id}] Connection to node 2 (/127.0.0.1:19194) could not be established. Node "
                "may not be available.",
            )
            for second in (5, 17)
            for broker_id in (1, 3)
        ],
    ),
    "quorum_without_leader": Example(
        "Broker 1 found no leader of the metadata quorum from 12:00:05 to the end of the logs (12.0 s, up to epoch 9). "
        "Without one no partition leader, ISR or topic can change. No log of voters 0, 1 and 2 is here.",
        lines=[
            (
                *(second, 1, "INFO", "org.apache.kafka.raft.QuorumState"),
                f"[RaftManager id=1] Completed transition to Unattached(epoch={epoch}, voters=[0, 1, 2], "
                f"electionTimeoutMs=1109) from Unattached(epoch={epoch - 1}, voters=[0, 1, 2])",
            )
            for second, epoch in ((5, 7), (11, 8), (17, 9))
        ],
    ),
    "registration_refused": Example(
        "The controller refused to register broker 3 twice from 12:00:05 to 12:00:06 (1.0 s): UNSUPPORTED_VERSION (the "
        "broker's release does not support the cluster's metadata.version). It did not start after that.",
        lines=[
            (
                *(second, 3, "INFO", "kafka.server.BrokerLifecycleManager"),
                "[BrokerLifecycleManager id=3] Unable to register broker 3 because the controller returned error "
                "UNSUPPORTED_VERSION",
            )
            for second in (5, 6)
        ],
    ),
    "elections_failed": Example(
        "The controller (broker 3) could not elect a leader of partition fares-1 at 12:00:41: 1 failed attempt.",
        lines=[
            (
                *(41, 3, "ERROR", "state.change.logger"),
                "[Controller id=3 epoch=1] Controller 3 epoch 1 failed to change state for partition fares-1 from "
                "OfflinePartition to OnlinePartition",
            )
        ],
    ),
    "migration_waits": Example(
        "The migration from ZooKeeper to KRaft waited for brokers 1 and 2 to register with KRaft at 12:00:25, and it "
        "still waits at the end of the logs.",
        lines=[
            (
                *(25, 8, "INFO", "org.apache.kafka.metadata.migration.KRaftMigrationDriver"),
                "[KRaftMigrationDriver id=8] Still waiting for ZK brokers [1, 2] to register with KRaft.",
            )
        ],
    ),
    "fetcher_died": Example(
        "The replica fetcher of broker 1 from leader 2 died of KafkaException at 12:00:10 (Error processing data for "
        "partition ledger-0 offset 118). What it followed stays behind until the end of the logs.",
        lines=[
            (
                *(10, 1, "ERROR", "kafka.server.ReplicaFetcherThread"),
                f"{_FETCHER}Error due to\norg.apache.kafka.common.KafkaException: Error processing data for partition "
                "ledger-0 offset 118",
            )
        ],
    ),
    "leader_unreachable": Example(
        "Broker 1 could not fetch from leader 2 from 12:00:10 to 12:00:16 (6.0 s): 2 errors.",
        lines=[
            (
                *(second, 1, "WARN", "org.apache.kafka.clients.NetworkClient"),
                f"{_FETCHER}Connection to node 2 (/127.0.0.1:29093) could not be established. Broker may not be "
                "available.",
            )
            for second in (10, 16)
        ],
    ),
    "fetch_errors": Example(
        "Leader 2 answered fetches of broker 1 for partition orders-1 with 1 error (KafkaStorage) at 12:00:54.",
        lines=[
            (
                *(54, 1, "ERROR", "kafka.server.ReplicaFetcherThread"),
                f"{_FETCHER}Error for partition orders-1 at offset 185\norg.apache.kafka.common.errors."
                "KafkaStorageException: Disk error when trying to access log file on the disk.",
            )
        ],
    ),
    "partitions_not_fetched": Example(
        "Broker 1 gave up fetching partition ledger-0 at 12:00:10: its fetcher marked it as failed, and it is out of "
        "the"
        " ISR to the end of the logs.",
        lines=[
            (10, 1, "WARN", "kafka.server.ReplicaFetcherThread", f"{_FETCHER}Partition ledger-0 marked as failed"),
        ],
        rows={"absences": [_absence(40, None, replica_id=1, leader=2)]},
    ),
    "slow_replica": Example(
        "Broker 2 was slow to replicate from 12:00:10 to 12:00:20 (10.0 s): 200 acks=all produces of trades at brokers "
        "1 and 3 waited for it: 9.0 s in total, 110 ms at most, 100% of all slow waiting.",
        rows={"waits": [_wait(second) for second in range(10, 20)]},
    ),
    "produces_refused": Example(
        "1 produce to partition ledger-0 at broker 1, of bank was refused with MESSAGE_TOO_LARGE from 12:00:10 to "
        "12:00:12 (2.5 s): a batch is larger than max.message.bytes.",
        rows={"errors": [_error(10, 1)]},
    ),
    "produces_timed_out": Example(
        "12 produces to partition ledger-0 at broker 1, of bank timed out with REQUEST_TIMED_OUT from 12:00:10 to "
        "12:00:12 (2.5 s): replication took too long, and the records may still be written.",
        rows={"errors": [_error(7, 12)]},
    ),
    "producers_fenced": Example(
        "12 produces to partition ledger-0 at broker 1, of bank were refused with INVALID_PRODUCER_EPOCH from 12:00:10 "
        "to 12:00:12 (2.5 s): another producer took the transactional id over, or its transaction was aborted by "
        "timeout.",
        rows={"errors": [_error(47, 12)]},
    ),
    "transactions_timed_out": Example(
        "1 transaction of bank timed out and was aborted by broker 1 at 12:00:10; its producer is fenced.",
        lines=[
            (
                *(10, 1, "INFO", "kafka.coordinator.transaction.TransactionCoordinator"),
                "[TransactionCoordinator id=1] Completed rollback of ongoing transaction for transactionalId bank due "
                "to timeout",
            )
        ],
    ),
    "brokers_rejected": Example(
        "Broker 3 denied 1 request of User:CN=broker-1 at 12:00:10: requests between brokers need ClusterAction on the "
        "cluster. A broker with this principal cannot replicate from there.",
        lines=[
            (
                *(10, 3, "INFO", "kafka.authorizer.logger"),
                "Principal = User:CN=broker-1 is Denied operation = CLUSTER_ACTION from host = 10.0.0.1 on resource = "
                "Cluster:LITERAL:kafka-cluster for request = Fetch with resourceRefCount = 1 based on rule DefaultDeny",
            )
        ],
    ),
    "heartbeats_not_sent": Example(
        "Broker 4 could not send 1 heartbeat to the controller at 12:00:10. The controller fences a broker after "
        "broker.session.timeout.ms without one.",
        lines=[
            (
                *(10, 4, "INFO", "kafka.server.BrokerLifecycleManager"),
                "[BrokerLifecycleManager id=4] Unable to send a heartbeat because the RPC got timed out before it "
                "could be sent.",
            )
        ],
    ),
    "isr_join_rejected": Example(
        "Broker 3 could not join the ISR of partition bids-6 at 12:00:10: the controller rejected 1 request at broker "
        "2 with INELIGIBLE_REPLICA.",
        lines=[
            (
                *(10, 2, "INFO", "kafka.cluster.Partition"),
                "[Partition bids-6 broker=2] Failed to alter partition to PendingExpandIsr(newInSyncReplicaId=3, "
                "sentLeaderAndIsr=LeaderAndIsr(leader=2)) since the controller rejected the request with "
                "INELIGIBLE_REPLICA. Partition state has been reset to the latest committed state "
                "CommittedPartitionState(isr=Set(2, 1), leaderRecoveryState=RECOVERED).",
            )
        ],
    ),
    "topic_deletion_waits": Example(
        "The deletion of orders waits since 12:00:10: replica deletion failed.",
        lines=[
            (
                *(10, 1, "INFO", "kafka.controller.TopicDeletionManager"),
                "[Topic Deletion Manager 1] Halted deletion of topics orders due to replica deletion failed",
            )
        ],
    ),
    "controller_slow": Example(
        "Broker 3 was slow from 12:00:08 to 12:00:20 (12.0 s): 1 event took 12.0 s at most. Heartbeats, elections and "
        "ISR changes waited for that long.",
        lines=[
            (
                *(20, 3, "WARN", "org.apache.kafka.controller.EventPerformanceMonitor"),
                "[QuorumController id=3] Exceptionally slow controller event writeNoOpRecord(7) took 12000 ms.",
            )
        ],
    ),
    "connections_refused": Example(
        "1 connection of 10.0.0.7 was refused at broker 1 at 12:00:10: max.connections.per.ip. It has the configured "
        "maximum of 200.",
        lines=[
            (
                *(10, 1, "INFO", "kafka.network.DataPlaneAcceptor"),
                "Rejected connection from /10.0.0.7, address already has the configured maximum of 200 connections.",
            )
        ],
    ),
    "authentication_failed": Example(
        "1 authentication of 10.0.0.7 failed at broker 1 at 12:00:10 (SSL handshake failed).",
        lines=[
            (
                *(10, 1, "INFO", "org.apache.kafka.common.network.Selector"),
                "[SocketServer brokerId=1] Failed authentication with /10.0.0.7 (SSL handshake failed)",
            )
        ],
    ),
    "clients_throttled": Example(
        "Quotas throttled 12 requests of client bank at brokers 1 and 2 from 12:00:10 to 12:00:40 (30.0 s): 4.2 s "
        "together, the longest 900 ms.",
        rows={
            "throttled": [
                {"client_id": "bank", "first_time": 10, "last_time": 40, "requests": 12, "broker_ids": [1, 2]}
                | {"total_ms": 4200.0, "longest_ms": 900.0, "is_logged": True}
            ]
        },
    ),
    "share_locks_expired": Example(
        "12 records of share group workers were delivered again at brokers 1 and 2 from 12:00:10 to 12:00:40 (30.0 s): "
        "the locks of 1 member had run out.",
        rows={
            "locks_expired": [
                {"group_id": "workers", "first_time": 10, "last_time": 40, "records": 12, "members": 1}
                | {"broker_ids": [1, 2]}
            ]
        },
    ),
    "authorization_denied": Example(
        "User:app was denied 1 operation at broker 1 at 12:00:10, first Write on Topic:LITERAL:ledger.",
        lines=[
            (
                *(10, 1, "INFO", "kafka.authorizer.logger"),
                "Principal = User:app is Denied Operation = Write from host = 10.0.0.7 on resource = "
                "Topic:LITERAL:ledger for request = Produce with resourceRefCount = 1",
            )
        ],
    ),
    "start_failed": Example(
        "The broker shuts down, as no controller registered it within initial.broker.registration.timeout.ms. "
        "Broker 1 logged at 12:00:10: [BrokerLifecycleManager id=1] Shutting down because we were unable to "
        "register with the controller quorum.",
        lines=[
            (
                *(10, 1, "ERROR", "kafka.server.BrokerLifecycleManager"),
                "[BrokerLifecycleManager id=1] Shutting down because we were unable to register with the controller "
                "quorum.",
            )
        ],
    ),
    "metadata_lost": Example(
        "The quorum's high watermark would go back: one of the voters lost committed metadata. Broker 1 logged "
        "at 12:00:10: [RaftManager id=1] The latest computed high watermark 17 is smaller than the current "
        "value 40, which suggests that one of the voters has lost committed data. Full voter replication "
        "state: [1, 2]",
        lines=[
            (
                10,
                1,
                "ERROR",
                "org.apache.kafka.raft.LeaderState",
                "[RaftManager id=1] The latest computed high watermark 17 is smaller than the current value "
                "40, which suggests that one of the voters has lost committed data. Full voter replication "
                "state: [1, 2]",
            )
        ],
    ),
    "metadata_stale": Example(
        "Changes of topics and leaders could not be applied on this broker. Broker 1 logged at 12:00:10: "
        "IllegalStateException: no such directory",
        lines=[
            (
                10,
                1,
                "ERROR",
                "org.apache.kafka.server.fault.LoggingFaultHandler",
                "Encountered metadata publishing fault: Error applying topics delta in MetadataDelta up to "
                "812\njava.lang.IllegalStateException: no such directory",
            )
        ],
    ),
    "migration": Example(
        "The migration from ZooKeeper could not begin. Broker 1 logged at 12:00:10: TimeoutException: no answer",
        lines=[
            (
                10,
                1,
                "ERROR",
                "org.apache.kafka.metadata.migration.KRaftMigrationDriver",
                "[KRaftMigrationDriver id=3000] Could not start the "
                "migration\njava.util.concurrent.TimeoutException: no answer",
            )
        ],
    ),
    "log_cleaner_died": Example(
        "Compaction of this partition stopped for good after an unexpected error; its log grows until the "
        "broker restarts. Broker 1 logged at 12:00:10 for partition __consumer_offsets-7: "
        "IllegalArgumentException: requirement failed: 8120455 messages in segment __consumer_offsets-7/0.log "
        "but offset map can fit only 4473924. The log cleaner's map is smaller than one segment needs, so compaction "
        "of this partition cannot proceed.",
        lines=[
            (
                10,
                1,
                "WARN",
                "kafka.log.LogCleaner$CleanerThread",
                "[kafka-log-cleaner-thread-0]: Unexpected exception thrown when cleaning log "
                "Log(dir=/d/__consumer_offsets-7). Marking its partition (__consumer_offsets-7) as "
                "uncleanable\nkafka.log.LogCleaningException: 8120455 messages in a segment\nCaused by: "
                "java.lang.IllegalArgumentException: requirement failed: 8120455 messages in segment "
                "__consumer_offsets-7/0.log but offset map can fit only 4473924.",
            )
        ],
    ),
    "remote_copy_failed": Example(
        "Segments of a partition could not be copied to the remote storage; the local log cannot be shortened "
        "meanwhile and grows. Broker 1 logged at 12:00:10 for partition invoices-0: NullPointerException: "
        "producerStateSnapshotFile is null",
        lines=[
            (
                10,
                1,
                "ERROR",
                "org.apache.kafka.server.log.remote.storage.RemoteLogManager$RLMCopyTask",
                "[RemoteLogManager=2 partition=7xQ:invoices-0] Error occurred while copying log segments of "
                "partition: 7xQ:invoices-0\njava.lang.NullPointerException: producerStateSnapshotFile is null",
            )
        ],
    ),
    "remote_read_failed": Example(
        "Records could not be read from the remote tier; the consumer gets an error. Broker 1 logged at "
        "12:00:10 for partition clicks-1: RemoteResourceNotFoundException: Requested remote resource was not "
        "found",
        lines=[
            (
                10,
                1,
                "ERROR",
                "kafka.log.remote.RemoteLogReader",
                "Error occurred while reading the remote data for "
                "clicks-1\norg.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException: "
                "Requested remote resource was not found",
            )
        ],
    ),
    "coordinator_loading": Example(
        "Offsets and groups of a partition could not be loaded, so its groups cannot work on this broker. "
        "Broker 1 logged at 12:00:10 for partition __consumer_offsets-7: CorruptRecordException: Record size "
        "is less than the minimum record overhead (14)",
        lines=[
            (
                10,
                1,
                "ERROR",
                "kafka.coordinator.group.GroupMetadataManager",
                "[GroupMetadataManager brokerId=1] Error loading offsets from "
                "__consumer_offsets-7\norg.apache.kafka.common.errors.CorruptRecordException: Record size is "
                "less than the minimum record overhead (14)",
            )
        ],
    ),
    "group_rebalances": Example(
        "Group billing rebalanced 4 times from 12:00:10 to 12:01:40 (90.0 s): 3 times because a member sent no "
        "heartbeat in time and once because the coordinator could not store the assignment.",
        lines=[
            (
                *(10 + 30 * number, 1, "INFO", "kafka.coordinator.group.GroupCoordinator"),
                f"[GroupCoordinator 1]: Preparing to rebalance group billing in state PreparingRebalance with old "
                f"generation {number} (__consumer_offsets-7) (reason: {reason})",
            )
            for number, reason in enumerate(
                (
                    *("removing member a-1 on heartbeat expiration" for _ in range(3)),
                    "error when storing group assignment during SyncGroup (member: a-1)",
                )
            )
        ],
    ),
    "coordinator_slow": Example(
        "Broker 2 loaded coordinators from 12:00:10 to 12:01:20 (70.0 s): __consumer_offsets-17 for 70.0 s. Groups and "
        "transactions of these partitions had no coordinator meanwhile: clients got COORDINATOR_LOAD_IN_PROGRESS.",
        lines=[
            (
                *(80, 2, "INFO", "kafka.coordinator.group.GroupMetadataManager"),
                "[GroupMetadataManager brokerId=2] Finished loading offsets and group metadata from "
                "__consumer_offsets-17 in 70000 milliseconds, of which 2 milliseconds was spent in the scheduler.",
            )
        ],
    ),
    "topics_deleted": Example(
        "The migration from ZooKeeper to KRaft deleted 2 topics at 12:00:10: its full sync removes from ZooKeeper what "
        "KRaft does not know. No line shows a request to delete topics. Broker 1 removed 2 replicas of bets and ledger "
        "from 12:00:11 to 12:00:12 (1.0 s); the files remain until file.delete.delay.ms has passed. No line before it "
        "shows that this migration copied metadata from ZooKeeper: a znode /migration of an earlier migration makes it "
        "skip the copy.",
        lines=[
            (
                *(10, 9, "INFO", "org.apache.kafka.metadata.migration.KRaftMigrationDriver"),
                "[KRaftMigrationDriver id=9] Made the following ZK writes when reconciling with KRaft state: "
                "{DeleteTopic=2}",
            ),
            *(
                (
                    *(second, 1, "INFO", "kafka.log.LogManager"),
                    f"Log for partition {name} is renamed to /d/{name}.0abc-delete and is scheduled for deletion",
                )
                for second, name in ((11, "ledger-0"), (12, "bets-3"))
            ),
        ],
    ),
    "share_state_failed": Example(
        "State of a share group could not be written; its records may be delivered again. Broker 1 logged at "
        "12:00:10 for partition jobs-0: Failed to write the share group state for share partition: g-7xQ:jobs-0",
        lines=[
            (
                10,
                1,
                "ERROR",
                "kafka.server.share.SharePartition",
                "Failed to write the share group state for share partition: g-7xQ:jobs-0",
            )
        ],
    ),
    "config_rejected": Example(
        "Dynamic settings of this broker could not be applied. Broker 1 logged at 12:00:10: ConfigException: "
        "Invalid value -7 for configuration log.retention.ms",
        lines=[
            (
                10,
                1,
                "ERROR",
                "kafka.server.DynamicBrokerConfig",
                "Per-broker configs of 1 could not be applied: "
                "[log.retention.ms]\norg.apache.kafka.common.config.ConfigException: Invalid value -7 for "
                "configuration log.retention.ms",
            )
        ],
    ),
    "clients_disconnected": Example(
        "A client sent what is no valid request, and its connection is closed. Broker 1 logged at 12:00:10: "
        "InvalidRequestException: Error getting request for apiKey: 3",
        lines=[
            (
                10,
                1,
                "ERROR",
                "kafka.network.SocketServer$Processor",
                "Exception while processing request from "
                "10.0.0.7:9092-10.0.0.9:40112-3\norg.apache.kafka.common.errors.InvalidRequestException: Error "
                "getting request for apiKey: 3",
            )
        ],
    ),
    "also_logged": Example(
        "Broker 1 logged at WARN twice from 12:00:10 to 12:00:12 (2.0 s): The quota of ledger-0 is odd",
        lines=[(10 + 2 * number, 1, "WARN", "kafka.A", f"The quota of ledger-{number} is odd") for number in (0, 1)],
    ),
}
