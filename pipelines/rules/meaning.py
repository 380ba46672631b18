"""What a rule's findings mean for the data, and what to do now: the first that a person on call asks. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Meaning(NamedTuple):
    """What ``highwater explain`` begins with.

    Attributes:
        data: what a finding means for records and clients.
        act: what to do now.
    """

    data: str
    act: str


_LIST = "`highwater trace finding ID` lists the offsets"
_UPGRADE = "upgrade to a release with the fix, if the finding names a known bug"

#: By rule id.
MEANINGS: Final[Mapping[str, Meaning]] = {
    "committed-data-lost": Meaning(
        "Records that clients were told are written are gone, or will be: consumers never see them.",
        f"{_LIST}. Before you elect or restart anything, `highwater survivors TOPIC-PARTITION` says which replica "
        "still has them; else write them again from their source. Set unclean.leader.election.enable=false, "
        f"min.insync.replicas=2 or more, acks=all; {_UPGRADE}.",
    ),
    "tier-segment-lost": Meaning(
        "Records that were moved to the remote tier are not there any more: consumers of old offsets get errors, and "
        "the records are gone unless the store still has them somewhere.",
        f"{_LIST}. Look in the store for the segment's object, which the lines name, in versions or backups, and at "
        "who may delete there (lifecycle rules). Until it is back, consumers have to begin behind it.",
    ),
    "acked-by-leader-only-lost": Meaning(
        "Records written with acks=1 are gone: the leader failed before a follower had them. acks=1 allows that.",
        f"{_LIST}: write them again if they matter. Use acks=all with min.insync.replicas=2 for topics that must not "
        "lose records.",
    ),
    "ack-before-commit": Meaning(
        "A client was told that a record is replicated before it was: a crash in that moment loses it.",
        "`highwater trace finding ID` shows the answer and the replicas' positions; see whether committed-data-lost "
        f"names the same offsets; {_UPGRADE}.",
    ),
    "acked-as-duplicate-of-another-batch": Meaning(
        "A batch was answered as if it were a retry of another one, and was not written: its records are lost.",
        f"{_LIST}: compare what the producer sent with the log, and write again what is missing; {_UPGRADE}.",
    ),
    "ack-under-min-isr": Meaning(
        "Records were acknowledged, or committed, with fewer in-sync replicas than min.insync.replicas asks: they are "
        "safe only while the replicas that have them live.",
        "See with `highwater trace partition TOPIC-PARTITION` which replicas were away and whether they are back; "
        f"keep the remaining ones up until then; {_UPGRADE}.",
    ),
    "late-completion": Meaning(
        "Nothing is lost. A client waited, up to its timeout, though its records were replicated; it may have sent "
        "them again.",
        f"{_UPGRADE[:1].upper()}{_UPGRADE[1:]}. Until then a steady flow of other requests to the partition hides it; "
        "enable.idempotence=true keeps retries from writing records twice.",
    ),
    "hw-regression": Meaning(
        "The mark up to which consumers may read went back. Consumers may see an end of the log that moves back, and "
        "offsets out of range. Records are lost only if committed-data-lost says so.",
        "Look for committed-data-lost of the same partition, and for consumers that reset their offsets then; an "
        "observation at a failover needs nothing.",
    ),
    "hw-above-isr": Meaning(
        "Records counted as committed though an in-sync replica lacked them: if it is elected, they are lost.",
        "Do not move the leadership to the replica that is named until it has caught up; `highwater survivors "
        f"TOPIC-PARTITION` says who has what; {_UPGRADE}.",
    ),
    "follower-hw-above-leader": Meaning(
        "A follower takes more records for committed than its leader: a consumer that reads from it, or its election, "
        "may show records that go away again.",
        f"Compare with committed-data-lost and truncation-below-hw of the partition; {_UPGRADE}.",
    ),
    "read-above-isolation": Meaning(
        "A consumer was given records that were not committed, or of an open transaction: it may have acted on "
        "records that do not exist any more.",
        f"{_LIST}: check what the consumer did with them; {_UPGRADE}.",
    ),
    "stale-epoch-accepted": Meaning(
        "A replica or consumer that lived in an older leadership was served: its log can take a wrong turn.",
        f"Look for epoch-history-diverged and committed-data-lost of the partition; {_UPGRADE}.",
    ),
    "two-leaders-one-epoch": Meaning(
        "Two brokers took writes for one partition at once: what one of them acknowledged is lost, or replicas differ.",
        "Stop producers of the partition, find with `highwater trace write TOPIC-PARTITION` which writes survive, and "
        f"restart the broker that the controller does not name as leader; {_UPGRADE}.",
    ),
    "leader-outside-isr": Meaning(
        "The leader is not in its own in-sync set: the controller and the leader disagree on who has the data.",
        "Compare the partition's state of `kafka-topics.sh --describe` with `highwater trace partition "
        f"TOPIC-PARTITION`; elect the preferred leader once all replicas are in sync; {_UPGRADE}.",
    ),
    "isr-outside-replicas": Meaning(
        "A broker that does not hold the partition counts as in sync: it could be elected, with an empty log.",
        "Do not start an election; finish or cancel the reassignment of the partition (kafka-reassign-partitions.sh "
        f"--list), then compare `kafka-topics.sh --describe`; {_UPGRADE}.",
    ),
    "unclean-election": Meaning(
        "A replica that lacked records became leader. What it lacked is lost; committed-data-lost lists it where logs "
        "show it.",
        "Look for committed-data-lost of the partition, and write again what it lists. Set "
        "unclean.leader.election.enable=false where data matters more than availability.",
    ),
    "failover-not-completed": Meaning(
        "A partition kept a dead broker as its leader: clients could not write to it or read from it.",
        "See whether it has a leader now (`kafka-topics.sh --describe --unavailable-partitions`); if not, restart the "
        f"controller's broker so that it elects anew; {_UPGRADE}.",
    ),
    "illegal-state-transition": Meaning(
        "Controller or brokers hold states that contradict each other: leaderships and in-sync sets may be stale.",
        f"Compare `kafka-topics.sh --describe` with what brokers log; restart the controller's broker; {_UPGRADE}.",
    ),
    "isr-join-behind-hw": Meaning(
        "A replica counts as in sync though it lacks committed records: if it is elected, they are lost.",
        "Keep the present leader up until the replica has caught up (`highwater survivors TOPIC-PARTITION`); "
        f"{_UPGRADE}.",
    ),
    "isr-shrink-late": Meaning(
        "Nothing is lost. A dead or slow follower stayed in the in-sync set for longer than configured, and acks=all "
        "produces waited for it meanwhile.",
        "Look at what held the leader up then (garbage collection, disk); lower replica.lag.time.max.ms only if that "
        "happens often.",
    ),
    "truncation-below-hw": Meaning(
        "A replica deleted records that it took for committed. If no other replica had them, they are lost.",
        "Look for committed-data-lost of the partition; `highwater survivors TOPIC-PARTITION` says which replicas "
        f"still have the records; {_UPGRADE}.",
    ),
    "epoch-history-diverged": Meaning(
        "Two replicas tell different histories of one leadership: their logs may hold different records at one offset.",
        "Compare the replicas (`kafka-dump-log.sh`, or give highwater the data directories for "
        "replica-bytes-diverged). A follower that is wrong is rebuilt: with its broker down, move its folder of the "
        "partition away.",
    ),
    "checkpoint-ahead-of-log": Meaning(
        "A file says that more was written than the log holds: records may have been lost at a crash or power "
        "failure, or the files were copied at different moments.",
        "Copy the data directories again with the broker stopped. If it stays, look for committed-data-lost, and let "
        "the broker follow before it leads.",
    ),
    "replica-bytes-diverged": Meaning(
        "Replicas hold different records at one offset, or a damaged batch: what a consumer reads depends on the "
        "leader.",
        "Find the right copy (producer, other replicas), keep its broker as leader, and rebuild the other replica: "
        "with its broker down, move its folder of the partition away. Check that broker's disk.",
    ),
    "error-yet-committed": Meaning(
        "A client was told that a write failed, and the records are in the log. If it sent them again, they are there "
        "twice.",
        f"{_LIST}: look for duplicates there. enable.idempotence=true lets a client repeat a write safely.",
    ),
}
