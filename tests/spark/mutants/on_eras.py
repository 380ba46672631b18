"""The same kinds of fault in releases of other eras: text of 1.1 under ZooKeeper, eligible leader replicas of 4.0."""

from __future__ import annotations

from tests.spark.mutants.changes import Where, also, alter, drop, repeat, same
from tests.spark.mutants.mutant import LEFT_OPEN, OPEN_TOO, Mutant

_CREATED = r"Changed partition payments-2 from NewPartition to OnlinePartition"
_STARTS = r"{0}-{1} .*starts at [Ll]eader [Ee]poch {2} "

MUTANTS = (
    Mutant("nothing: zk11", "zk11", same),
    Mutant("nothing: elr", "elr", same),
    Mutant("lines about epochs twice", "zk11", repeat(Where(r"starts at Leader Epoch"))),
    Mutant("no line about a leader's epoch", "elr", drop(Where(r"Leader ledger-\d .*starts at leader epoch"))),
    Mutant(
        "a second broker starts the same epoch, without topic ids",
        "zk11",
        also(Where(_STARTS.format("payments", 1, 2)), r"broker=3", "broker=2", broker=2),
        "two-leaders-one-epoch",
        LEFT_OPEN,
        partition=1,
    ),
    Mutant(
        "a second broker starts the same epoch",
        "elr",
        also(Where(_STARTS.format("ledger", 0, 1), 2), r"Broker id=2", "Broker id=3", broker=3),
        "two-leaders-one-epoch",
        OPEN_TOO,
        topic="ledger",
        partition=0,
    ),
    Mutant(
        "the controller's new state without the leader in the ISR",
        "zk11",
        alter(Where(_CREATED), r"List\(3, 2, 1\)", "List(2, 1)"),
        "leader-outside-isr",
        OPEN_TOO,
        partition=2,
    ),
    Mutant(
        "a leader's line without itself in the ISR",
        "elr",
        alter(Where(_STARTS.format("ledger", 0, 1), 2), r"ISR \[2,3\]", "ISR [3,1]"),
        "leader-outside-isr",
        OPEN_TOO,
        topic="ledger",
        partition=0,
    ),
    Mutant(
        "a replica comes online from nothing",
        "zk11",
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
        "zk11",
        alter(Where(_CREATED), "from NewPartition", "from NonExistentPartition"),
        "illegal-state-transition",
        OPEN_TOO,
        partition=2,
    ),
)
