"""Which fields the bodies of requests and responses have, by API and version: a body with others is not read.

A name that is not here may be a field that a reader looks for under its old name, and a name that lacks makes a value
that the line does not have. So a body has to consist of the fields of its version, no more and no less; a release that
adds a field is a line here. Only APIs whose bodies become columns or partitions are listed.

A shape is written as fields ``name:versions{fields of its elements}``: versions as message definitions have them, all
where none are given; ``name?`` is a tagged field, printed only where it is not its default; ``a|b`` is one field under
two names.

Source: the message definitions of Kafka's clients, 2.8 to 4.3 (``clients/src/main/resources/common/message``), and
``RequestConvertToJson``, which prints the size of records in their place. Struct bodies before 2.8 are brought under
these names by `text_shapes`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final, NamedTuple

Json = dict[str, Any]

_LEADER: Final = "currentLeader?{leaderId leaderEpoch}"
_NODES: Final = "nodeEndpoints?{nodeId host port rack}"
_ANSWERED_TOPICS: Final = "topics{name:0-9 topicId:10+ partitions{partitionIndex errorCode}}"
_GROUP_RESPONSE: Final = "throttleTimeMs:1+ errorCode"
_TRANSACTION: Final = "transactionalId producerId producerEpoch"
_STATES: Final = (
    "{topicName:0-1 partitionIndex controllerEpoch leader leaderEpoch isr partitionEpoch|zkVersion replicas "
    "addingReplicas:3+ removingReplicas:3+ isNew:1+ leaderRecoveryState:6+}"
)
_ALTERED: Final = (
    "topics{topicName|name:0-1 topicId:2+ partitions{partitionIndex leaderEpoch newIsr:0-2 "
    "newIsrWithEpochs:3+{brokerId brokerEpoch} leaderRecoveryState:1+ partitionEpoch|currentIsrVersion}}"
)
_ALTERED_ANSWER: Final = (
    "throttleTimeMs errorCode topics{topicName|name:0-1 topicId:2+ partitions{partitionIndex errorCode leaderId "
    "leaderEpoch isr leaderRecoveryState:1+ partitionEpoch|currentIsrVersion}}"
)
_ADDED: Final = (
    "transactions:4+{transactionalId producerId producerEpoch verifyOnly topics{name partitions}} "
    "v3AndBelowTransactionalId|transactionalId:0-3 v3AndBelowProducerId|producerId:0-3 "
    "v3AndBelowProducerEpoch|producerEpoch:0-3 v3AndBelowTopics|topics:0-3{name partitions}"
)
_ADDED_ANSWER: Final = (
    "throttleTimeMs errorCode:4+ resultsByTransaction:4+{transactionalId "
    "topicResults{name resultsByPartition{partitionIndex partitionErrorCode}}} "
    "resultsByTopicV3AndBelow|results:0-3{name resultsByPartition|results{partitionIndex partitionErrorCode|errorCode}}"
)

#: Request and response by API.
_BODIES: Final[dict[str, tuple[str, str]]] = {
    "PRODUCE": (
        "transactionalId:3+ acks timeoutMs topicData{name:0-12 topicId:13+ partitionData{index "
        "recordsSizeInBytes|records}}",
        "responses{name:0-12 topicId:13+ partitionResponses{index errorCode baseOffset logAppendTimeMs:2+ "
        "logStartOffset:5+ recordErrors:8+{batchIndex batchIndexErrorMessage} errorMessage:8+ "
        f"{_LEADER}}}}} throttleTimeMs:1+ {_NODES}",
    ),
    "FETCH": (
        "clusterId? replicaId:0-14 replicaState?{replicaId replicaEpoch} maxWaitMs minBytes maxBytes:3+ "
        "isolationLevel:4+ sessionId:7+ sessionEpoch:7+ topics{topic:0-12 topicId:13+ partitions{partition "
        "currentLeaderEpoch:9+ fetchOffset lastFetchedEpoch:12+ logStartOffset:5+ partitionMaxBytes "
        "replicaDirectoryId? highWatermark?}} forgottenTopicsData:7+{topic:0-12 topicId:13+ partitions} rackId:11+",
        "throttleTimeMs:1+ errorCode:7+ sessionId:7+ responses{topic:0-12 topicId:13+ partitions|partitionResponses{"
        "partitionIndex|partition errorCode highWatermark lastStableOffset:4+ logStartOffset:5+ "
        f"divergingEpoch?{{epoch endOffset}} {_LEADER} snapshotId?{{endOffset epoch}} "
        "abortedTransactions:4+{producerId firstOffset} preferredReadReplica:11+ "
        f"recordsSizeInBytes|recordSetSizeInBytes|records|recordSet}}}} {_NODES}",
    ),
    "LEADER_AND_ISR": (
        "controllerId isKRaftController:7+ controllerEpoch brokerEpoch:2+ type:5+ "
        f"ungroupedPartitionStates:0-1{_STATES} topicStates:2+{{topicName topicId:5+ partitionStates{_STATES}}} "
        "liveLeaders{brokerId|id hostName|host port}",
        "errorCode partitionErrors:0-4{topicName partitionIndex errorCode} "
        "topics:5+{topicId partitionErrors{partitionIndex errorCode}}",
    ),
    "STOP_REPLICA": (
        "controllerId isKRaftController:4+ controllerEpoch brokerEpoch:1+ deletePartitions:0-2 "
        "ungroupedPartitions:0{topicName partitionIndex} topics:1-2{name partitionIndexes} "
        "topicStates:3+{topicName partitionStates{partitionIndex leaderEpoch deletePartition}}",
        "errorCode partitionErrors{topicName partitionIndex errorCode}",
    ),
    "ALTER_ISR": (f"brokerId brokerEpoch {_ALTERED}", _ALTERED_ANSWER),
    "ALTER_PARTITION": (f"brokerId brokerEpoch {_ALTERED}", _ALTERED_ANSWER),
    "OFFSET_FOR_LEADER_EPOCH": (
        "replicaId:3+ topics{topic partitions{partition currentLeaderEpoch:2+ leaderEpoch}}",
        "throttleTimeMs:2+ topics{topic partitions{errorCode partition leaderEpoch:1+ endOffset}}",
    ),
    "WRITE_TXN_MARKERS": (
        "markers{producerId producerEpoch transactionResult topics{name partitionIndexes} coordinatorEpoch "
        "transactionVersion:2+}",
        "markers{producerId topics{name partitions{partitionIndex errorCode}}}",
    ),
    "OFFSET_COMMIT": (
        "groupId generationIdOrMemberEpoch|generationId:1+ memberId:1+ groupInstanceId:7+ retentionTimeMs:2-4 "
        "topics{name:0-9 topicId:10+ partitions{partitionIndex committedOffset committedLeaderEpoch:6+ "
        "commitTimestamp:1 committedMetadata}}",
        f"throttleTimeMs:3+ {_ANSWERED_TOPICS}",
    ),
    "TXN_OFFSET_COMMIT": (
        "transactionalId groupId producerId producerEpoch generationId|generationIdOrMemberEpoch:3+ memberId:3+ "
        "groupInstanceId:3+ topics{name partitions{partitionIndex committedOffset committedLeaderEpoch:2+ "
        "committedMetadata}}",
        "throttleTimeMs topics{name partitions{partitionIndex errorCode}}",
    ),
    "JOIN_GROUP": (
        "groupId sessionTimeoutMs rebalanceTimeoutMs:1+ memberId groupInstanceId:5+ protocolType "
        "protocols{name metadata} reason:8+",
        "throttleTimeMs:2+ errorCode generationId protocolType:7+ protocolName leader skipAssignment:9+ memberId "
        "members{memberId groupInstanceId:5+ metadata}",
    ),
    "SYNC_GROUP": (
        "groupId generationId memberId groupInstanceId:3+ protocolType:5+ protocolName:5+ "
        "assignments{memberId assignment}",
        f"{_GROUP_RESPONSE} protocolType:5+ protocolName:5+ assignment",
    ),
    "LEAVE_GROUP": (
        "groupId memberId:0-2 members:3+{memberId groupInstanceId reason:5+}",
        f"{_GROUP_RESPONSE} members:3+{{memberId groupInstanceId errorCode}}",
    ),
    "HEARTBEAT": ("groupId generationId memberId groupInstanceId:3+", _GROUP_RESPONSE),
    "CONSUMER_GROUP_HEARTBEAT": (
        "groupId memberId memberEpoch instanceId rackId rebalanceTimeoutMs subscribedTopicNames "
        "subscribedTopicRegex:1+ serverAssignor topicPartitions{topicId partitions}",
        "throttleTimeMs errorCode errorMessage memberId memberEpoch heartbeatIntervalMs "
        "assignment{topicPartitions{topicId partitions}}",
    ),
    "OFFSET_DELETE": (
        "groupId topics{name partitions{partitionIndex}}",
        "errorCode throttleTimeMs topics{name partitions{partitionIndex errorCode}}",
    ),
    "INIT_PRODUCER_ID": (
        "transactionalId transactionTimeoutMs producerId:3+ producerEpoch:3+ enable2Pc:6+ keepPreparedTxn:6+",
        "throttleTimeMs errorCode producerId producerEpoch ongoingTxnProducerId:6+ ongoingTxnProducerEpoch:6+",
    ),
    "ADD_PARTITIONS_TO_TXN": (_ADDED, _ADDED_ANSWER),
    "ADD_OFFSETS_TO_TXN": (f"{_TRANSACTION} groupId", "throttleTimeMs errorCode"),
    "END_TXN": (f"{_TRANSACTION} committed", "throttleTimeMs errorCode producerId:5+ producerEpoch:5+"),
    "METADATA": (
        "topics{topicId:10+ name} allowAutoTopicCreation:4+ includeClusterAuthorizedOperations:8-10 "
        "includeTopicAuthorizedOperations:8+",
        "throttleTimeMs:3+ brokers{nodeId host port rack:1+} clusterId:2+ controllerId:1+ topics{errorCode name "
        "topicId:10+ isInternal:1+ partitions{errorCode partitionIndex leaderId leaderEpoch:7+ replicaNodes isrNodes "
        "offlineReplicas:5+} topicAuthorizedOperations:8+} clusterAuthorizedOperations:8-10 errorCode:13+",
    ),
    "CREATE_TOPICS": (
        "topics{name numPartitions replicationFactor assignments{partitionIndex brokerIds} configs{name value}} "
        "timeoutMs validateOnly:1+",
        "throttleTimeMs:2+ topics{name topicId:7+ errorCode errorMessage:1+ topicConfigErrorCode?:5+ numPartitions:5+ "
        "replicationFactor:5+ configs:5+{name value readOnly configSource isSensitive}}",
    ),
}
#: Orders of fields remembered by shape: Kafka has one, with and without tagged fields.
_SEEN_MAX: Final = 100
#: APIs whose bodies are read.
READ_APIS: Final = frozenset(_BODIES)

_FIELD: Final = re.compile(r"([\w|]+)(\?)?(?::(\d+)(?:-(\d+)|(\+))?)?(\{)?")


class UnknownShape(ValueError):
    """A body that does not consist of the fields of its version."""


class _Shape(NamedTuple):
    """Fields of a struct in one version.

    Attributes:
        required: names of fields that are always there, each with its other names.
        known: all names.
        inner: fields whose elements are structs, with their shape.
        seen: sequences of names that were found right.
    """

    required: tuple[tuple[str, ...], ...]
    known: frozenset[str]
    inner: tuple[tuple[str, _Shape], ...]
    seen: set[tuple[str, ...]]


def check_request(api: str, version: int, body: Json) -> None:
    """Raise `UnknownShape` if a request of a listed API does not have the fields of its version."""
    if api in _BODIES:
        _check(body, _shape(api, 0, version))


def check_response(api: str, version: int, body: Json) -> None:
    """As `check_request`, for a response."""
    if api in _BODIES:
        _check(body, _shape(api, 1, version))


def require_integers(node: Json) -> None:
    """Raise `UnknownShape` if a struct has a number with a fraction, or beyond 64 bits: Kafka's are integers."""
    if float in map(type, node.values()):
        raise UnknownShape("a number that is no integer")


def _check(node: Json, shape: _Shape) -> None:
    require_integers(node)
    names = tuple(node)
    if names not in shape.seen:
        for name in names:
            if name not in shape.known:
                raise UnknownShape(f"unknown field {name}")
        for alternatives in shape.required:
            if sum(name in node for name in alternatives) != 1:
                raise UnknownShape(f"not one field {alternatives[0]}")
        if len(shape.seen) < _SEEN_MAX:
            shape.seen.add(names)
    for name, inner in shape.inner:
        value = node.get(name)
        if isinstance(value, list):
            for element in value:
                _check(element, inner)
        elif isinstance(value, dict):
            _check(value, inner)


@lru_cache(maxsize=1_000)
def _shape(api: str, side: int, version: int) -> _Shape:
    return _parse(_BODIES[api][side], 0, version)[0]


def _parse(text: str, at: int, version: int) -> tuple[_Shape, int]:
    """A shape from its text, which ends there or with a brace; and where it ends."""
    required: list[tuple[str, ...]] = []
    known: set[str] = set()
    inner: list[tuple[str, _Shape]] = []
    while at < len(text) and text[at] != "}":
        match = _FIELD.match(text, at)
        if match is None:
            raise AssertionError(f"a shape that cannot be read: {text[at : at + 40]}")
        names, tagged, first, last, onwards, has_inner = match.groups()
        at = match.end()
        elements = None
        if has_inner:
            elements, at = _parse(text, at, version)
            at += 1
        lowest = int(first or 0)
        highest = int(last) if last else lowest if first and not onwards else version
        if lowest <= version <= highest:
            alternatives = tuple(names.split("|"))
            known.update(alternatives)
            if not tagged:
                required.append(alternatives)
            if elements is not None:
                inner += [(name, elements) for name in alternatives]
        at += text.startswith(" ", at)
    return _Shape(tuple(required), frozenset(known), tuple(inner), set()), at
