"""Replica fetchers: partitions that join, leave, fail; truncations and what led to them; leader epochs."""

from typing import Any

import pytest

from tests.unit.silver.lines import directory, fact, facts, parse

MANAGER = "kafka.server.ReplicaFetcherManager"
THREAD = "kafka.server.ReplicaFetcherThread"
IDENT = "[ReplicaFetcher replicaId=1, leaderId=3, fetcherId=2] "
LOG = "[Log partition=scratch-1-3, dir=/var/lib/kafka/broker-1] "
EPOCHS = "[LeaderEpochCache scratch-1-3] "


@pytest.mark.parametrize(
    ("listed", "ids"),
    [
        (
            "Map(orders-0 -> InitialFetchState(BrokerEndPoint(id=2, host=127.0.0.1:19094),5,70), scratch-1-3 -> "
            "InitialFetchState(BrokerEndPoint(id=2, host=127.0.0.1:19094),6,80))",
            [],
        ),
        (
            "HashMap(orders-0 -> InitialFetchState(Some(4LxDUPYhTcaAwrolaC2mCA),BrokerEndPoint(id=2, "
            "host=127.0.0.1:19094),5,70), scratch-1-3 -> InitialFetchState(None,BrokerEndPoint(id=2, "
            "host=127.0.0.1:19094),6,80))",
            [("orders", "4LxDUPYhTcaAwrolaC2mCA")],
        ),
        (
            "HashMap(orders-0 -> InitialFetchState(Some(4LxDUPYhTcaAwrolaC2mCA),BrokerEndPoint[id=2, host=127.0.0.1, "
            "port=19094],5,70), scratch-1-3 -> InitialFetchState(Some(0V_0lTx2Rzi0bfK055WW7g),BrokerEndPoint[id=2, "
            "host=127.0.0.1, port=19094],6,80))",
            [("orders", "4LxDUPYhTcaAwrolaC2mCA"), ("scratch-1", "0V_0lTx2Rzi0bfK055WW7g")],
        ),
        (
            "{orders-0 -> InitialFetchState[topicId=Optional[4LxDUPYhTcaAwrolaC2mCA], leader=BrokerEndPoint[id=2, "
            "host=h, port=1], currentLeaderEpoch=5, initOffset=70], scratch-1-3 -> "
            "InitialFetchState[topicId=Optional.empty, leader=BrokerEndPoint[id=2, host=h, port=1], "
            "currentLeaderEpoch=6, initOffset=80]}",
            [("orders", "4LxDUPYhTcaAwrolaC2mCA")],
        ),
    ],
    ids=["2.8", "3.9", "4.3", "as a Java record"],
)
def test_added(listed: str, ids: list[tuple[str, str]]) -> None:
    rows = facts(MANAGER, f"[ReplicaFetcherManager on broker 1] Added fetcher to broker 2 for partitions {listed}")
    assert [row for table, row in rows if table == "fetcher_events"] == [
        {"topic": "orders", "partition": 0, "action": "added", "leader": 2, "leader_epoch": 5, "offset": 70},
        {"topic": "scratch-1", "partition": 3, "action": "added", "leader": 2, "leader_epoch": 6, "offset": 80},
    ]
    assert [(row["topic"], row["topic_id"]) for table, row in rows if table == "topics"] == ids


def test_added_in_0_10() -> None:
    line = (
        "[ReplicaFetcherManager on broker 1] Added fetcher for partitions List([ledger-2, initOffset 7 to broker "
        "BrokerEndPoint(3,127.0.0.1,19095)] , [ledger-1, initOffset 0 to broker BrokerEndPoint(2,127.0.0.1,19094)] )"
    )
    assert [row for _, row in facts(MANAGER, line)] == [
        {"topic": "ledger", "partition": 2, "action": "added", "leader": 3, "offset": 7},
        {"topic": "ledger", "partition": 1, "action": "added", "leader": 2, "offset": 0},
    ]


def test_a_partition_that_cannot_be_read_is_not_dropped_silently() -> None:
    line = (
        "[ReplicaFetcherManager on broker 1] Added fetcher to broker 2 for partitions Map(orders-0 -> "
        "InitialFetchState(BrokerEndPoint(id=2, host=h:1),5,70), orders-1 -> Unheard(of))"
    )
    parsed = parse(MANAGER, line)
    assert (parsed.outcome, parsed.problem) == ("unparsed", "fetcher.added: no initial state: Unheard(of)")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Set(orders-5, scratch-1-3)", [("orders", 5), ("scratch-1", 3)]),
        ("HashSet(__consumer_offsets-3, a.b_c-d-12)", [("__consumer_offsets", 3), ("a.b_c-d", 12)]),
        ("ledger-0,ledger-1", [("ledger", 0), ("ledger", 1)]),
        ("Set()", []),
        ("", []),
    ],
)
def test_removed(text: str, expected: list[tuple[str, int]]) -> None:
    rows = facts(MANAGER, f"[ReplicaFetcherManager on broker 1] Removed fetcher for partitions {text}")
    assert [(row["topic"], row["partition"], row["action"]) for _, row in rows] == [(*tp, "removed") for tp in expected]


def test_copies_between_log_directories_are_no_replication() -> None:
    line = "[ReplicaAlterLogDirsManager on broker 3] Removed fetcher for partitions Set(clicks-2)"
    parsed = parse("kafka.server.ReplicaAlterLogDirsManager", line)
    assert (parsed.template, parsed.outcome) == ("known.log_dirs", "known")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Partition scratch-1-3 marked as failed", {"action": "failed"}),
        (
            "Partition scratch-1-3 has an older epoch (2) than the current leader. Will await the new LeaderAndIsr "
            "state before resuming fetching.",
            {"action": "fenced", "leader_epoch": 2, "error": "older epoch than the current leader"},
        ),
        (
            "Partition scratch-1-3 has an new epoch (1) than the current leader. retry the partition later",
            {"action": "delayed", "leader_epoch": 1, "error": "newer epoch than the current leader"},
        ),
        (
            # 3.4, source
            "Partition scratch-1-3 has a newer epoch (1) than the current leader. Retry the partition later.",
            {"action": "delayed", "leader_epoch": 1, "error": "newer epoch than the current leader"},
        ),
        (
            "Received UNKNOWN_TOPIC_OR_PARTITION from the leader for partition scratch-1-3. This error may be "
            "returned transiently when the partition is being created or deleted, but it is not expected to persist.",
            {"action": "error", "error": "UNKNOWN_TOPIC_OR_PARTITION"},
        ),
        (
            "Retrying leaderEpoch request for partition scratch-1-3 as the leader reported an error: "
            "UNKNOWN_LEADER_EPOCH",
            {"action": "error", "error": "UNKNOWN_LEADER_EPOCH"},
        ),
        (
            "Remote broker has a smaller leader epoch for partition scratch-1-3 than this replica's current leader "
            "epoch of 1.",
            {"action": "error", "leader_epoch": 1, "error": "smaller leader epoch at the remote broker"},
        ),
        (
            "Error for partition scratch-1-3 at offset "
            "7\norg.apache.kafka.common.errors.NotLeaderOrFollowerException: moved\n\tat x",
            {
                "action": "error",
                "offset": 7,
                "error": "org.apache.kafka.common.errors.NotLeaderOrFollowerException: moved",
            },
        ),
        (
            "Handling errors in processFetchRequest for partitions HashSet(scratch-1-3)",
            {"action": "delayed", "error": "processFetchRequest"},
        ),
    ],
)
def test_events(text: str, expected: dict[str, Any]) -> None:
    assert facts(THREAD, IDENT + text) == [
        ("fetcher_events", {"topic": "scratch-1", "partition": 3, "leader": 3, "fetcher_id": 2, **expected})
    ]


@pytest.mark.parametrize("topic_id", ["", "topicId=S9o5dLJeQvGFTf8kHnpwBQ, "])
def test_a_failed_fetch_concerns_every_partition_of_it(topic_id: str) -> None:
    line = (
        f"{IDENT}Error in response for fetch request (type=FetchRequest, replicaId=1, maxWait=500, minBytes=1, "
        f"maxBytes=10485760, fetchData={{payments-2=PartitionData({topic_id}fetchOffset=432, logStartOffset=0, "
        f"maxBytes=1048576, "
        f"currentLeaderEpoch=Optional[4], lastFetchedEpoch=Optional[0]), "
        f"scratch-1-3=PartitionData({topic_id}fetchOffset=5, "
        "logStartOffset=0, maxBytes=1048576, currentLeaderEpoch=Optional.empty, lastFetchedEpoch=Optional.empty)}, "
        "isolationLevel=READ_UNCOMMITTED, toForget=, metadata=(sessionId=1115077135, epoch=966), rackId=)\n"
        "java.io.IOException: Connection to 3 was disconnected before the response was read\n\tat x"
    )
    cause = "java.io.IOException: Connection to 3 was disconnected before the response was read"
    common = {"action": "error", "leader": 3, "fetcher_id": 2, "error": cause}
    assert [row for _, row in facts(THREAD, line)] == [
        {"topic": "payments", "partition": 2, "leader_epoch": 4, "offset": 432, **common},
        {"topic": "scratch-1", "partition": 3, "offset": 5, **common},
    ]


@pytest.mark.parametrize(
    ("logger", "line", "expected"),
    [
        (
            "kafka.log.Log",
            LOG + "Rolled new log segment at offset 27 in 126 ms.",
            {"base_offset": 27, "duration_ms": 126},
        ),
        (
            "org.apache.kafka.storage.internals.log.LocalLog",  # 4.x, from source
            "[LocalLog partition=scratch-1-3, dir=/d] Rolled new log segment at offset 27 in 1 ms.",
            {"base_offset": 27, "duration_ms": 1},
        ),
        (
            "kafka.log.Log",  # up to 0.11, from source
            "Rolled new log segment for 'scratch-1-3' in 3 ms.",
            {"duration_ms": 3},
        ),
    ],
)
def test_segments_that_begin(logger: str, line: str, expected: dict[str, object]):
    assert facts(logger, line) == [
        ("segment_rolls", {"topic": "scratch-1", "partition": 3, **expected, **directory(line)})
    ]


@pytest.mark.parametrize(
    ("logger", "line", "expected"),
    [
        ("kafka.log.Log", LOG + "Truncating to offset 993", {"source": "log", "offset": 993}),
        ("kafka.log.Log", "Truncating log scratch-1-3 to offset 0.", {"source": "log", "offset": 0}),
        (
            "kafka.log.UnifiedLog",
            LOG + "Truncating to 12 has no effect as the largest offset in the log is 10",
            {"source": "no_effect", "offset": 12, "previous_end_offset": 11},
        ),
        (
            "kafka.log.UnifiedLog",  # 3.6 and later, from source
            LOG + "Truncate and start at offset 40, logStartOffset: 40",
            {"source": "log", "offset": 40, "reason": "full"},
        ),
        (
            "org.apache.kafka.storage.internals.log.UnifiedLog",  # 4.x, from source
            "[UnifiedLog partition=scratch-1-3, dir=/d] Truncating scratch-1-3 to offset 5 below high watermark 9",
            {"source": "below_high_watermark", "offset": 5, "high_watermark": 9},
        ),
        (
            THREAD,  # 2.0 to 4.0, from source
            IDENT + "Truncating scratch-1-3 to offset 5 below high watermark 9",
            {"source": "below_high_watermark", "offset": 5, "high_watermark": 9},
        ),
        (
            THREAD,
            IDENT + "Truncating partition scratch-1-3 to local high watermark 7",
            {"source": "fetcher", "offset": 7, "high_watermark": 7, "reason": "high_watermark"},
        ),
        (
            THREAD,
            IDENT
            + (
                "Truncating partition scratch-1-3 with TruncationState(offset=5, completed=true) due to local high "
                "watermark 7"
            ),
            {"source": "fetcher", "offset": 5, "high_watermark": 7, "reason": "high_watermark"},
        ),
        (
            THREAD,
            IDENT
            + (
                "Truncating partition scratch-1-3 with TruncationState(offset=982, completed=true) due to leader "
                "epoch and offset EpochEndOffset(errorCode=0, partition=5, leaderEpoch=4, endOffset=982)"
            ),
            {"source": "fetcher", "offset": 982, "reason": "leader_epoch", "leader_epoch": 4},
        ),
        (
            THREAD,  # from source
            IDENT
            + (
                "Current offset 90 for partition scratch-1-3 is out of range, which typically implies a leader "
                "change. Reset fetch offset to 70"
            ),
            {"source": "out_of_range", "offset": 70, "previous_end_offset": 90, "reason": "out_of_range"},
        ),
        (
            THREAD,  # from source
            IDENT + "Reset fetch offset for partition scratch-1-3 from 90 to current leader's latest offset 70",
            {"source": "out_of_range", "offset": 70, "previous_end_offset": 90, "reason": "out_of_range"},
        ),
        (
            THREAD,  # 3.6 and later, from source
            IDENT
            + (
                "Truncate fully and reset fetch offset for partition scratch-1-3 from 5 to the current leader's "
                "start offset 70 because the local replica's end offset is smaller than the current leader's start "
                "offsets."
            ),
            {"source": "out_of_range", "offset": 70, "previous_end_offset": 5, "reason": "full"},
        ),
        (
            THREAD,  # 2.0 and later, from source
            IDENT
            + (
                "Based on replica's leader epoch, leader replied with epoch 3 unknown to the replica for "
                "scratch-1-3. Will truncate to 12 and send another leader epoch request to the leader."
            ),
            {"source": "epoch_reply", "offset": 12, "leader_epoch": 3, "reason": "leader_epoch"},
        ),
        (
            THREAD,  # 0.11 to 1.1, from source
            IDENT
            + (
                "Based on follower's leader epoch, leader replied with an offset 12 >= the follower's log end offset "
                "10 in scratch-1-3. No truncation needed."
            ),
            {"source": "epoch_reply", "offset": 12, "reason": "leader_epoch"},
        ),
    ],
)
def test_truncations(logger: str, line: str, expected: dict[str, Any]) -> None:
    assert facts(logger, line) == [
        ("truncations", {"topic": "scratch-1", "partition": 3, **expected, **directory(line)})
    ]


def test_truncation_that_kills_the_broker() -> None:
    line = (
        "[ReplicaFetcherThread-0-3], Exiting because log truncation is not allowed for partition t-0, Current leader "
        "3's latest offset 5 is less than replica 1's latest offset 9"
    )
    row = fact(THREAD, line, "truncations")
    assert (row["offset"], row["previous_end_offset"], row["reason"]) == (5, 9, "not_allowed")
    assert fact(THREAD, line, "broker_lifecycle") == {"event": "fatal"}


@pytest.mark.parametrize(
    "logger",
    ["kafka.server.epoch.LeaderEpochFileCache", "org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache"],
)
def test_leader_epochs(logger: str) -> None:
    """The corpora have none of these lines: DEBUG, or rare. From source."""
    line = EPOCHS + "Appended new epoch entry EpochEntry(epoch=4, startOffset=90). Cache now contains 2 entries."
    row = {"topic": "scratch-1", "partition": 3, "action": "assigned", "leader_epoch": 4, "start_offset": 90}
    assert facts(logger, line) == [("leader_epochs", row)]
    line = EPOCHS + (
        "New epoch entry EpochEntry(epoch=4, startOffset=90) caused truncation of conflicting entries "
        "ListBuffer(EpochEntry(epoch=2, startOffset=91), EpochEntry(epoch=3, startOffset=95)). Cache now contains 2 "
        "entries."
    )
    assert [(r["action"], r["leader_epoch"], r["start_offset"]) for _, r in facts(logger, line)] == [
        ("truncated", 2, 91),
        ("truncated", 3, 95),
        ("assigned", 4, 90),
    ]
    line = EPOCHS + (
        "Cleared entries [EpochEntry(epoch=3, startOffset=95)] from epoch cache after truncating to end offset 93, "
        "leaving 1 entries in the cache."
    )
    assert [(r["action"], r["leader_epoch"]) for _, r in facts(logger, line)] == [("truncated", 3)]
    line = (
        EPOCHS
        + "Cleared entries [] from epoch cache after truncating to end offset 93, leaving 1 entries in the cache."
    )
    assert parse(logger, line).outcome == "known"


@pytest.mark.parametrize(
    "text",
    [
        "Starting",
        "Stopped",
        "Shutdown completed",
        "There are no active partitions. Back off for 1000 ms before sending a fetch request",
    ],
)
def test_lines_that_carry_nothing(text: str) -> None:
    assert parse(THREAD, IDENT + text).outcome == "known"
    assert parse(THREAD, f"[ReplicaFetcherThread-0-3], {text} ").outcome == "known"
