"""Kinds from lines that real brokers wrote; and their silence where something like it is legal."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from highwater.pipelines.incidents import questions
from highwater.pipelines.incidents.facts import Facts
from highwater.pipelines.incidents.incident import CRITICAL, INFO, MAJOR, MINOR, LoggedIncident, Remedy
from highwater.pipelines.incidents.kinds import BY_NAME, KINDS
from highwater.pipelines.incidents.story import can_cause, incidents_of
from highwater.pipelines.messages.atlas import atlas
from highwater.pipelines.messages.wording import parse_wording
from tests.unit.incidents.test_questions import ask, line

S = 1_000_000
_FETCHER = "[ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0]"
_HALT = (
    f"{_FETCHER} Exiting because log truncation is not allowed for partition tickets-0, current leader's latest offset "
    "640 is less than replica's latest offset 902"
)
_RENOUNCED = (
    "[Controller 3] maybeFenceReplicas: failed with unknown server exception NotLeaderException at epoch {} in 1913 "
    "us.  Renouncing leadership and reverting to the last committed offset 9986340."
)
_STUCK = (
    "[ReplicaManager broker=4] Error processing fetch with max size 1048576 from replica [2] on partition returns-0: "
    "(fetchOffset=20, logStartOffset=20, maxBytes=1048576, currentLeaderEpoch=Optional[6])\n"
    "org.apache.kafka.common.errors.OffsetOutOfRangeException: Received request for offset 0 for partition returns-0, "
    "but we only have log segments in the range 20 to 20."
)
_EXCEPTION = "Failed to flush\njava.io.IOException: {}\n\tat java.base/java.lang.Thread.run(Thread.java:829)"

#: Kind, logger, level, messages a second apart, and what the sentence has in it. The lines are those of real brokers.
TOLD = [
    (
        "broker_halted",
        "kafka.server.ReplicaFetcherThread",
        "FATAL",
        [_HALT],
        "Its leader does not have these 262 records",
    ),
    (
        "broker_halted",
        "kafka.log.LogManager",
        "ERROR",
        ["Shutdown broker because all log dirs in /var/lib/kafka/data have failed"],
        "Broker 1 ended itself at 12:00:00: all its log directories have failed (/var/lib/kafka/data).",
    ),
    (
        "fetcher_died",
        "kafka.server.ReplicaFetcherThread",
        "ERROR",
        ["[ReplicaFetcherThread-0-7], Error due to \njava.lang.IllegalStateException: Offset mismatch: 12"],
        "from leader 7 died of IllegalStateException",
    ),
    (
        "controller_renounced",
        "org.apache.kafka.controller.QuorumController",
        "WARN",
        [_RENOUNCED.format(epoch) for epoch in (2641, 2645, 2649)],
        "resigned 3 times",
    ),
    (
        "migration_waits",
        "org.apache.kafka.metadata.migration.KRaftMigrationDriver",
        "INFO",
        ["[KRaftMigrationDriver id=8] Still waiting for ZK brokers [1, 2] to register with KRaft."],
        "waited for brokers 1 and 2 to register with KRaft at 12:00:00, and it still waits at the end of the logs",
    ),
    ("high_watermark_below_start", "kafka.server.ReplicaManager", "ERROR", [_STUCK], "below its own log start 20"),
    (
        "controlled_shutdown_failed",
        "kafka.server.KafkaServer",
        "WARN",
        [
            "[KafkaServer id=1] Retrying controlled shutdown after the previous attempt failed...",
            "[KafkaServer id=1] Proceeding to do an unclean shutdown as all the controlled shutdown attempts failed",
        ],
        "It then stopped without the controller",
    ),
    (
        "broker_out_of_memory",
        "kafka.network.Processor",
        "ERROR",
        ["Uncaught exception\njava.lang.OutOfMemoryError: Java heap space\n\tat x"],
        "ran out of memory at 12:00:00 (Java heap space)",
    ),
    (
        "broker_out_of_files",
        "kafka.network.Acceptor",
        "ERROR",
        ["Error while accepting connection\njava.io.IOException: Too many open files\n\tat x"],
        "had too many files open",
    ),
    (
        "quorum_without_leader",
        "org.apache.kafka.raft.QuorumState",
        "INFO",
        [
            f"[RaftManager id=1] Completed transition to Unattached(epoch={epoch}, voters=[0, 1, 2], "
            f"electionTimeoutMs=900) from Unattached(epoch={epoch - 1}, voters=[0, 1, 2], electionTimeoutMs=800)"
            for epoch in range(4538, 4560)
        ],
        "found no leader of the metadata quorum from 12:00:00 to the end of the logs (21.0 s, up to epoch 4559)",
    ),
    (
        "registration_refused",
        "kafka.server.BrokerLifecycleManager",
        "INFO",
        [
            "[BrokerLifecycleManager id=1] Unable to register broker 1 because the controller returned error "
            "UNSUPPORTED_VERSION"
        ]
        * 3,
        "refused to register broker 1 3 times from 12:00:00 to 12:00:02 (2.0 s): UNSUPPORTED_VERSION",
    ),
    (
        "coordinator_slow",
        "kafka.coordinator.group.GroupMetadataManager",
        "INFO",
        [
            "[GroupMetadataManager brokerId=1] Finished loading offsets and group metadata from __consumer_offsets-17 "
            "in 585298 milliseconds, of which 2 milliseconds was spent in the scheduler."
        ],
        "__consumer_offsets-17 for 9 min 45 s",
    ),
    (
        "coordinator_slow",
        "org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime",
        "INFO",
        [
            "[GroupCoordinator id=1] Finished loading of metadata from __consumer_offsets-3 with epoch 5 in 61000ms "
            "where 2ms was spent in the scheduler. Loaded 100 records which total to 8000 bytes."
        ],
        "__consumer_offsets-3 for 61.0 s",
    ),
    (
        "log_cleaner_died",
        "kafka.log.LogCleaner",
        "ERROR",
        [
            "[kafka-log-cleaner-thread-0]: Error due to\njava.lang.IllegalArgumentException: requirement failed: 812 "
            "messages in segment a-1/0.log but offset map can fit only 447. You can increase "
            "log.cleaner.dedupe.buffer.size"
        ],
        "The log cleaner died",
    ),
    (
        "leader_unreachable",
        "kafka.server.ReplicaFetcherThread",
        "WARN",
        [
            f"{_FETCHER} Error in response for fetch request (type=FetchRequest)\n"
            "org.apache.kafka.common.errors.SslAuthenticationException: SSL handshake failed\n"
            "Caused by: java.security.cert.CertificateExpiredException: NotAfter: Thu Oct 15 09:53:30 GMT 2026"
        ]
        * 3,
        "(CertificateExpiredException: NotAfter: Thu Oct 15 09:53:30 GMT 2026). A certificate has expired.",
    ),
    (
        "clients_disconnected",
        "org.apache.kafka.common.network.Selector",
        "WARN",
        [
            "Unexpected error from /10.1.1.1; closing connection\norg.apache.kafka.common.network."
            "InvalidReceiveException: Invalid receive (size = 1195725856 larger than 104857600)"
        ],
        "An HTTP client",
    ),
    (
        "broker_halted",
        "kafka.Kafka$",
        "ERROR",
        [
            "Exiting Kafka due to fatal exception\nkafka.common.InconsistentNodeIdException: Configured node.id `1` "
            "doesn't match stored node.id `3' in meta.properties."
        ],
        "did not start at 12:00:00: InconsistentNodeIdException",
    ),
    (
        "broker_halted",
        "kafka.server.BrokerServer",
        "ERROR",
        [
            "[BrokerServer id=1] Fatal error during broker startup. Prepare to shutdown\njava.lang.RuntimeException: "
            "Received a fatal error while waiting for the controller\n"
            "Caused by: java.util.concurrent.CancellationException\n\tat x.y(Z.java:1)"
        ],
        "RuntimeException: Received a fatal error while waiting for the controller",
    ),
]


def facts_of(logger: str, level: str, messages: Iterable[str], **more: Any) -> Facts:
    """What the lake's questions give of lines of one logger of broker 1, a second apart."""
    lines = [line(number, text, level=level, logger=logger) for number, text in enumerate(messages)]
    signatures = [signature for kind in KINDS for signature in kind.signatures]
    return Facts(remarks=ask(questions.remarks(signatures), lines), loud=ask(questions.loud(signatures), lines), **more)


@pytest.mark.parametrize(("kind", "logger", "level", "messages", "said"), TOLD)
def test_lines_are_told(kind: str, logger: str, level: str, messages: list[str], said: str) -> None:
    incidents = incidents_of(facts_of(logger, level, messages), KINDS)
    assert [incident.kind for incident in incidents] == [kind]
    assert said in incidents[0].sentence


def test_a_full_disk_is_why_a_directory_failed() -> None:
    failed = {"cluster_id": "c", "broker_id": 1, "event": "log_dir_failure", "kafka_version": None, "file_id": "f"}
    lifecycle = [
        failed | {"time": 1_795_176_000 * S, "byte_offset": 0, "detail": "Stopping serving replicas in dir /d2"}
    ]
    facts = facts_of("kafka.log.Log", "ERROR", [_EXCEPTION.format("No space left on device")], lifecycle=lifecycle)
    (incident,) = BY_NAME["log_directory_failed"].detect(facts)
    assert (
        incident.sentence == "Log directory /d2 of broker 1 failed at 12:00:00: IOException: No space left on device. "
        "The disk is full."
    )


def test_memory_maps_are_why_a_directory_failed() -> None:
    """The broker has memory and a disk: it needs neither more heap nor another disk."""
    failed = event(0, "log_dir_failure", 1, detail="Stopping serving replicas in dir /d2")
    failed["time"] = 1_795_176_000 * S
    message = _EXCEPTION.format("Map failed") + "\nCaused by: java.lang.OutOfMemoryError: Map failed"
    facts = facts_of("kafka.log.Log", "ERROR", [message], lifecycle=[failed])
    (incident,) = BY_NAME["log_directory_failed"].detect(facts)
    assert "OutOfMemoryError: Map failed. The operating system refused another memory map" in incident.sentence
    assert isinstance(incident.advice, Remedy)
    assert "vm.max_map_count" in incident.advice.text
    assert not BY_NAME["broker_out_of_memory"].detect(facts)


@pytest.mark.parametrize("broker_id", [1, None])
def test_a_broker_that_fails_at_each_start_is_one_incident(broker_id: int | None) -> None:
    reason = "\nkafka.common.InconsistentClusterIdException: The Cluster ID b doesn't match stored clusterId Some(a)"
    texts = (
        "Fatal error during KafkaServer startup. Prepare to shutdown",
        "Exiting Kafka due to fatal exception during startup.",
    )
    lines = [
        line(60 * number + second, text + reason, broker_id, "ERROR", logger)
        for number in range(4)
        for second, (text, logger) in enumerate(zip(texts, ("kafka.server.KafkaServer", "kafka.Kafka$"), strict=True))
    ]
    signatures = [signature for kind in KINDS for signature in kind.signatures]
    (incident,) = BY_NAME["broker_halted"].detect(Facts(remarks=ask(questions.remarks(signatures), lines)))
    assert (
        "did not start, 4 times from 12:00:00 to 12:03:01 (3 min 1 s): InconsistentClusterIdException"
        in incident.sentence
    )


def test_the_texts_of_all_ends_are_texts_of_the_atlas() -> None:
    """Each text at FATAL with which a broker ends is a `broker_halted`."""
    texts = [
        (f"kafka.{min(message.classes)}", "7".join(wording.literals))
        for message in atlas().messages.values()
        if "FATAL" in message.levels
        and not {"begins broker_halted", "begins start_failed"}.isdisjoint(message.part.split(", "))
        for wording in (parse_wording(text) for _, text in message.texts)
        if wording.weight
    ]
    lines = [line(0, text, broker_id, "FATAL", logger) for broker_id, (logger, text) in enumerate(texts)]
    signatures = [signature for kind in KINDS for signature in kind.signatures]
    incidents = BY_NAME["broker_halted"].detect(Facts(remarks=ask(questions.remarks(signatures), lines)))
    found = {incident.broker_ids for incident in incidents}
    assert [text for broker_id, (_, text) in enumerate(texts) if (broker_id,) not in found] == []


_MOVED = "Log for partition {0} is renamed to /d/{0}.0abc-delete and is scheduled for deletion"


@pytest.mark.parametrize(
    ("names", "deleted", "said"),
    [
        (("a-0", "b-0"), (), None),
        (("a-0", "a-1", "a-2", "a-3"), (), None),
        (("a-0", "b-0", "c-0"), (), "no line of a controller shows which"),
        (("a-0", "b-0", "c-0"), ("a", "b"), "the controller deleted a and b"),
        (("a-0", "b-0", "c-0"), ("a", "b", "c"), "the controller deleted these topics"),
    ],
)
def test_topics_are_deleted_in_bulk(names: tuple[str, ...], deleted: tuple[str, ...], said: str | None) -> None:
    events = [event(1_795_176_000, "topic_deleted", 9, topic=topic) for topic in deleted]
    facts = facts_of("kafka.log.LogManager", "INFO", map(_MOVED.format, names), controller_events=events)
    sentences = [incident.sentence for incident in BY_NAME["topics_deleted"].detect(facts)]
    assert [said in sentence for sentence in sentences if said is not None] == ([] if said is None else [True])
    assert len(sentences) == (said is not None)


@pytest.mark.parametrize(
    ("reason", "count", "severity"),
    [
        ("removing member a on heartbeat expiration", 2, None),
        ("removing member a on heartbeat expiration", 3, MAJOR),
        ("Removing member a on LeaveGroup; client reason: consumer poll timeout has expired.", 3, MAJOR),
        ("Adding new member a with group instance id None; client reason: rebalance enabled", 9, None),
        ("Adding new member a with group instance id None; client reason: rebalance enabled", 10, MINOR),
    ],
)
def test_a_group_rebalances_again_and_again(reason: str, count: int, severity: str | None) -> None:
    text = "[GroupCoordinator id=1] Preparing to rebalance group g in state Stable with old generation {} (reason: {})"
    texts = [text.format(number, reason) for number in range(count)]
    facts = facts_of("org.apache.kafka.coordinator.group.GroupMetadataManager", "INFO", texts)
    incidents = BY_NAME["group_rebalances"].detect(facts)
    assert [incident.severity for incident in incidents] == ([] if severity is None else [severity])


_REFUSED = (
    "[ReplicaManager broker=1] Error processing append operation on partition {0}\n"
    "org.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR {1} is insufficient to "
    "satisfy the min.isr requirement of 2 for partition {0}"
)


@pytest.mark.parametrize("isr", ["Set(1)", ": 1"])
@pytest.mark.parametrize("is_known", [False, True])
def test_one_refused_append_shows_a_partition_under_its_minimum(isr: str, is_known: bool) -> None:
    """A window that `gold.availability` has is not reported twice."""
    window = {"cluster_id": "c", "topic": "t", "partition": 0, "state": "under_min_isr", "min_insync_replicas": 2}
    times = {"started_time": 1_795_176_000 * S, "ended_time": 1_795_176_001 * S, "produces_refused": 1}
    windows = [window | times] if is_known else []
    facts = facts_of("kafka.server.ReplicaManager", "ERROR", [_REFUSED.format("t-0", isr)], availability=windows)
    (incident,) = BY_NAME["partitions_under_min_isr"].detect(facts)
    assert incident.partitions == {"t-0"}
    assert "1 acks=all produce was refused." in incident.sentence
    assert ("at least" in incident.sentence) is not is_known


def test_a_leadership_that_moves_again_and_again_is_one_incident() -> None:
    """Each change has the same reason: the leader gets no fetches from the majority."""
    elected = [
        event(1_795_176_000 + 200 * number, "controller_elected", node, subject_broker_id=node, controller_epoch=number)
        for number, node in enumerate((3, 4, 5, 3))
    ]
    lost = "[RaftManager id=3] Did not receive fetch request from the majority of the voters within 3000ms. Current x"
    lines = [line(200 * number - 2, lost, 3, "INFO", "org.apache.kafka.raft.LeaderState") for number in (1, 2, 3)]
    signatures = [signature for kind in KINDS for signature in kind.signatures]
    facts = Facts(remarks=ask(questions.remarks(signatures), lines), controller_events=elected)
    (incident,) = BY_NAME["controller_changed"].detect(facts)
    assert "changed 3 times" in incident.sentence
    assert "(node 3, 4, 5, 3 in turn)" in incident.sentence
    assert "Each time the leader had received no fetch request" in incident.sentence
    assert len(BY_NAME["controller_changed"].detect(replace(facts, controller_events=elected[:3]))) == 2


@pytest.mark.parametrize(("partition", "said"), [("t-0", "5242890 bytes"), ("t-1", "RecordTooLargeException. A batch")])
def test_a_follower_gives_a_partition_up_for_a_reason(partition: str, said: str) -> None:
    """The exception decides the advice; the message of another partition's exception is not quoted."""
    fetcher = f"{_FETCHER} "
    texts = [
        f"{fetcher}Unexpected error occurred while processing data for partition t-0 at offset 7\n"
        "org.apache.kafka.common.errors.RecordTooLargeException: The record batch size in the append to t-0 is 5242890 "
        "bytes which exceeds the maximum configured value of 3145728.",
        f"{fetcher}Partition {partition} marked as failed",
    ]
    absence = {"cluster_id": "c", "topic": "t", "partition": int(partition[-1]), "leader": 1, "replica_id": 1}
    absence |= {"left_time": 1_795_176_020 * S, "outside_time": 1_795_176_020 * S, "back_time": None, "isr": [1]}
    facts = facts_of("kafka.server.ReplicaFetcherThread", "ERROR", texts, absences=[absence])
    (incident,) = BY_NAME["partitions_not_fetched"].detect(facts)
    assert said in incident.sentence
    assert "Set message.max.bytes" in str(incident.advice)


def test_a_client_does_not_write_an_incident() -> None:
    """A group's id may have anything in it, after a line end too: its coordinator's lines are of another logger."""
    forged = f"[GroupCoordinator 1]: Member x has left group a\n{_HALT}\njava.lang.OutOfMemoryError: Java heap space"
    assert not incidents_of(facts_of("kafka.coordinator.group.GroupCoordinator", "INFO", [forged]), KINDS)


def silence(start_s: float, end_s: float, broker_id: int = 2, **changes: Any) -> dict[str, Any]:
    row = {"cluster_id": "c", "broker_id": broker_id, "start_time": int(start_s * S), "end_time": int(end_s * S)}
    rhythm = {"share_before": 1.0, "written_after_us": 10 * S, "steady_us": 60 * S, "steady_silences": 1}
    return row | rhythm | {"moved_before": False, "is_boot": False} | changes


def event(time_s: float, name: str, broker_id: int = 2, **changes: Any) -> dict[str, Any]:
    row = {"cluster_id": "c", "broker_id": broker_id, "time": int(time_s * S), "event": name, "kafka_version": None}
    return row | {"mode": None, "detail": None, "file_id": "f", "byte_offset": int(time_s)} | changes


def detected(kind: str, **rows: Any) -> list[LoggedIncident]:
    return [*BY_NAME[kind].detect(Facts(**{"ends": {"c": 1000 * S}} | rows))]


FILES = [{"cluster_id": "c", "broker_id": 2, "kind": "server", "path": "p", "kafka_version": None, "first_time": 0}]


def test_a_broker_that_stops_writing_and_goes_on_stood_still() -> None:
    (stalled,) = detected("broker_stalled", silences=[silence(100, 114)])
    assert (stalled.severity, stalled.start_us, stalled.end_us) == (MAJOR, 100 * S, 114 * S)
    assert stalled.sentence.startswith("Broker 2 froze from 00:01:40 to 00:01:54 (14.0 s)")


@pytest.mark.parametrize(
    "rows",
    [
        {"silences": [silence(100, 114, share_before=0.5)]},
        {"silences": [silence(100, 114, written_after_us=S)]},
        {"silences": [silence(100, 114, moved_before=True)]},
        {"silences": [silence(100, 114, steady_us=20 * S, steady_silences=3)]},
        {"silences": [silence(100, 114, is_boot=True)], "files": FILES},
        {"silences": [silence(100, 114)], "lifecycle": [event(99, "shutting_down")]},
        {"silences": [silence(100, 114)], "lifecycle": [event(113, "starting")], "files": FILES},
    ],
    ids=[
        "it writes little",
        "it has nothing more to do",
        "others lead its partitions",
        "it writes in bursts",
        "another process begins",
        "it shuts down",
        "it starts",
    ],
)
def test_other_silences_are_none(rows: dict[str, Any]) -> None:
    assert not detected("broker_stalled", **rows)


def test_a_process_that_ends_without_a_word_died() -> None:
    lifecycle = [event(20, "started"), event(118, "starting"), event(120, "started")]
    (died,) = detected("broker_died", silences=[silence(100, 114, is_boot=True)], lifecycle=lifecycle, files=FILES)
    assert (died.start_us, died.end_us) == (100 * S, 120 * S)
    assert "died without shutting down at 00:01:40" in died.sentence
    clean = event(119, "log_loading", detail="Skipping recovery of 9 logs from /d since clean shutdown file was found")
    shut = {"silences": [silence(100, 114, is_boot=True)], "lifecycle": [*lifecycle, clean], "files": FILES}
    assert not detected("broker_died", **shut)
    orderly = [event(20, "started"), event(99, "shutting_down"), event(100, "shut_down"), *lifecycle[1:]]
    assert not detected("broker_died", silences=[silence(100, 114, is_boot=True)], lifecycle=orderly, files=FILES)


def test_a_first_start_is_no_death() -> None:
    assert not detected(
        "broker_died",
        silences=[silence(100, 114, is_boot=True)],
        lifecycle=[event(118, "starting")],
        files=[FILES[0] | {"first_time": 100 * S}],
    )


def outage(
    start_s: float, end_s: float | None, state: str = "offline", partition: int = 0, **changes: Any
) -> dict[str, Any]:
    row = {
        "cluster_id": "c",
        "topic": "orders",
        "partition": partition,
        "state": state,
        "started_time": int(start_s * S),
    }
    row |= {"ended_time": None if end_s is None else int(end_s * S), "min_insync_replicas": 2, "produces_refused": 7}
    return row | changes


def test_outages_that_begin_together_are_one() -> None:
    rows = [outage(100, 130, partition=number) for number in range(16)]
    (without,) = detected("partitions_without_leader", availability=rows)
    assert without.severity == CRITICAL
    assert without.sentence == "16 partitions of orders had no leader from 00:01:40 to 00:02:10 (30.0 s)."
    (under,) = detected("partitions_under_min_isr", availability=[outage(100, 130, "under_min_isr")])
    assert under.sentence == (
        "Partition orders-0 had fewer in-sync replicas than min.insync.replicas (2) from 00:01:40 to 00:02:10 (30.0 "
        "s). 7 acks=all produces were refused."
    )


def test_the_end_of_a_cluster_is_no_outage() -> None:
    ends = [event(100 + broker, "shutting_down", broker) for broker in (1, 2)]
    ends += [event(103 + broker, "shut_down", broker) for broker in (1, 2)]
    last = [{"cluster_id": "c", "broker_id": broker, "last_time": 110 * S, "seconds_before": 10} for broker in (1, 2)]
    rows = {"lifecycle": sorted(ends, key=lambda row: row["time"]), "last_lines": last, "files": FILES}
    assert not detected("partitions_without_leader", availability=[outage(105, None)], **rows)
    (stopped,) = detected("broker_stopped", **rows)
    assert stopped.sentence.startswith("The whole cluster was shut down")


@pytest.mark.parametrize(
    ("second", "level", "severity"), [(90, "ERROR", MINOR), (106, "ERROR", INFO), (106, "FATAL", MAJOR)]
)
def test_an_error_as_the_whole_cluster_shuts_down_is_a_remark(second: int, level: str, severity: str) -> None:
    ends = [event(100 + broker, "shutting_down", broker) for broker in (1, 2)]
    last = [{"cluster_id": "c", "broker_id": broker, "last_time": 110 * S, "seconds_before": 10} for broker in (1, 2)]
    facts = facts_of("kafka.A", level, ["[x] a text that no entry has"], lifecycle=ends, last_lines=last, files=FILES)
    for row in facts.loud:
        row |= {"first_time": second * S, "last_time": second * S}
    (found,) = BY_NAME["also_logged"].detect(facts)
    assert (found.severity, bool(facts.brokers.shutdown_times)) == (severity, True)


def test_a_chain_reads_true() -> None:
    """zk28-faults at 15:28: what was over by then is no cause of what begins; the broker that stands still is."""
    early = LoggedIncident(MINOR, "c", 0, 20 * S, "", broker_ids=(1,), partitions=frozenset({"a-0"}), kind="isr_shrunk")
    stalled = LoggedIncident(MAJOR, "c", 100 * S, 108 * S, "", broker_ids=(2,), kind="broker_stalled")
    shrunk = replace(stalled, kind="isr_shrunk", start_us=106 * S, by=(2,), partitions=frozenset({"a-0"}))
    under = replace(early, kind="partitions_under_min_isr", start_us=106 * S, end_us=111 * S, broker_ids=())
    assert not can_cause(early, under)
    assert can_cause(shrunk, under)
    assert can_cause(stalled, shrunk)


def test_lines_that_go_with_what_is_told_are_not_told_again() -> None:
    text = (
        "[RequestSendThread controllerId=1] Controller 1's connection to broker 127.0.0.1:9092 (id: 2) was unsuccessful"
    )
    facts = facts_of("kafka.controller.RequestSendThread", "WARN", [text, text, "[x] another text"])
    died = LoggedIncident(MAJOR, "c", 1_795_176_000 * S, None, "", broker_ids=(2,), kind="broker_died")
    assert [incident.figures["lines"] for incident in BY_NAME["also_logged"].detect(facts)] == [2, 1]
    (told,) = BY_NAME["also_logged"].detect(facts, [died])
    assert told.sentence.endswith("[x] another text")
    early = LoggedIncident(MAJOR, "c", 1_795_170_000 * S, 1_795_170_100 * S, "", broker_ids=(2,), kind="broker_died")
    assert len([*BY_NAME["also_logged"].detect(facts, [early])]) == 2


def test_lines_of_each_start_are_never_told() -> None:
    texts = ["[QuorumController id=1] Performing controller activation. The metadata log appears to be empty."]
    assert not incidents_of(facts_of("org.apache.kafka.controller.QuorumController", "WARN", texts), KINDS)


def test_no_text_at_warn_or_above_is_left_out() -> None:
    facts = facts_of("kafka.A", "WARN", [f"{word} is odd" for word in "abcdefgh"])
    assert len(incidents_of(facts, KINDS)) == 8


def test_an_episode_without_cause_says_so() -> None:
    fenced = LoggedIncident(
        MAJOR, "c", 0, S, "It was fenced.", unexplained="Look at it.", by=(2,), kind="broker_fenced"
    )
    kind = replace(BY_NAME["broker_fenced"], episodes=lambda facts: [fenced])
    (alone,) = incidents_of(Facts(), [kind])
    assert (alone.sentence, alone.advice) == ("It was fenced. Nothing in the logs explains why.", "Look at it.")
    stalled = LoggedIncident(MAJOR, "c", 0, S, "", broker_ids=(2,), kind="broker_stalled")
    froze = replace(BY_NAME["broker_stalled"], episodes=lambda facts: [stalled])
    explained = incidents_of(Facts(), [froze, kind])[1]
    assert (explained.sentence, explained.caused_by) == ("It was fenced.", stalled.incident_id)


def test_a_fetch_that_waited_for_its_timeout_explains_why_its_replica_left() -> None:
    """One error shows that nothing was fetched since the follower first tried, and until it can have tried again."""
    text = (
        "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Error in response for fetch request (type=Fetch)\n"
        "java.net.SocketTimeoutException: Failed to connect within 30000 ms"
    )
    at_us = 1_795_176_000 * S
    absence = {"cluster_id": "c", "topic": "t", "partition": 0, "leader": 2, "replica_id": 1, "made_by": "leader"}
    absence |= {"left_time": at_us + 20 * S, "outside_time": at_us + 20 * S, "back_time": None, "isr": [2]}
    absence |= {"ended": None}
    facts = facts_of("kafka.server.ReplicaFetcherThread", "WARN", [text], absences=[absence])
    unreachable, shrunk = sorted(incidents_of(facts, KINDS), key=lambda incident: incident.start_us)
    assert (unreachable.kind, unreachable.start_us, unreachable.end_us) == ("leader_unreachable", at_us - 30 * S, at_us)
    assert shrunk.caused_by == unreachable.incident_id


def test_a_line_of_another_program_is_not_of_the_broker() -> None:
    facts = facts_of("pipeline/output.go", "ERROR", ["Failed to publish events"])
    (incident,) = incidents_of(facts, KINDS)
    assert incident.sentence.startswith("Another program (pipeline/output.go) in the log of broker 1 logged at ERROR")


@pytest.mark.parametrize(
    ("seconds", "version", "jira"), [(45, "0.10.2.1", "KAFKA-2729"), (5, "0.10.2.1", None), (45, "2.3.1", None)]
)
def test_a_leader_that_stays_behind_is_a_known_bug(seconds: int, version: str, jira: str | None) -> None:
    text = "Partition [ledger,1] on broker 1: Cached zkVersion [7] not equal to that in zookeeper, skip updating ISR"
    files = [FILES[0] | {"broker_id": 1, "kafka_version": version}]
    facts = facts_of("kafka.cluster.Partition", "INFO", [text] * seconds, files=files)
    (incident,) = incidents_of(facts, KINDS)
    assert (incident.known_bug.jira if incident.known_bug else None) == jira


def test_a_process_that_says_late_that_it_starts_is_not_another_one() -> None:
    """A KRaft node under load: a minute from its first line to the one that it starts, with a silence in between."""
    rows: dict[str, Any] = {"silences": [silence(30, 50)], "lifecycle": [event(51, "starting"), event(60, "started")]}
    files = [{**FILES[0], "first_time": 1 * S}]
    assert detected("broker_died", **rows, files=files)
    assert not detected("broker_died", **rows, files=files, first_boots={("c", 2): 1 * S})
    # Where that process was up, its end is one.
    rows["lifecycle"] = [event(20, "started"), *rows["lifecycle"]]
    assert detected("broker_died", **rows, files=files, first_boots={("c", 2): 1 * S})


def test_a_process_that_said_why_it_ends_did_not_die_without_a_word() -> None:
    def lived(time_s: int, event: str) -> dict[str, Any]:
        return {"cluster_id": "c", "broker_id": 1, "time": time_s * S, "event": event, "file_id": "f", "byte_offset": 0}

    silence = {"cluster_id": "c", "broker_id": 1, "start_time": 101 * S, "end_time": 105 * S, "is_boot": True}
    for fatal in ([lived(101, "fatal")], []):
        more = {"kafka_version": None, "mode": "kraft", "detail": ""}
        lifecycle = [row | more for row in (lived(90, "starting"), *fatal, lived(105, "starting"))]
        lived_on = {"share_before": 0.0, "written_after_us": 0, "moved_before": 0, "steady_us": 0, "steady_silences": 0}
        files = [FILES[0] | {"broker_id": 1, "first_time": 1 * S, "last_time": 200 * S}]
        facts = Facts(lifecycle=lifecycle, silences=[silence | lived_on], files=files)
        kinds = [incident.kind for incident in incidents_of(facts, KINDS)]
        assert ("broker_died" in kinds) is (fatal == [])
