"""Mutants of what controllers and leaders say of leaders, ISRs, epochs and truncations."""

from __future__ import annotations

from tests.spark.mutants.changes import Where, also, alter, each
from tests.spark.mutants.mutant import LEFT_OPEN, OBSERVED, OPEN_TOO, Mutant

START = r"Leader payments-{} .*starts at leader epoch {} "
_FETCHER_START = r"Truncating partition transfers-0 to local high watermark 0"
_LOG_START = r"Log partition=transfers-0, .*Truncating to 0 has no effect"
_BELOW = (
    r"Truncating partition transfers-0 to local .*",
    "Truncating transfers-0 to offset 20 below high watermark 28",
)


def _start(partition: int, epoch: int, broker: int | None = None) -> Where:
    return Where(START.format(partition, epoch), broker)


MUTANTS = (
    Mutant(
        "new leader starts 10 offsets lower",
        "kraft39",
        alter(_start(2, 1), "from offset 690", "from offset 680"),
        "committed-data-lost",
        partition=2,
    ),
    Mutant(
        "new leader starts 7 offsets lower",
        "zk28",
        alter(_start(2, 1), "from offset 432", "from offset 425"),
        "committed-data-lost",
        partition=2,
    ),
    Mutant(
        "new leader starts below its predecessor's high watermark",
        "zk28",
        alter(_start(2, 3), "from offset 791", "from offset 770"),
        "committed-data-lost",
        partition=2,
    ),
    Mutant(
        "leader's high watermark line raised above its successor's start",
        "kraft39",
        alter(Where(START.format(2, 2), nth=0), "high watermark 1167", "high watermark 1990"),
        "committed-data-lost",
        partition=2,
    ),
    Mutant(
        "a leader that lost nothing starts at 0",
        "unclean",
        alter(Where(r"Leader sessions-0 starts at leader epoch [1-9]", nth=-1), r"from offset \d+", "from offset 0"),
        "committed-data-lost",
        topic="sessions",
        partition=0,
    ),
    Mutant(
        "a second broker starts the same epoch",
        "kraft39",
        also(_start(2, 1), r"Broker id=3", "Broker id=1", broker=1),
        "two-leaders-one-epoch",
        partition=2,
    ),
    Mutant(
        "the next leader's epoch is that of the one before",
        "kraft39",
        alter(_start(1, 2, 1), "leader epoch 2 ", "leader epoch 1 "),
        "two-leaders-one-epoch",
        partition=1,
    ),
    Mutant(
        "the next leader's epoch is that of the one before, without topic ids",
        "zk28",
        alter(_start(0, 2, 3), "leader epoch 2 ", "leader epoch 1 "),
        "two-leaders-one-epoch",
        LEFT_OPEN,
        partition=0,
    ),
    Mutant(
        "a leader's line without itself in the ISR",
        "kraft39",
        alter(_start(2, 1), r"ISR \[3,1\]", "ISR [1,2]"),
        "leader-outside-isr",
        OPEN_TOO,
        partition=2,
    ),
    Mutant(
        "the controller's new state without the leader in the ISR",
        "zk28",
        alter(Where(r"payments-2 .*LeaderAndIsr\(leader=3, leaderEpoch=0"), r"List\(3, 2, 1\)", "List(2, 1)"),
        "leader-outside-isr",
        OPEN_TOO,
        partition=2,
    ),
    Mutant(
        "a received request without the leader in the ISR",
        "kip101",
        alter(Where(r"received LeaderAndIsr .*leader=2, leaderEpoch=1.*\[ledger,0\]", 3), r"isr=\[2, 3\]", "isr=[3]"),
        "leader-outside-isr",
        OPEN_TOO,
        topic="ledger",
        partition=0,
    ),
    Mutant(
        "a controller elects a broker that it does not count as in sync",
        "unclean",
        alter(Where(r"sessions-1 state changed to \(Leader:1,ISR:1,"), r"Leader:1,ISR:1,", "Leader:1,ISR:2,"),
        "leader-outside-isr",
        OPEN_TOO,
        topic="sessions",
        partition=1,
    ),
    Mutant(
        "a received request with a stranger in the ISR",
        "kip101",
        alter(
            Where(r"received LeaderAndIsr .*leader=2, leaderEpoch=1.*\[ledger,0\]", 3), r"isr=\[2, 3\]", "isr=[2, 4]"
        ),
        "isr-outside-replicas",
        OPEN_TOO,
        topic="ledger",
        partition=0,
    ),
    Mutant(
        "metadata with a stranger in the ISR",
        "kraft39",
        alter(
            Where(r"Skipped the become-leader .*payments-2 .*isr=\[3, 1, 2\]", nth=0),
            r"isr=\[3, 1, 2\]",
            "isr=[3, 1, 7]",
        ),
        "isr-outside-replicas",
        OPEN_TOO,
        partition=2,
    ),
    Mutant(
        "a request that the controller sends has a stranger in the ISR",
        "unclean",
        alter(
            Where(r"become-leader .*partitionIndex=1, .*leaderEpoch=0, isr=\[1, 2\]", nth=0),
            r"isr=\[1, 2\]",
            "isr=[1, 3]",
        ),
        "isr-outside-replicas",
        OPEN_TOO,
        topic="sessions",
        partition=1,
    ),
    Mutant(
        "an ISR that the new leader was not in, and it is alone in its own",
        "kraft39",
        each(
            alter(Where(r"payments-2 .*isr=\[2, 3, 1\], .*partitionEpoch=0"), r"isr=\[2, 3, 1\]", "isr=[2, 1]"),
            alter(_start(2, 0), r"ISR \[2,3,1\]", "ISR [2,1]"),
            alter(_start(2, 1), r"ISR \[3,1\]", "ISR [3]"),
        ),
        "unclean-election",
        OBSERVED,
        partition=2,
    ),
    Mutant(
        "a truncation below the high watermark",
        "lostwake",
        also(Where(_FETCHER_START, nth=0), *_BELOW, after_ms=20_000),
        "truncation-below-hw",
        OBSERVED,
        topic="transfers",
        partition=0,
    ),
    Mutant(
        "a truncation below the high watermark, of a version that can trust its high watermark",
        "lostwake",
        each(
            also(Where(_FETCHER_START, nth=0), *_BELOW, after_ms=20_000),
            also(Where(_LOG_START, nth=0), r"Truncating to .*", "Truncating to offset 20", after_ms=20_001),
            alter(Where(r"Kafka version: 2\.8\.2"), r"2\.8\.2", "2.5.1"),
        ),
        "truncation-below-hw",
        topic="transfers",
        partition=0,
    ),
    Mutant(
        "a replica comes online from nothing",
        "zk28",
        alter(
            Where(r"Changed state of replica 2 for partition payments-2 from NewReplica to OnlineReplica"),
            "from NewReplica",
            "from NonExistentReplica",
        ),
        "illegal-state-transition",
        OPEN_TOO,
        partition=2,
    ),
    Mutant(
        "a partition comes online from nothing",
        "zk28",
        alter(
            Where(r"Changed partition payments-2 from NewPartition to OnlinePartition"),
            "from NewPartition",
            "from NonExistentPartition",
        ),
        "illegal-state-transition",
        OPEN_TOO,
        partition=2,
    ),
)
