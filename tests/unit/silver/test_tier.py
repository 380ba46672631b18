"""What brokers say of the remote tier (KIP-405)."""

import pytest

from tests.unit.silver.lines import fact, facts, parse

TASK = "kafka.log.remote.RemoteLogManager$RLMCopyTask"
PREFIX = "[RemoteLogManager=1 partition=aJwdhboFTkWRGy81nWPt6g:events-0] "
SEGMENT = "RemoteLogSegmentId{topicIdPartition=aJwdhboFTkWRGy81nWPt6g:events-0, id=RKFgfHm7R4iIRjSkmnz5iQ}"
EVENTS = {"topic": "events", "partition": 0}


@pytest.mark.parametrize("logger", [TASK, "kafka.log.remote.RemoteLogManager$RLMTask"])
def test_a_segment_that_was_copied(logger: str) -> None:
    line = f"{PREFIX}Copied 00000000000000000260.log to remote storage with segment-id: {SEGMENT}"
    assert fact(logger, line) == EVENTS | {"event": "copied", "offset": 260, "segment_id": "RKFgfHm7R4iIRjSkmnz5iQ"}


def test_a_segment_that_kafka_deletes_from_the_tier() -> None:
    reason = "retention size 5242880 breach. Log size after deletion will be 5279160."
    line = f"{PREFIX}About to delete remote log segment {SEGMENT} due to {reason}"
    row = fact("org.apache.kafka.server.log.remote.storage.RemoteLogManager$RLMExpirationTask", line)
    assert row == EVENTS | {"event": "expired", "segment_id": "RKFgfHm7R4iIRjSkmnz5iQ", "reason": reason}


def test_where_the_local_log_and_the_log_begin() -> None:
    prefix = "[UnifiedLog partition=events-0, dir=/var/lib/kafka/broker-1] "
    local = fact(
        "kafka.log.UnifiedLog", f"{prefix}Incremented local log start offset to 260 due to reason segment deletion"
    )
    assert local == EVENTS | {"event": "local_start", "offset": 260, "reason": "segment deletion"}
    whole = fact("kafka.log.UnifiedLog", f"{prefix}Incremented log start offset to 254 due to leader offset increment")
    assert whole == EVENTS | {"event": "log_start", "offset": 254, "reason": "leader offset increment"}


def test_a_log_that_is_loaded_after_segments_went_to_the_tier() -> None:
    line = (
        "Completed load of Log(dir=/var/lib/kafka/broker-3/events-0, topicId=aJwdhboFTkWRGy81nWPt6g, topic=events, "
        "partition=0, highWatermark=1474, lastStableOffset=1474, logStartOffset=0, logEndOffset=1763) with 2 segments, "
        "local-log-start-offset 1474 and log-end-offset 1763 in 9ms (13/16 completed in /var/lib/kafka/broker-3)"
    )
    row = fact("kafka.log.LogManager", line, "tier_events")
    assert row == EVENTS | {"event": "local_start", "offset": 1474, "reason": "loaded", "log_start_offset": 0}


@pytest.mark.parametrize(
    "partition",
    [
        "events-0",
        "Topic: events; Partition: 0; Leader: Some(2); Replicas: 1,2,3; ISR: ; LeaderRecoveryState: RECOVERED",
    ],
)
def test_a_replica_that_is_built_anew_from_the_tier(partition: str) -> None:
    line = f"Updated the epoch cache from remote tier till offset: 957 with size: 1 for {partition}"
    row = fact("kafka.server.TierStateMachine", line)
    assert row == EVENTS | {"event": "local_start", "offset": 957, "reason": "rebuilt from the tier"}


def test_a_read_that_failed_with_its_exception() -> None:
    logger = "org.apache.kafka.server.log.remote.storage.RemoteLogReader"
    line = "Error occurred while reading the remote data for events-0"
    assert facts(logger, line) == [("tier_events", EVENTS | {"event": "read_failed"})]
    exception = "org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException: Requested resource"
    assert fact(logger, f"{line}\n{exception}\n\tat a.B.c(B.java:1)")["reason"] == exception


def test_what_else_is_said_of_the_tier_carries_nothing() -> None:
    assert not parse(TASK, f"{PREFIX}Copying 00000000000000000260.log to remote storage.").facts
    built = (
        "Built the leader epoch cache and producer snapshots from remote tier for events-0, with active producers size"
    )
    line = f"{built} size: 0, leaderLogStartOffset: 0, and logEndOffset: 957"
    assert not parse("kafka.server.TierStateMachine", line).facts


def test_a_read_that_failed_names_the_segment_if_the_stores_exception_does() -> None:
    line = "Error occurred while reading the remote data for clicks-1\n" + (
        "org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException: Requested remote resource\n"
        "\tat kafka.log.remote.RemoteLogReader.call(RemoteLogReader.java:65)\n"
        "Caused by: java.nio.file.NoSuchFileException: /tier/clicks-1-fIUYC4IyQM2NiMaNOVYdjg/"
        "00000000000000000264-bnIYKeIQRY2ALqdiGMfO6A.log"
    )
    row = fact("kafka.log.remote.RemoteLogReader", line)
    assert (row["offset"], row["segment_id"]) == (264, "bnIYKeIQRY2ALqdiGMfO6A")
