"""Safety properties of the public TLA+ specifications of Kafka, and how far logs can show each.

A name is that of the specification. What a property means is said in our words, in terms of what a log can hold. Only
what a specification states as an invariant or theorem is here; liveness properties are not, and no property that no
public specification has. `SPECIFICATIONS` says where each stands and at which commit it was read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Reach = Literal["checkable", "partly", "no"]

#: What evidence is there; the last is that of the data directories beside whatever tier.
EVIDENCE: Final = ("T0", "T1", "T2", "T3", "data")

_REACH: Final[dict[str, Reach]] = {"c": "checkable", "p": "partly", "n": "no"}


@dataclass(frozen=True)
class Specification:
    """A repository of specifications.

    Attributes:
        repository: on GitHub.
        commit: what was read.
        about: what it models.
    """

    repository: str
    commit: str
    about: str


@dataclass(frozen=True)
class SafetyProperty:
    """One property of one module.

    Attributes:
        name: as the module has it.
        specification: key of `SPECIFICATIONS`.
        module: path within the repository, without ``.tla``.
        meaning: one sentence.
        reach: how far it can be checked, for each of `EVIDENCE`.
        rule_ids: rules that check it or a consequence of it.
        note: what the logs lack, or how they show it.
    """

    name: str
    specification: str
    module: str
    meaning: str
    reach: tuple[Reach, ...]
    rule_ids: tuple[str, ...]
    note: str

    @property
    def verdict(self) -> Reach:
        """The furthest that any evidence goes."""
        order: tuple[Reach, ...] = ("checkable", "partly", "no")
        return next(reach for reach in order if reach in self.reach)


SPECIFICATIONS: Final[dict[str, Specification]] = {
    "hachikuji": Specification(
        "hachikuji/kafka-specification",
        "d68782b5772f",
        "replication of one partition, in layers: KafkaTruncateToHighWatermark, Kip101, Kip279, Kip320",
    ),
    "vanlightly": Specification(
        "Vanlightly/kafka-tlaplus",
        "823615e8a096",
        "replication with a KRaft controller (3.5 and KIP-966), the metadata quorum (KIP-853, KIP-996), transactions",
    ),
    "divijvaidya": Specification(
        "divijvaidya/kafka-specification",
        "e9334cb2f71c",
        "a fork of the first with tiered storage (KIP-405)",
    ),
    "ocadaruma": Specification(
        "ocadaruma/kafka-spec",
        "d0d48b464bba",
        "an unclean election that chooses the longest log",
    ),
}

_V35 = "kafka_data_replication/kraft/v3.5/v3_5_properties"
_KIP_966 = "kafka_data_replication/kraft/kip-966/kip_966_properties"
_KIP_853 = "kraft/kip_853/kraft_kip_853_properties"
_KIP_996 = "kraft/kip_996/kraft_kip_996_properties"
_TRANSACTIONS = "transactions/diary/02_AddPartitionsToTxn/tlaplus/kafka_transactions"

_MODEL = "Shape of the model's own variables; of it only what a broker logs can be seen."
_QUORUM = "About the metadata quorum, which is not audited; its elections are in server.log."


def _of(
    specification: str, module: str, name: str, reach: str, meaning: str, note: str, *rule_ids: str
) -> SafetyProperty:
    return SafetyProperty(name, specification, module, meaning, tuple(_REACH[r] for r in reach), rule_ids, note)


SAFETY_PROPERTIES: Final[tuple[SafetyProperty, ...]] = (
    _of("hachikuji", "KafkaReplication", "TypeOk", "ppppp",
        "Epochs, leaders, ISRs, high watermarks and logs only take values that they can have.",
        _MODEL, "illegal-state-transition", "isr-outside-replicas"),
    _of("hachikuji", "KafkaReplication", "WeakIsr", "npppc",
        "Whoever takes itself for the leader has the same records below its high watermark as every replica that it "
        "takes for in sync.",
        "Positions from fetches; equal bytes only from segments, as of when they were copied.",
        "hw-above-isr", "ack-before-commit", "replica-bytes-diverged"),
    _of("hachikuji", "KafkaReplication", "StrongIsr", "npppc",
        "Whoever takes itself for the leader has the same records below its high watermark as every member of the ISR "
        "that the controller holds, so whichever of them leads next has all that was exposed.",
        "The controller's ISR comes from its log or from __cluster_metadata; the rest is as for WeakIsr.",
        "hw-above-isr", "committed-data-lost", "isr-join-behind-hw", "replica-bytes-diverged"),
    _of("hachikuji", "KafkaReplication", "LeaderInIsr", "ccccc",
        "The leader that the controller holds is a member of its ISR.",
        "State changes are in the logs at default levels.", "leader-outside-isr"),
    _of("hachikuji", "FiniteReplicatedLog", "TypeOk", "nnnnc",
        "A log has records at all offsets below its end and none beyond.",
        "Gaps are legal in compacted and transactional logs; segments tell them apart.", "replica-bytes-diverged"),
    _of("hachikuji", "IdSequence", "TypeOk", "ccccc",
        "Numbers handed out in sequence, such as leader epochs, grow one by one and are never given twice.",
        "Epochs are in state changes and leader-epoch-checkpoints.", "two-leaders-one-epoch", "epoch-history-diverged"),
    _of("hachikuji", "AsyncIsr", "TypeOk", "npppn",
        "Committed and pending ISRs, their versions and the positions of replicas take values that they can have.",
        _MODEL, "illegal-state-transition", "isr-outside-replicas"),
    _of("hachikuji", "AsyncIsr", "ValidHighWatermark", "npccp",
        "Every member of the ISR that the controller holds has reached the leader's high watermark, while changes of "
        "the ISR are on their way.",
        "Proposals of the leader show at DEBUG; below T2 the ISR that counts is known only once it is committed.",
        "hw-above-isr", "isr-join-behind-hw"),
    _of("vanlightly", _V35, "TypeOK", "ppppp",
        "Registrations, partition states and fetchers only take values that they can have.",
        _MODEL, "illegal-state-transition"),
    _of("vanlightly", _V35, "ValidBrokerState", "ppppp",
        "A broker that runs has registered.",
        "Registration and start are logged by broker and controller.", "illegal-state-transition"),
    _of("vanlightly", _V35, "ValidReplicaState", "ppppc",
        "Who leads by its own state is the leader of its metadata, and its log has no gaps below its end.",
        "Roles from state changes; the log from segments.", "illegal-state-transition", "two-leaders-one-epoch"),
    _of("vanlightly", _V35, "ValidFetcherState", "ppppn",
        "A follower fetches a partition from one broker at a time, a leader from none.",
        "Fetchers' additions and removals are logged; a line between two of them may be missing.",
        "illegal-state-transition"),
    _of("vanlightly", _V35, "ValidControllerState", "ppppp",
        "No fenced broker is in an ISR of more than one, and no ISR is empty.",
        "Fencing is in the controller's log or in __cluster_metadata, so it needs the controllers' files.",
        "isr-join-behind-hw", "leader-outside-isr", "illegal-state-transition"),
    _of("vanlightly", _V35, "ReplicationQuorumSupersetProperty", "nnccn",
        "The replicas that a current leader waits for include all that the controller holds for in sync.",
        "Pending changes show at DEBUG; their effect on the high watermark from T1 on.",
        "hw-above-isr", "ack-before-commit"),
    _of("vanlightly", _V35, "LeaderCandidateCompletenessProperty", "npppp",
        "Every running member of the ISR has all committed records.",
        "Committed is what was acknowledged or seen as a high watermark; a replica's end is known as of its fetches.",
        "isr-join-behind-hw", "hw-above-isr", "committed-data-lost"),
    _of("vanlightly", _V35, "LeaderCompletenessProperty", "pcccc",
        "A running leader has all committed records, and every one that was positively acknowledged.",
        "Acknowledged offsets from responses, the leader's start offset from its state change; at T0 only high "
        "watermarks that were logged by chance. An acknowledged record that was never written shows by other means.",
        "committed-data-lost", "unclean-election", "acked-as-duplicate-of-another-batch", "error-yet-committed"),
    _of("vanlightly", _V35, "LogMatchingProperty", "ppppc",
        "Below both of their high watermarks two replicas have the same record at each offset.",
        "Epoch histories from logs and checkpoints; records from segments.",
        "replica-bytes-diverged", "epoch-history-diverged"),
    _of("vanlightly", _V35, "MetadataLogMatchingProperty", "nnnnc",
        "A broker's metadata log is a prefix of the controller's.",
        "Needs __cluster_metadata of both; no rule compares them record by record."),
    _of("vanlightly", _V35, "NoCommittedRecordLostGlobally", "pcccc",
        "A record that was acknowledged exists on at least one broker.",
        "Lost at the leader is shown from logs; lost everywhere needs the segments of all replicas.",
        "committed-data-lost", "acked-as-duplicate-of-another-batch"),
    _of("vanlightly", _V35, "ConsistentReadProperty", "npppp",
        "What was read at an offset stays there, unchanged, on every later leader.",
        "A fetch's answer shows offsets and not records: that the offset is gone shows, that it changed mostly not.",
        "committed-data-lost", "read-above-isolation", "hw-regression"),
    _of("vanlightly", _KIP_966, "ValidControllerState", "ppppp",
        "No fenced broker is in an ISR; an ISR may be empty.",
        "As in 3.5; it holds where eligible leader replicas are on.", "illegal-state-transition", "isr-join-behind-hw"),
    _of("vanlightly", _KIP_966, "ValidControllerIsrAndElr", "ppppc",
        "ISR and eligible leader replicas are disjoint subsets of the replicas, and none are eligible while the ISR "
        "has min.insync.replicas members.",
        "The ISR is logged; eligible replicas are in the records of __cluster_metadata.", "isr-outside-replicas"),
    _of("vanlightly", _KIP_966, "ReplicationQuorumSupersetProperty", "nnppp",
        "While the leader's ISR has min.insync.replicas members, it waits for all that the controller holds for in "
        "sync or eligible.",
        "Eligible replicas as for ValidControllerIsrAndElr.", "hw-above-isr", "ack-before-commit"),
    _of("vanlightly", _KIP_966, "LeaderCandidateCompletenessProperty", "npppp",
        "Every running replica that is in sync or eligible has all committed records.",
        "Eligible replicas do not fetch as such; their ends show as they come back.",
        "isr-join-behind-hw", "committed-data-lost"),
    _of("vanlightly", _KIP_966, "MinIsrRecoveryQuorum", "nnnnp",
        "Where neither ISR nor eligible replicas are left, as many last known ones are remembered as "
        "min.insync.replicas asks for.",
        "Only in the records of __cluster_metadata; no rule checks it."),
    _of("vanlightly", _KIP_853, "NoIllegalState", "ppppn",
        "No server of the quorum reaches a state that the protocol excludes.", _QUORUM),
    _of("vanlightly", _KIP_853, "NoLogDivergence", "nnnnc",
        "Below both of their high watermarks two servers have the same metadata records.",
        "Needs __cluster_metadata of both servers; the metadata quorum is not audited."),
    _of("vanlightly", _KIP_853, "StatesMatchRoles", "ppppn",
        "Observers are only in observers' states, and who is unattached knows no leader.", _QUORUM),
    _of("vanlightly", _KIP_853, "NeverTwoLeadersInSameEpoch", "ccccc",
        "No two servers follow different leaders in one epoch.",
        "Of the quorum, not audited; the same of partitions is checked.", "two-leaders-one-epoch"),
    _of("vanlightly", _KIP_853, "LeaderHasAllAckedValues", "nnnnp",
        "The newest leader of the quorum has every value that was acknowledged.", _QUORUM),
    _of("vanlightly", _KIP_853, "AckedValueNotLost", "nnnnp",
        "An acknowledged value is on at least one voter that works.", _QUORUM),
    _of("vanlightly", _KIP_853, "ValidVotesRecv", "ppppn",
        "Only a candidate has received votes.", _QUORUM),
    _of("vanlightly", _KIP_996, "NoIllegalState", "ppppn",
        "No server of the quorum reaches a state that the protocol excludes, with pre-votes too.", _QUORUM),
    _of("vanlightly", _KIP_996, "LogMatching", "nnnnc",
        "Below both of their high watermarks two servers have the same metadata records.",
        "Needs __cluster_metadata of both servers; the metadata quorum is not audited."),
    _of("vanlightly", _KIP_996, "ElectionSafety", "ccccc",
        "No two servers follow different leaders in one epoch.",
        "Of the quorum, not audited; the same of partitions is checked.", "two-leaders-one-epoch"),
    _of("vanlightly", _KIP_996, "LeaderCompleteness", "nnnnp",
        "The newest leader of the quorum has every value that was acknowledged.", _QUORUM),
    _of("vanlightly", _KIP_996, "Durability", "nnnnp",
        "An acknowledged value is on at least one voter that works.", _QUORUM),
    _of("vanlightly", _KIP_996, "ValidRolesAndStates", "ppppn",
        "Roles and states fit each other: only leaders owe acknowledgements, only candidates and prospective ones "
        "have votes.", _QUORUM),
    _of("vanlightly", _TRANSACTIONS, "TypeOK", "npppn",
        "Requests and responses of transactions have the fields that they should.", _MODEL),
    _of("vanlightly", _TRANSACTIONS, "NoBadStateResponse", "npppn",
        "No client is told of a state that a coordinator must not reach.",
        "Errors are in the responses of coordinators' request logs; transactions are not audited."),
    _of("vanlightly", _TRANSACTIONS, "ClientsHaveDifferentProducerEpochs", "ncccn",
        "No two clients hold the same producer id with the same epoch.",
        "InitProducerId's responses name both, and the connection; transactions are not audited."),
    _of("vanlightly", _TRANSACTIONS, "TCsHaveDifferentEpochs", "ccccc",
        "No two brokers coordinate the same transactions in one epoch.",
        "A coordinator leads a partition of __transaction_state, and that is checked.", "two-leaders-one-epoch"),
    _of("divijvaidya", "KafkaReplication", "HighWatermarkRangeOk", "ppccc",
        "A replica's high watermark lies within its log.",
        "Both in state changes; checkpoints and segments show it at rest.",
        "checkpoint-ahead-of-log", "follower-hw-above-leader"),
    _of("divijvaidya", "KafkaReplication", "HighWatermarkOk", "ppccc",
        "The same: it stands for HighWatermarkRangeOk alone.",
        "As there.", "checkpoint-ahead-of-log", "follower-hw-above-leader"),
    _of("divijvaidya", "KafkaReplication", "LocalLogConsistencyOk", "npppc",
        "What the members of the ISR still have locally below the leader's high watermark is the same.",
        "As for StrongIsr.", "hw-above-isr", "replica-bytes-diverged"),
    _of("divijvaidya", "KafkaReplication", "OverlappingLogConsistencyOk", "nnnnn",
        "What a member of the ISR has both locally and in remote storage is the same.",
        "Remote storage is outside of logs and data directories."),
    _of("divijvaidya", "KafkaReplication", "LogContinuityOk", "nnnnn",
        "What a leader no longer has locally is in remote storage.",
        "Remote storage is outside of logs and data directories."),
    _of("divijvaidya", "KafkaReplication", "ArchiveCommittedRecords", "nnnnn",
        "Only committed records are copied to remote storage.",
        "Remote storage is outside of logs and data directories."),
    _of("ocadaruma", "UncleanLeaderElectionSafety", "CommittedMessagesNeverLost", "pcccc",
        "Whoever leads has every committed message.",
        "As for LeaderCompletenessProperty.", "committed-data-lost", "unclean-election"),
)  # fmt: skip
