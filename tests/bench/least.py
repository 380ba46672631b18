"""The least excerpt of kinds of incidents: whole logs of a few lines, as brokers write them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.bench.incident_examples import BOOT, EXAMPLES, START_US, Example

_STATES = "state.change.logger"


def _produce(second: float, error: int, throttled_ms: int = 0) -> tuple[float, int, str, str, str]:
    """Return a line of the request log about a produce."""
    answer = {"index": 2, "errorCode": error, "baseOffset": -1, "logAppendTimeMs": -1, "logStartOffset": 0}
    logged = {
        "isForwarded": False,
        "requestHeader": {"requestApiKey": 0, "requestApiVersion": 7, "correlationId": 133, "clientId": "p6"}
        | {"requestApiKeyName": "PRODUCE"},
        "request": {"transactionalId": None, "acks": -1, "timeoutMs": 1500}
        | {"topicData": [{"name": "orders", "partitionData": [{"index": 2, "recordsSizeInBytes": 196}]}]},
        "response": {"responses": [{"name": "orders", "partitionResponses": [answer]}], "throttleTimeMs": throttled_ms},
        "connection": "10.0.0.1:9092-10.0.0.9:47498-7",
        "totalTimeMs": 3.708 + throttled_ms,
        "requestQueueTimeMs": 0.051,
        "localTimeMs": 1.969,
        "remoteTimeMs": 0.0,
        "throttleTimeMs": throttled_ms,
        "responseQueueTimeMs": 1.644,
        "sendTimeMs": 0.043,
        "securityProtocol": "PLAINTEXT",
        "principal": "User:ANONYMOUS",
        "listener": "PLAINTEXT",
    }
    text = f"Completed request:{json.dumps(logged, separators=(',', ':'))}"
    return second, 1, "DEBUG", "kafka.request.logger", text


#: Second, broker, level, logger and message of each line.
_LINES: Mapping[str, Example] = {
    "isr_shrunk": Example(
        "",
        [
            (
                *(10, 1, "INFO", "kafka.cluster.Partition"),
                "[Partition orders-3 broker=1] Shrinking ISR from 1,3,2 to 1,3. Leader: (highWatermark: 857, "
                "endOffset: 858). Out of sync replicas: (brokerId: 2, endOffset: 857).",
            ),
            (
                *(10.1, 1, "INFO", "kafka.cluster.Partition"),
                "[Partition orders-3 broker=1] ISR updated to 1,3  and version updated to 7",
            ),
        ],
    ),
    "partitions_under_min_isr": Example(
        "",
        [
            (
                *(10, 1, "ERROR", "kafka.server.ReplicaManager"),
                "[ReplicaManager broker=1] Error processing append operation on partition orders-3\n"
                "org.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR Set(1) is "
                "insufficient to satisfy the min.isr requirement of 2 for partition orders-3",
            )
        ],
    ),
    "broker_fenced": Example(
        "",
        [
            (
                *(10, 1, "INFO", "org.apache.kafka.controller.ReplicationControlManager"),
                "[QuorumController id=1] Fencing broker 2 because its session has timed out.",
            ),
            (
                *(12, 2, "INFO", "kafka.log.UnifiedLog"),
                "[UnifiedLog partition=orders-3, dir=/data] Rolled new log segment at offset 858 in 2 ms.",
            ),
        ],
    ),
    "logs_end_early": Example(
        "",
        [
            (
                *(10, 1, "INFO", "org.apache.kafka.controller.ReplicationControlManager"),
                "[QuorumController id=1] Fencing broker 3 because its session has timed out.",
            )
        ],
    ),
    "quorum_lost": Example(
        "",
        [
            (
                *(10, 1, "INFO", "org.apache.kafka.controller.QuorumController"),
                "[QuorumController id=1] Becoming the active controller at epoch 7, next write offset 100.",
            ),
            (
                *(20, 1, "INFO", "org.apache.kafka.raft.LeaderState"),
                "[RaftManager id=1] Did not receive fetch request from the majority of the voters within 3000ms. "
                "Current fetched voters are [].",
            ),
            *(
                (
                    *(21, broker_id, "INFO", "org.apache.kafka.controller.QuorumController"),
                    f"[QuorumController id={broker_id}] In the new epoch 8, the leader is (none).",
                )
                for broker_id in (1, 2)
            ),
            (
                *(40, 2, "INFO", "org.apache.kafka.controller.QuorumController"),
                "[QuorumController id=2] Becoming the active controller at epoch 9, next write offset 120.",
            ),
        ],
    ),
    "broker_stopped": Example("", [(10, 1, "INFO", "kafka.server.KafkaServer", "[KafkaServer id=1] shutting down")]),
    "session_expired": Example(
        "", [(10, 1, "INFO", "kafka.zookeeper.ZooKeeperClient", "[ZooKeeperClient Kafka server] Session expired.")]
    ),
    "controller_changed": Example(
        "",
        [
            (
                *(second, broker_id, "INFO", "kafka.controller.KafkaController"),
                f"[Controller id={broker_id}] {broker_id} successfully elected as the controller. Epoch incremented to "
                f"{epoch} and epoch zk version is now {epoch}",
            )
            for second, broker_id, epoch in ((10, 1, 2), (50, 2, 3))
        ],
    ),
    "log_directory_failed": Example(
        "",
        [
            (
                *(10, 1, "WARN", "kafka.server.ReplicaManager"),
                "[ReplicaManager broker=1] Stopping serving replicas in dir /var/lib/kafka/broker-2/d2",
            )
        ],
    ),
    "partitions_without_leader": Example(
        "",
        [
            (
                *(10, 1, "INFO", _STATES),
                "[Controller id=1 epoch=2] Partition orders-0 state changed to (Leader:-1,ISR:1,3,LeaderEpoch:1,"
                "ZkVersion:3,ControllerEpoch:2) after removing replica 2 from the ISR as part of transition to "
                "OfflineReplica",
            )
        ],
    ),
    "unclean_election": Example(
        "",
        [
            (
                *(10, 4, "INFO", "org.apache.kafka.controller.ReplicationControlManager"),
                "[QuorumController id=4] UNCLEAN partition change for events-0 with topic ID ixQ2tDfnSTa2vUkS4MkyzQ: "
                "isr: [2] -> [1], leader: -1 -> 1, leaderRecoveryState: RECOVERED -> RECOVERING, leaderEpoch: 10 -> "
                "11, partitionEpoch: 12 -> 13",
            )
        ],
    ),
    "zombie_leader": Example(
        "",
        [
            (
                *(10, 1, "INFO", "kafka.cluster.Partition"),
                "[Partition orders-3 broker=1] Cached zkVersion [3] not equal to that in zookeeper, skip updating ISR",
            )
        ],
    ),
    "reassignment_ended": Example(
        "",
        [
            (
                *(10, 4, "INFO", "org.apache.kafka.controller.ReplicationControlManager"),
                "[QuorumController id=4] AlterPartition request from node 1 for orders-1 completed the ongoing "
                "partition reassignment. isr: [1, 2, 5] -> [1, 2, 4, 5], replicaSet: [3, 4, 5, 1, 2] -> "
                "[3, 4, 5, 1, 2], partitionEpoch: 3 -> 4, leaderEpoch: 1 -> 1",
            )
        ],
    ),
    "broker_died": Example(
        "",
        [
            (10, 2, "INFO", "kafka.log.LogManager", "Starting log cleanup with a period of 300000 ms."),
            (50, 2, "INFO", BOOT, "Registered kafka:type=kafka.Log4jController MBean"),
            (51, 2, "INFO", "kafka.server.KafkaServer", "starting"),
        ],
    ),
    "produces_refused": Example("", [_produce(10, 10)]),
    "produces_timed_out": Example("", [_produce(10, 7)]),
    "producers_fenced": Example("", [_produce(10, 47)]),
    "clients_throttled": Example("", [_produce(10, 0, throttled_ms=250)]),
}
#: Kinds that no excerpt shows: they need a log that is whole.
_OF_WHOLE_LOGS = ("logs_end_early",)
#: Lines by kind. An example of lines alone is the least.
LEAST: Mapping[str, Example] = {
    name: example
    for name, example in EXAMPLES.items()
    if example.lines and not example.rows and name not in _OF_WHOLE_LOGS
} | _LINES


def write_least(name: str, folder: Path) -> None:
    """Write the least excerpt of a kind, a log for each broker."""
    lines: dict[int, list[str]] = defaultdict(list)
    for second, broker_id, level, logger, message in sorted(LEAST[name].lines, key=lambda line: line[0]):
        time = datetime.fromtimestamp(START_US / 1e6, UTC) + timedelta(seconds=second)
        text, _, trace = message.partition("\n")
        shown = f"[{time:%Y-%m-%d %H:%M:%S},{time.microsecond // 1000:03}] {level} {text} ({logger})"
        lines[broker_id].append("\n".join((shown, trace)).rstrip("\n"))
    for broker_id, of_broker in lines.items():
        log = folder / f"broker-{broker_id}" / "server.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("\n".join(of_broker) + "\n", encoding="utf-8")
