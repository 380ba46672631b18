"""High watermarks, end offsets, appends: what the DEBUG and TRACE lines of leaders and followers say."""

from typing import Any

import pytest

from tests.unit.silver.lines import directory, fact, facts, parse

PARTITION = "kafka.cluster.Partition"
LOG = "kafka.log.Log"
FETCHER = "kafka.server.ReplicaFetcherThread"


@pytest.mark.parametrize(
    ("line", "offset", "start"),
    [
        (
            "[Partition scratch-1-3 broker=1] Recorded replica 2 log end offset (LEO) position 173 and log start "
            "offset 5.",
            173,
            5,
        ),
        (
            "[Partition scratch-1-3 broker=1] Recorded replica 2 log end offset (LEO) position 173.",
            173,
            None,
        ),  # 1.1, source
        (
            "Partition [scratch-1,3] on broker 1: Recorded replica 2 log end offset (LEO) position 173 for partition "
            "scratch-1-3.",
            173,
            None,
        ),
    ],
)
def test_recorded_replica(line: str, offset: int, start: int | None) -> None:
    row = fact(PARTITION, line, "replica_fetches")
    assert (row["topic"], row["partition"], row["source"], row["replica_id"]) == ("scratch-1", 3, "recorded", 2)
    assert (row["fetch_offset"], row.get("log_start_offset")) == (offset, start)


@pytest.mark.parametrize(
    ("line", "before", "after"),
    [
        (
            "[Partition t-0 broker=1] High watermark updated from (offset=1614 segment=[0:450246]) to (offset=1615 "
            "segment=[0:450637])",
            1614,
            1615,
        ),
        (
            "[Partition t-0 broker=1] High watermark updated from (offset=0, segment=[0:0]) to (offset=3, "
            "segment=[-1:-1])",
            0,
            3,
        ),
        ("Partition [t,0] on broker 1: High watermark for partition [t,0] updated to 1 [0 : 157]", None, 1),
    ],
)
def test_high_watermark_updated(line: str, before: int | None, after: int) -> None:
    row = fact(PARTITION, line)
    assert (row["topic"], row["partition"], row["source"]) == ("t", 0, "updated")
    assert (row.get("previous_high_watermark"), row["high_watermark"]) == (before, after)


@pytest.mark.parametrize("comma", ["", ","])
def test_high_watermark_skipped(comma: str) -> None:
    line = (
        f"[Partition orders-5 broker=1] Skipping update high watermark since new hw (offset=-1{comma} segment=[0:0]) "
        f"is not larger than old value. All current LEOs are Set(replica 2: (offset=-1{comma} segment=[0:0]), "
        f"replica 13: (offset=7{comma} segment=[0:9]), "
        f"replica 1: (offset=10{comma} segment=[0:0]))"
    )
    assert fact(PARTITION, line) == {
        "topic": "orders",
        "partition": 5,
        "source": "skipped",
        "log_end_offset": 10,
        "replica_end_offsets": [
            {"replica_id": 2, "log_end_offset": -1},
            {"replica_id": 13, "log_end_offset": 7},
            {"replica_id": 1, "log_end_offset": 10},
        ],
    }


def test_high_watermark_skipped_before_2_4() -> None:
    line = (
        "[Partition t-0 broker=1] Skipping update high watermark since new hw 3 [0 : 5] is not larger than old hw 4 "
        "[0 : 7]. All current LEOs are Set(replica 1: 4 [0 : 7], replica 2: 3 [0 : 5])"
    )
    row = fact(PARTITION, line)
    assert (row["high_watermark"], row["log_end_offset"]) == (4, 4)
    line = (
        "Partition [ledger,0] on broker 1: Skipping update high watermark since Old hw 6 [0 : 0] is larger than new "
        "hw -1 [0 : 0] for partition [ledger,0]. All leo's are 0 [0 : 0],-1 [0 : 0]"
    )
    assert fact(PARTITION, line)["high_watermark"] == 6


def test_high_watermark_held_back_by_min_isr() -> None:
    line = "[Partition clicks-1 broker=1] Not increasing HWM because partition is under min ISR(ISR=[1]"
    assert fact(PARTITION, line) == {"topic": "clicks", "partition": 1, "source": "under_min_isr"}


@pytest.mark.parametrize(
    ("logger", "line", "expected"),
    [
        (
            PARTITION,
            "[Partition orders-5 broker=1] Log loaded for partition orders-5 with initial high watermark 12",
            {"source": "loaded", "high_watermark": 12},
        ),
        (
            LOG,
            "[Log partition=orders-5, dir=/var/lib/kafka/broker-1] Setting high watermark (offset=4 segment=[0:0])",
            {"source": "set", "high_watermark": 4},
        ),
        (
            LOG,
            "[Log partition=orders-5, dir=/d] Non-monotonic update of high watermark from (offset=871 "
            "segment=[0:246710]) to (offset=870 segment=[0:246397])",
            {"source": "non_monotonic", "previous_high_watermark": 871, "high_watermark": 870},
        ),
        (
            "org.apache.kafka.storage.internals.log.UnifiedLog",
            "[UnifiedLog partition=orders-5, dir=/d] Non-monotonic update of high watermark from (offset=471, "
            "segment=[0:129339]) to (offset=469, segment=[-1:-1])",
            {"source": "non_monotonic", "previous_high_watermark": 471, "high_watermark": 469},
        ),
        (
            "org.apache.kafka.storage.internals.log.UnifiedLog",
            "[UnifiedLog partition=orders-5, dir=/d] Non-monotonic update of high watermark from (offset=471"
            "segment=[0:129339]) to (offset=469segment=[-1:-1])",
            {"source": "non_monotonic", "previous_high_watermark": 471, "high_watermark": 469},
        ),
        (
            "kafka.cluster.Replica",
            "Setting high watermark for replica 1 partition orders-5 to [7 [-1 : -1]]",
            {"source": "set", "high_watermark": 7},
        ),
        (
            FETCHER,
            "[ReplicaFetcher replicaId=1, leaderId=3, fetcherId=0] Follower has replica log end offset 9 for "
            "partition orders-5. Received 0 messages and leader hw 8",
            {"source": "follower", "log_end_offset": 9, "leader_high_watermark": 8},
        ),
        (
            FETCHER,  # 3.5 and later, from source
            "[ReplicaFetcher replicaId=1, leaderId=3, fetcherId=0] Follower has replica log end offset 9 for "
            "partition orders-5. Received 70 bytes of messages and leader hw 8",
            {"source": "follower", "log_end_offset": 9, "leader_high_watermark": 8},
        ),
        (
            FETCHER,
            "[ReplicaFetcher replicaId=1, leaderId=3, fetcherId=0] Follower set replica high watermark for partition "
            "orders-5 to 8",
            {"source": "follower", "high_watermark": 8},
        ),
        (
            FETCHER,  # 3.3 and later, from source
            "[ReplicaFetcher replicaId=1, leaderId=3, fetcherId=0] Follower received high watermark 8 from the leader "
            "and updated replica high watermark to 7 for partition orders-5",
            {"source": "follower", "high_watermark": 7, "leader_high_watermark": 8},
        ),
        (
            FETCHER,  # 3.3 and later, from source
            "[ReplicaFetcher replicaId=1, leaderId=3, fetcherId=0] Follower received high watermark 8 from the leader "
            "but did not update replica high watermark for partition orders-5",
            {"source": "follower", "leader_high_watermark": 8},
        ),
    ],
)
def test_high_watermarks(logger: str, line: str, expected: dict[str, Any]) -> None:
    assert facts(logger, line) == [
        ("high_watermarks", {"topic": "orders", "partition": 5, **expected, **directory(line)})
    ]


@pytest.mark.parametrize(
    ("logger", "line", "expected"),
    [
        (
            LOG,
            "[Log partition=orders-4, dir=/d] Appended message set with last offset: 5, first offset: Some((offset=3 "
            "segment=[0:0])), next offset: 6, and messages: MemoryRecords(size=1589, "
            "buffer=java.nio.HeapByteBuffer[pos=0 lim=1589 cap=1592])",
            {"source": "log", "first_offset": 3, "last_offset": 5, "size_bytes": 1589},
        ),
        (
            "kafka.log.UnifiedLog",  # 3.7 and later, from source
            "[UnifiedLog partition=orders-4, dir=/d] Appended message set with last offset: 5, first offset: 3, next "
            "offset: 6, and messages: MemoryRecords(size=1589, buffer=java.nio.HeapByteBuffer[pos=0 lim=1589 cap=9])",
            {"source": "log", "first_offset": 3, "last_offset": 5, "size_bytes": 1589},
        ),
        (
            LOG,
            "[Log partition=orders-4, dir=/d] Appended message set with last offset: 5, first offset: None, next "
            "offset: 6, and messages: MemoryRecords(size=15, "
            "buffer=java.nio.HeapByteBuffer[pos=0 lim=15 cap=15])",
            {"source": "log", "last_offset": 5, "size_bytes": 15},
        ),
        (
            LOG,
            "Appended message set to log orders-4 with first offset: 0, next offset: 1, and messages: "
            "[(offset=0,record=Record(magic = 1, attributes = 0, compression = NONE, crc = 3065241411, CreateTime = "
            "1795189177273, key = 3 bytes, value = 120 bytes))]",
            {"source": "log", "first_offset": 0, "last_offset": 0},
        ),
        (
            "kafka.server.ReplicaManager",
            "[ReplicaManager broker=1] 626 written to log orders-4 beginning at offset (offset=3 segment=[0:0]) and "
            "ending at offset 5",
            {"source": "replica_manager", "first_offset": 3, "last_offset": 5, "size_bytes": 626},
        ),
        (
            "kafka.server.ReplicaManager",
            "[Replica Manager on Broker 1]: 157 bytes written to log orders-4 beginning at offset 0 and ending at "
            "offset 0",
            {"source": "replica_manager", "first_offset": 0, "last_offset": 0, "size_bytes": 157},
        ),
        (
            FETCHER,
            "[ReplicaFetcher replicaId=1, leaderId=3, fetcherId=0] Follower has replica log end offset 3 after "
            "appending 670 bytes of messages for partition orders-4",
            {"source": "follower", "last_offset": 2, "size_bytes": 670},
        ),
    ],
)
def test_appends(logger: str, line: str, expected: dict[str, Any]) -> None:
    assert facts(logger, line) == [("appends", {"topic": "orders", "partition": 4, **expected, **directory(line)})]


def test_an_empty_response_appends_nothing() -> None:
    line = (
        "[ReplicaFetcher replicaId=1, leaderId=3, fetcherId=0] Follower has replica log end offset 3 after appending "
        "0 bytes of messages for partition orders-4"
    )
    assert parse(FETCHER, line).outcome == "known"


def test_appends_in_4_3_name_the_topic_id() -> None:
    line = (
        "[ReplicaManager broker=1] 1124 written to log 9Za0zO_TSsWU_Yh-8h27Jw:orders-4 beginning at offset 0 and "
        "ending at offset 2"
    )
    assert fact("kafka.server.ReplicaManager", line, "topics") == {
        "topic": "orders",
        "topic_id": "9Za0zO_TSsWU_Yh-8h27Jw",
    }
    assert fact("kafka.server.ReplicaManager", line, "appends")["partition"] == 4


def test_a_loaded_log_tells_its_end_offset_but_no_high_watermark() -> None:
    line = (
        "Completed load of Log(dir=/var/lib/kafka/broker-2/orders-4, topicId=4LxDUPYhTcaAwrolaC2mCA, topic=orders, "
        "partition=4, highWatermark=0, lastStableOffset=0, logStartOffset=0, logEndOffset=479) with 1 segments, "
        "local-log-start-offset 0 and log-end-offset 479 in 14ms (4/18 completed in /var/lib/kafka/broker-2)"
    )
    assert facts("kafka.log.LogManager", line) == [
        (
            "high_watermarks",
            {
                "topic": "orders",
                "partition": 4,
                "source": "loaded",
                "log_end_offset": 479,
                "log_dir": "/var/lib/kafka/broker-2",
            },
        ),
        (
            "tier_events",
            {"topic": "orders", "partition": 4, "event": "local_start", "offset": 0, "reason": "loaded"}
            | {"log_start_offset": 0},
        ),
        ("topics", {"topic": "orders", "topic_id": "4LxDUPYhTcaAwrolaC2mCA"}),
    ]


def test_a_deleted_log_holds_no_replica() -> None:
    line = (
        "Completed load of Log(dir=/var/lib/kafka/broker-1/scratch-1-3.b1873a4f41224073a07be98ed686a415-delete, "
        "topicId=NO2Ez8FXS0SO1LyaKn6DIQ, topic=scratch-1, partition=3, highWatermark=0, lastStableOffset=0, "
        "logStartOffset=0, logEndOffset=0) with 1 segments, local-log-start-offset 0 and log-end-offset 0 in 6ms "
        "(6/11 completed in /var/lib/kafka/broker-1)"
    )
    assert facts("kafka.log.LogManager", line) == [
        ("topics", {"topic": "scratch-1", "topic_id": "NO2Ez8FXS0SO1LyaKn6DIQ"})
    ]


@pytest.mark.parametrize(
    ("logger", "line"),
    [
        (
            "kafka.server.ReplicaManager",
            "[ReplicaManager broker=1] Fetching log segment for partition orders-1, offset 1327, partition fetch size "
            "1048576, remaining response limit 10485369",
        ),
        ("kafka.server.ReplicaManager", "[ReplicaManager broker=1] Produce to local log in 131 ms"),
        ("kafka.server.ReplicaManager", "[ReplicaManager broker=1] Append [HashMap()] to local log"),
        (PARTITION, "[Partition orders-1 broker=1] Log already exists."),
        (PARTITION, "[Partition orders-1 broker=1] UnifiedLog already exists."),
    ],
)
def test_lines_that_carry_nothing(logger: str, line: str) -> None:
    assert parse(logger, line).outcome == "known"
