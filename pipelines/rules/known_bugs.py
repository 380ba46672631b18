"""Bugs of Kafka's replication that an audit can come across: which versions have them, and what they look like.

A bug explains a finding, it never makes one: a rule that has a case asks `bugs_of` whether the running version is known
to do that, and names the JIRA. Versions were read from apache/kafka: `fixed_in` names the first release of each branch
that contains the fix, found by its commit; `broken_from` is the first release whose source has the fault, or None where
it is as old as what it is about, as far as is known. Only releases up to 3.9 could be looked at that way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from pipelines.kafka.releases import Version, value_of


@dataclass(frozen=True)
class KnownBug:
    """One bug.

    Attributes:
        jira: its number, such as ``KAFKA-13091``.
        title: what goes wrong, in a few words.
        broken_from: first version that has it; None: every version before the fix.
        fixed_in: first version of each branch that no longer has it, ascending. A branch without one that is older than
            the newest of them keeps the bug.
        rule_ids: rules whose cases it can explain.
        signature: what it looks like in logs.
        source: KIP and fix commit in apache/kafka; what is inferred is said.
    """

    jira: str
    title: str
    broken_from: Version | None
    fixed_in: tuple[Version, ...]
    rule_ids: tuple[str, ...]
    signature: str
    source: str


KNOWN_BUGS: tuple[KnownBug, ...] = (
    KnownBug(
        "KAFKA-1211",
        "A new follower truncates to its own high watermark and drops acknowledged records",
        None,
        ((0, 11, 0),),
        ("committed-data-lost", "epoch-history-diverged", "replica-bytes-diverged"),
        "A restarted or demoted replica truncates to its high watermark, then leads from an offset below one that was "
        "acknowledged.",
        "KIP-101; 0baea2ac135",
    ),
    KnownBug(
        "KAFKA-2729",
        "A leader whose cached zkVersion is out of date can never change its ISR again",
        None,
        ((1, 1, 0),),
        ("isr-shrink-late", "failover-not-completed"),
        "INFO `Cached zkVersion [..] not equal to that in zookeeper, skip updating ISR`, again and again.",
        "fix under KAFKA-5642, no commit names KAFKA-2729; b71ee043f89, the controller's asynchronous client, inferred",
    ),
    KnownBug(
        "KAFKA-3410",
        "A follower ahead of its leader halts its broker instead of truncating",
        None,
        ((2, 0, 1), (2, 1, 0)),
        ("failover-not-completed",),
        "FATAL `Exiting because log truncation is not allowed for partition`, with unclean election off.",
        "fix under KAFKA-7414, no commit names KAFKA-3410; 0ed5b8b2403, c5ef614bbf1; cf. Yolean/kubernetes-kafka#98",
    ),
    KnownBug(
        "KAFKA-6361",
        "Logs diverge after two elections in quick succession",
        (0, 11, 0),
        ((2, 0, 0),),
        ("epoch-history-diverged", "replica-bytes-diverged", "committed-data-lost"),
        "The leader answers for an epoch that it never had with a later one's start; the follower finds nothing to "
        "truncate, and leader-epoch-checkpoints disagree on an epoch's start.",
        "KIP-279; 9679c44d2b5",
    ),
    KnownBug(
        "KAFKA-6880",
        "A fetch from a replica that still lives in an older epoch is not fenced",
        None,
        ((2, 1, 0),),
        ("stale-epoch-accepted", "hw-above-isr", "committed-data-lost"),
        "Fetches of a follower succeed although its last become-follower line has an older epoch than the leader's.",
        "KIP-320; fix under KAFKA-7395; bcef30d614b; no commit names KAFKA-6880",
    ),
    KnownBug(
        "KAFKA-7104",
        "A follower's fetcher dies of a log start offset that is beyond the records that came with it",
        (1, 0, 0),
        ((1, 0, 2), (1, 1, 1), (2, 0, 0)),
        ("failover-not-completed",),
        "ERROR `Error due to` of a replica fetcher, `Cannot increment the log start offset to .. since it is larger "
        "than the high watermark`; the thread never comes back.",
        "f4d231ae455, c3abf303699, 3673ce87572; the leader's state is read twice from 1.0.0 on (KAFKA-5758)",
    ),
    KnownBug(
        "KAFKA-7128",
        "A replica joins the ISR before it reached the leader's epoch",
        None,
        ((2, 0, 1), (2, 1, 0)),
        ("isr-join-behind-hw", "committed-data-lost"),
        "An ISR expansion names a replica whose position is below the start offset of the leader's epoch.",
        "7a352117c20, 70c51633f2f",
    ),
    KnownBug(
        "KAFKA-7164",
        "A follower that missed epochs of the same leader does not truncate",
        None,
        ((2, 0, 1), (2, 1, 0)),
        ("epoch-history-diverged", "replica-bytes-diverged"),
        "The epoch grows by more than one, the leader is the same, and no truncation or fetcher restart follows.",
        "5152c80129c, 69283b4038a",
    ),
    KnownBug(
        "KAFKA-7415",
        "A new leader does not note its epoch until it appends, and cannot say where to truncate",
        (0, 11, 0),
        ((2, 0, 1), (2, 1, 0)),
        ("epoch-history-diverged", "replica-bytes-diverged"),
        "Back-to-back elections without records in between; a follower's epoch is missing in its leader's checkpoint.",
        "18b25773b11, f2dd6aa2698; broken since leader epochs exist (KIP-101), inferred",
    ),
    KnownBug(
        "KAFKA-7897",
        "Partitions of the old message format truncate much more than they must",
        (2, 0, 1),
        ((2, 1, 1), (2, 2, 0)),
        ("truncation-below-hw", "committed-data-lost"),
        "After an election a follower with message format v0 or v1 truncates far below its high watermark.",
        "e1522e94214, 29802ecb35f; begins with the epoch cache entry on election of KAFKA-7415, inferred",
    ),
    KnownBug(
        "KAFKA-10706",
        "Truncation never completes after elections without records between them",
        (2, 0, 1),
        ((2, 6, 1), (2, 7, 0)),
        ("failover-not-completed", "epoch-history-diverged"),
        "A follower asks for the end of the same epoch over and over; its checkpoint keeps an epoch that conflicts.",
        "0b7c490a6cb, f641ecd7eda; epochs without records are noted since KAFKA-7415, inferred",
    ),
    KnownBug(
        "KAFKA-6653",
        "A check of a waiting request is lost when two threads meet at it",
        (0, 11, 0),
        ((1, 1, 0),),
        ("late-completion",),
        "The high watermark is at the required offset, yet the answer comes near the timeout or with the next event.",
        "821ec7bc983; the try-lock came with 0.11",
    ),
    KnownBug(
        "KAFKA-6937",
        "Fetches of in-sync replicas wait while the replication throttle is used up",
        (0, 10, 1),
        ((1, 0, 2), (1, 1, 1), (2, 0, 0)),
        ("late-completion",),
        "With throttled replicas set, fetches of ISR members wait for replica.fetch.wait.max.ms.",
        "274bb7af895, 552adddadd8, 345db596502; throttles came with 0.10.1 (KIP-73)",
    ),
    KnownBug(
        "KAFKA-7697",
        "Request handlers deadlock between an append and a waiting fetch",
        (2, 1, 0),
        ((2, 1, 1), (2, 2, 0)),
        ("late-completion", "failover-not-completed"),
        "A broker stops answering altogether while its process lives; the rest shrink it out of their ISRs.",
        "604716f9fc6, 0d4cf64af35; 2.1.0 is the first whose waiting fetches take the partition's lock",
    ),
    KnownBug(
        "KAFKA-8400",
        "A fetch that fails makes the leader forget the follower's position",
        None,
        ((2, 4, 0),),
        ("late-completion", "isr-shrink-late"),
        "After an error in a follower's fetch its position is -1 until the next one, and the high watermark stands.",
        "0e95c9f3a82",
    ),
    KnownBug(
        "KAFKA-9196",
        "After a roll the high watermark points into the old segment",
        None,
        ((2, 4, 0),),
        ("read-above-isolation",),
        "A consumer reads past the high watermark just after a segment was rolled at it.",
        "221d66774ce",
    ),
    KnownBug(
        "KAFKA-9198",
        "Requests that wait at a replica which is stopped wait for their timeout",
        None,
        ((2, 4, 0),),
        ("late-completion",),
        "StopReplica of a reassigned partition, and produces of it end with REQUEST_TIMED_OUT much later.",
        "876eada04ed",
    ),
    KnownBug(
        "KAFKA-9254",
        "A dynamic change of a broker's defaults drops what topics override",
        (1, 1, 0),
        ((2, 4, 1), (2, 5, 0)),
        ("ack-under-min-isr", "unclean-election"),
        "After two dynamic changes of broker defaults a topic behaves by these: another min.insync.replicas, another "
        "retention.",
        "ca4eaa9255f, 790a39e353d; DynamicLogConfig came with 1.1.0",
    ),
    KnownBug(
        "KAFKA-9491",
        "A replica that leads right after it joined has a high watermark below its own log start",
        (2, 4, 0),
        ((2, 4, 1), (2, 5, 0)),
        ("late-completion", "failover-not-completed"),
        "ERROR `Error processing fetch` of a leader, OffsetOutOfRangeException for an offset below its log start.",
        "af1621f8139; 2.4.0 as the first release of the lookup that throws, inferred",
    ),
    KnownBug(
        "KAFKA-9807",
        "A read_committed fetch can see records beyond the last stable offset",
        (2, 4, 0),
        ((2, 5, 0),),
        ("read-above-isolation",),
        "A read_committed answer holds records past its own lastStableOffset while the high watermark moves.",
        "6e7ebfa9db3; the two reads of the high watermark are in 2.4.1, earlier releases do it otherwise",
    ),
    KnownBug(
        "KAFKA-9835",
        "A read at the end of the log can return what is being appended",
        (1, 1, 0),
        ((2, 5, 1), (2, 6, 0)),
        ("read-above-isolation",),
        "A consumer's answer holds more than the high watermark allowed, while a produce was appended.",
        "bad93b775d1, 778b1e3f543; the size is read twice from 1.1.0 on",
    ),
    KnownBug(
        "KAFKA-13091",
        "A committed shrink of the ISR does not move the high watermark",
        (2, 7, 0),
        ((3, 1, 0),),
        ("late-completion",),
        "`ISR updated` to fewer replicas, all of which have the records, and no answer until the next append or fetch "
        "from an offset that moved.",
        "26ee78f3923; AlterIsr (KIP-497) came with 2.7",
    ),
    KnownBug(
        "KAFKA-13141",
        "The leader takes the offset of a diverging fetch for the follower's position",
        (2, 7, 0),
        ((2, 7, 2), (2, 8, 1), (3, 0, 0)),
        ("hw-above-isr", "ack-before-commit", "committed-data-lost"),
        "A fetch answered with divergingEpoch, and `Recorded replica .. log end offset` for the same fetch.",
        "c69d5f30f9e, 7e4a315963a, 047608fe5e6",
    ),
    KnownBug(
        "KAFKA-13790",
        "A leader's state that is sent again within an epoch starts the epoch anew",
        (3, 0, 0),
        ((3, 3, 0),),
        ("late-completion", "isr-shrink-late", "illegal-state-transition"),
        "KRaft only: `starts at leader epoch` twice for one epoch, with a larger start offset; the times at which "
        "followers were last caught up begin anew.",
        "b485f92647f; unconditional in Partition.makeLeader of 3.0.0 and 3.2.0",
    ),
    KnownBug(
        "KAFKA-13916",
        "A fenced or shutting-down replica joins the ISR",
        (2, 8, 0),
        ((3, 3, 0),),
        ("isr-join-behind-hw", "committed-data-lost", "leader-outside-isr"),
        "KRaft only: an ISR expansion names a broker that the controller has fenced, until it unfences it.",
        "KIP-841; 151ca12a56c, f83d95d9a28; 2.8.0 as KRaft's first release, inferred",
    ),
    KnownBug(
        "KAFKA-14334",
        "Consumers that wait at a follower are not woken as its high watermark rises",
        (2, 4, 0),
        ((3, 3, 2), (3, 4, 0)),
        ("late-completion",),
        "Consumer fetches at a follower last as long as their maximum wait although the follower got records.",
        "a310cc8e774, dbf5826cd54; fetching from followers (KIP-392) came with 2.4",
    ),
    KnownBug(
        "KAFKA-14617",
        "A replica joins the ISR on a fetch of an earlier life of its broker",
        (2, 8, 0),
        ((3, 5, 0),),
        ("isr-join-behind-hw", "committed-data-lost"),
        "KRaft only: a broker restarts uncleanly with a shorter log while an ISR expansion that names it is in flight.",
        "KIP-903; 8c88cdb7186, d5e216d6183; 2.8.0 as KRaft's first release, inferred",
    ),
    KnownBug(
        "KAFKA-14704",
        "A follower takes the high watermark of an answer that tells it to truncate",
        (2, 8, 0),
        ((3, 4, 1), (3, 5, 0)),
        ("truncation-below-hw", "follower-hw-above-leader", "hw-regression", "read-above-isolation"),
        "WARN `Truncating .. below high watermark` with WARN `Non-monotonic update of high watermark`, back to where "
        "the log was cut.",
        "649d5497442, bd32d98bd7c; truncation on fetch (KAFKA-10322) came with 2.8",
    ),
    KnownBug(
        "KAFKA-15021",
        "A replica that is shutting down holds the high watermark back",
        (3, 3, 0),
        ((3, 6, 0),),
        ("late-completion",),
        "KRaft only: no progress for about replica.lag.time.max.ms after a controlled shutdown took a replica out of "
        "the ISR.",
        "8ad0ed3e618; 3.3.0 as the release of KIP-841, inferred",
    ),
    KnownBug(
        "KAFKA-15221",
        "A restarted follower joins the ISR on a race between its two lives' fetches",
        (3, 5, 0),
        ((3, 7, 0),),
        ("isr-join-behind-hw", "stale-epoch-accepted"),
        "KRaft only: an ISR expansion right as a broker comes back, before it caught up.",
        "d46781d4db3; a hole in the check of KIP-903, hence from 3.5.0",
    ),
    KnownBug(
        "KAFKA-15353",
        "An AlterPartition request that is sent again asks for an empty ISR",
        (3, 5, 0),
        ((3, 5, 2), (3, 6, 0)),
        ("leader-outside-isr", "illegal-state-transition"),
        "`ISR updated` to nothing after a retry of AlterPartition below version 3.",
        "6f55160175a, bee6c41ff87; newIsrWithEpochs first built in 3.5.0",
    ),
    KnownBug(
        "KAFKA-15583",
        "Records are committed while fewer replicas than min.insync.replicas are in sync",
        None,
        ((3, 7, 0),),
        ("committed-data-lost", "unclean-election"),
        "`High watermark updated` while the ISR is smaller than min.insync.replicas; then its last member restarts "
        "uncleanly and leads from a lower offset.",
        "KIP-966; edc7e10a745",
    ),
    KnownBug(
        "KAFKA-16452",
        "A high watermark outside the local log can no longer be moved",
        (2, 4, 0),
        ((3, 8, 0),),
        ("late-completion", "failover-not-completed"),
        "A leader that was elected without a high watermark checkpoint answers fetches with OFFSET_OUT_OF_RANGE "
        "errors of its own, and produces time out.",
        "524ad1e14b1; the lookup that throws is in Log from 2.4.0 on",
    ),
)


def applies(bug: KnownBug, version: Version) -> bool:
    """Whether a release has the bug."""
    if bug.broken_from is not None and version < bug.broken_from:
        return False
    branch = version[:2]
    same_branch = [fixed for fixed in bug.fixed_in if fixed[:2] == branch]
    if same_branch:
        return version < min(same_branch)
    return branch < max(bug.fixed_in)[:2]


def bugs_of(rule_id: str, version: str | None) -> tuple[KnownBug, ...]:
    """The bugs that a version surely has and that can explain a case of a rule, in order of their JIRA numbers.

    Args:
        version: as logged; one of no known release is not known to have any.
    """
    bugs = (bug for bug in KNOWN_BUGS if rule_id in bug.rule_ids and value_of(version, partial(applies, bug)))
    return tuple(sorted(bugs, key=lambda bug: int(bug.jira.rpartition("-")[2])))
