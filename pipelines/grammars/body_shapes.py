"""Bodies of requests and responses as Structs, one per API and version: what a body has is declared, or it is not read.

A name that is not here may be a field that a reader looks for under its old name, and a name that lacks makes a value
that the line does not have. So a body has to consist of the fields of its version with values of their types, no more
and no less; a release that adds a field is a line here. Only APIs whose bodies become columns or partitions are listed.

A struct is written as its fields, ``name:versions=type``: versions as message definitions have them, all where none are
given; an integer where no type is. ``[...]`` is an array of structs, ``{...}`` one struct. ``name?`` is a tagged field,
printed only where it is not its default; ``name*`` may be null; ``a|b`` is one field, ``a`` here, that former releases
called ``b``: a body has all its former names, or none.

Source: the message definitions of Kafka's clients, 2.8 to 4.3 (``clients/src/main/resources/common/message``), and
``RequestConvertToJson``, which prints the size of records in their place. Struct bodies before 2.8 are brought under
these names by `text_bodies`.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, ValidationError, convert, defstruct
from msgspec.json import Decoder

Json = dict[str, Any]
#: A request or a response: a Struct whose fields have the names of the JSON form.
Body = Any

_LEADER: Final = "currentLeader?{leaderId leaderEpoch}"
_NODES: Final = "nodeEndpoints?[nodeId host=text port rack*=text]"
_ANSWERED_TOPICS: Final = "topics[name:0-9=text topicId:10+=text partitions[partitionIndex errorCode]]"
_GROUP_RESPONSE: Final = "throttleTimeMs:1+ errorCode"
_TRANSACTION: Final = "transactionalId=text producerId producerEpoch"
_RECORDS: Final = "recordsSizeInBytes|recordSetSizeInBytes? records|recordSet?=nothing"
_STATES: Final = (
    "[topicName:0-1=text partitionIndex controllerEpoch leader leaderEpoch isr=numbers partitionEpoch|zkVersion "
    "replicas=numbers addingReplicas:3+=numbers removingReplicas:3+=numbers isNew:1+=flag leaderRecoveryState:6+]"
)
_ALTERED: Final = (
    "topics[topicName|name:0-1=text topicId:2+=text partitions[partitionIndex leaderEpoch newIsr:0-2=numbers "
    "newIsrWithEpochs:3+[brokerId brokerEpoch] leaderRecoveryState:1+ partitionEpoch|currentIsrVersion]]"
)
_ALTERED_ANSWER: Final = (
    "throttleTimeMs errorCode topics[topicName|name:0-1=text topicId:2+=text partitions[partitionIndex errorCode "
    "leaderId leaderEpoch isr=numbers leaderRecoveryState:1+ partitionEpoch|currentIsrVersion]]"
)
#: KIP-890.
_ADDED: Final = (
    f"transactions:4+[{_TRANSACTION} verifyOnly=flag topics[name=text partitions=numbers]] "
    "v3AndBelowTransactionalId|transactionalId:0-3=text v3AndBelowProducerId|producerId:0-3 "
    "v3AndBelowProducerEpoch|producerEpoch:0-3 v3AndBelowTopics|topics:0-3[name=text partitions=numbers]"
)
_ADDED_ANSWER: Final = (
    "throttleTimeMs errorCode:4+ resultsByTransaction:4+[transactionalId=text "
    "topicResults[name=text resultsByPartition[partitionIndex partitionErrorCode]]] "
    "resultsByTopicV3AndBelow|results:0-3[name=text "
    "resultsByPartition|results[partitionIndex partitionErrorCode|errorCode]]"
)

_ACKNOWLEDGED: Final = "acknowledgementBatches[firstOffset lastOffset acknowledgeTypes=numbers]"
_SHARE_STATE_ANSWER: Final = "results[topicId=text partitions[partition errorCode errorMessage*=text]]"

#: Request and response by API.
_BODIES: Final[dict[str, tuple[str, str]]] = {
    "PRODUCE": (
        f"transactionalId*:3+=text acks timeoutMs topicData[name:0-12=text topicId:13+=text partitionData[index "
        f"{_RECORDS}]]",
        "responses[name:0-12=text topicId:13+=text partitionResponses[index errorCode baseOffset logAppendTimeMs:2+ "
        "logStartOffset:5+ recordErrors:8+[batchIndex batchIndexErrorMessage*=text] errorMessage*:8+=text "
        f"{_LEADER}]] throttleTimeMs:1+ {_NODES}",
    ),
    # Sessions came with KIP-227, replicaState with KIP-903.
    "FETCH": (
        "clusterId?=text replicaId:0-14 replicaState?{replicaId replicaEpoch} maxWaitMs minBytes maxBytes:3+ "
        "isolationLevel:4+ sessionId:7+ sessionEpoch:7+ topics[topic:0-12=text topicId:13+=text partitions[partition "
        "currentLeaderEpoch:9+ fetchOffset lastFetchedEpoch:12+ logStartOffset:5+ partitionMaxBytes "
        "replicaDirectoryId?=text highWatermark?]] "
        "forgottenTopicsData:7+[topic:0-12=text topicId:13+=text partitions=numbers] rackId:11+=text",
        "throttleTimeMs:1+ errorCode:7+ sessionId:7+ responses[topic:0-12=text topicId:13+=text "
        "partitions|partitionResponses[partitionIndex|partition errorCode highWatermark lastStableOffset:4+ "
        f"logStartOffset:5+ divergingEpoch?{{epoch endOffset}} {_LEADER} snapshotId?{{endOffset epoch}} "
        f"abortedTransactions*:4+[producerId firstOffset] preferredReadReplica:11+ {_RECORDS}]] {_NODES}",
    ),
    "LEADER_AND_ISR": (
        "controllerId isKRaftController:7+=flag controllerEpoch brokerEpoch:2+ type:5+ "
        f"ungroupedPartitionStates:0-1{_STATES} topicStates:2+[topicName=text topicId:5+=text partitionStates{_STATES}]"
        " liveLeaders[brokerId hostName=text port]",
        "errorCode partitionErrors:0-4[topicName=text partitionIndex errorCode] "
        "topics:5+[topicId=text partitionErrors[partitionIndex errorCode]]",
    ),
    "STOP_REPLICA": (
        "controllerId isKRaftController:4+=flag controllerEpoch brokerEpoch:1+ deletePartitions:0-2=bit "
        "ungroupedPartitions|partitions:0[topicName=text partitionIndex] "
        "topics|partitions:1-2[name|topicName=text partitionIndexes=numbers] "
        "topicStates:3+[topicName=text partitionStates[partitionIndex leaderEpoch deletePartition=flag]]",
        "errorCode partitionErrors[topicName=text partitionIndex errorCode]",
    ),
    "ALTER_ISR": (f"brokerId brokerEpoch {_ALTERED}", _ALTERED_ANSWER),
    "ALTER_PARTITION": (f"brokerId brokerEpoch {_ALTERED}", _ALTERED_ANSWER),
    "OFFSET_FOR_LEADER_EPOCH": (
        "replicaId:3+ topics[topic=text partitions[partition currentLeaderEpoch:2+ leaderEpoch]]",
        "throttleTimeMs:2+ topics[topic=text partitions[errorCode partition leaderEpoch:1+ endOffset]]",
    ),
    "WRITE_TXN_MARKERS": (
        "markers[producerId producerEpoch transactionResult=flag topics[name=text partitionIndexes=numbers] "
        "coordinatorEpoch transactionVersion:2+]",
        "markers[producerId topics[name=text partitions[partitionIndex errorCode]]]",
    ),
    "OFFSET_COMMIT": (
        "groupId=text generationId|generationIdOrMemberEpoch:1+ memberId:1+=text groupInstanceId*:7+=text "
        "retentionTimeMs:2-4 topics[name:0-9=text topicId:10+=text partitions[partitionIndex committedOffset "
        "committedLeaderEpoch:6+ commitTimestamp:1 committedMetadata*=text]]",
        f"throttleTimeMs:3+ {_ANSWERED_TOPICS}",
    ),
    "TXN_OFFSET_COMMIT": (
        "transactionalId=text groupId=text producerId producerEpoch generationId|generationIdOrMemberEpoch:3+ "
        "memberId:3+=text groupInstanceId*:3+=text topics[name:0-5=text topicId:6+=text partitions[partitionIndex "
        "committedOffset committedLeaderEpoch:2+ committedMetadata*=text]]",
        "throttleTimeMs topics[name:0-5=text topicId:6+=text partitions[partitionIndex errorCode]]",
    ),
    "JOIN_GROUP": (
        "groupId=text sessionTimeoutMs rebalanceTimeoutMs:1+ memberId=text groupInstanceId*:5+=text protocolType=text "
        "protocols[name=text metadata=text] reason*:8+=text",
        "throttleTimeMs:2+ errorCode generationId protocolType*:7+=text protocolName*=text leader=text "
        "skipAssignment:9+=flag memberId=text members[memberId=text groupInstanceId*:5+=text metadata=text]",
    ),
    "SYNC_GROUP": (
        "groupId=text generationId memberId=text groupInstanceId*:3+=text protocolType*:5+=text protocolName*:5+=text "
        "assignments[memberId=text assignment=text]",
        f"{_GROUP_RESPONSE} protocolType*:5+=text protocolName*:5+=text assignment=text",
    ),
    "LEAVE_GROUP": (
        "groupId=text memberId:0-2=text members:3+[memberId=text groupInstanceId*=text reason*:5+=text]",
        f"{_GROUP_RESPONSE} members:3+[memberId=text groupInstanceId*=text errorCode]",
    ),
    "HEARTBEAT": ("groupId=text generationId memberId=text groupInstanceId*:3+=text", _GROUP_RESPONSE),
    # KIP-848.
    "CONSUMER_GROUP_HEARTBEAT": (
        "groupId=text memberId=text memberEpoch instanceId*=text rackId*=text rebalanceTimeoutMs "
        "subscribedTopicNames*=texts subscribedTopicRegex*:1+=text serverAssignor*=text "
        "topicPartitions*[topicId=text partitions=numbers]",
        "throttleTimeMs errorCode errorMessage*=text memberId*=text memberEpoch heartbeatIntervalMs "
        "assignment*{topicPartitions[topicId=text partitions=numbers]}",
    ),
    "OFFSET_DELETE": (
        "groupId=text topics[name=text partitions[partitionIndex]]",
        "errorCode throttleTimeMs topics[name=text partitions[partitionIndex errorCode]]",
    ),
    "INIT_PRODUCER_ID": (
        "transactionalId*=text transactionTimeoutMs producerId:3+ producerEpoch:3+ enable2Pc:6+=flag "
        "keepPreparedTxn:6+=flag",
        "throttleTimeMs errorCode producerId producerEpoch ongoingTxnProducerId:6+ ongoingTxnProducerEpoch:6+",
    ),
    "ADD_PARTITIONS_TO_TXN": (_ADDED, _ADDED_ANSWER),
    "ADD_OFFSETS_TO_TXN": (f"{_TRANSACTION} groupId=text", "throttleTimeMs errorCode"),
    "END_TXN": (f"{_TRANSACTION} committed=flag", "throttleTimeMs errorCode producerId:5+ producerEpoch:5+"),
    # KIP-932: share groups, and what their coordinator keeps of each partition.
    "SHARE_FETCH": (
        "groupId*=text memberId*=text shareSessionEpoch maxWaitMs minBytes maxBytes maxRecords:1+ batchSize:1+ "
        f"shareAcquireMode? isRenewAck?=flag topics[topicId=text partitions[partitionIndex partitionMaxBytes? "
        f"{_ACKNOWLEDGED}]] forgottenTopicsData[topicId=text partitions=numbers]",
        f"throttleTimeMs errorCode errorMessage*=text acquisitionLockTimeoutMs? responses[topicId=text "
        f"partitions[partitionIndex errorCode errorMessage*=text acknowledgeErrorCode acknowledgeErrorMessage*=text "
        f"{_LEADER} records?=anything recordsSizeInBytes? acquiredRecords[firstOffset lastOffset deliveryCount]]] "
        f"{_NODES}",
    ),
    "SHARE_ACKNOWLEDGE": (
        "groupId*=text memberId*=text shareSessionEpoch isRenewAck?=flag topics[topicId=text "
        f"partitions[partitionIndex {_ACKNOWLEDGED}]]",
        "throttleTimeMs errorCode errorMessage*=text acquisitionLockTimeoutMs? responses[topicId=text "
        f"partitions[partitionIndex errorCode errorMessage*=text {_LEADER}]] {_NODES}",
    ),
    "INITIALIZE_SHARE_GROUP_STATE": (
        "groupId=text topics[topicId=text partitions[partition stateEpoch startOffset]]",
        _SHARE_STATE_ANSWER,
    ),
    "WRITE_SHARE_GROUP_STATE": (
        "groupId=text topics[topicId=text partitions[partition stateEpoch leaderEpoch startOffset "
        "deliveryCompleteCount? stateBatches[firstOffset lastOffset deliveryState deliveryCount]]]",
        _SHARE_STATE_ANSWER,
    ),
    "DELETE_SHARE_GROUP_STATE": (
        "groupId=text topics[topicId=text partitions[partition]]",
        _SHARE_STATE_ANSWER,
    ),
    "METADATA": (
        "topics*[topicId:10+=text name*=text] allowAutoTopicCreation:4+=flag "
        "includeClusterAuthorizedOperations:8-10=flag includeTopicAuthorizedOperations:8+=flag",
        "throttleTimeMs:3+ brokers[nodeId host=text port rack*:1+=text] clusterId*:2+=text controllerId:1+ "
        "topics[errorCode name*=text topicId:10+=text isInternal:1+=flag partitions[errorCode partitionIndex leaderId "
        "leaderEpoch:7+ replicaNodes=numbers isrNodes=numbers offlineReplicas:5+=numbers] "
        "topicAuthorizedOperations:8+] clusterAuthorizedOperations:8-10 errorCode:13+",
    ),
    "CREATE_TOPICS": (
        "topics[name=text numPartitions replicationFactor assignments[partitionIndex brokerIds=numbers] "
        "configs[name=text value*=text]] timeoutMs validateOnly:1+=flag",
        "throttleTimeMs:2+ topics[name=text topicId:7+=text errorCode errorMessage*:1+=text topicConfigErrorCode?:5+ "
        "numPartitions:5+ replicationFactor:5+ "
        "configs*:5+[name=text value*=text readOnly=flag configSource isSensitive=flag]]",
    ),
}
#: APIs whose bodies are read.
READ_APIS: Final = frozenset(_BODIES)
REQUEST, RESPONSE = 0, 1

_FIELD: Final = re.compile(r"([\w|]+)([?*]?)(?::(\d+)(?:-(\d+)|(\+))?)?(?:=(\w+))?([\[{])?")
#: Kafka's integers have 64 bits at most.
Integer = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
_TYPES: Final[dict[str | None, Any]] = {
    None: Integer,
    "text": str,
    "flag": bool,
    "bit": bool | Integer,  # in text before 1.0 a number
    "numbers": list[Integer],
    "texts": list[str],
    "nothing": None | UnsetType,
    "anything": Any,
}


def read_body(api: str, side: int, version: int, body: Raw) -> Body:
    """Return a body of a listed API in JSON; a field that its version does not have is None.

    Args:
        side: `REQUEST` or `RESPONSE`.

    Raises:
        msgspec.DecodeError: it does not consist of the fields of its version.
    """
    decoders = _decoders(api, side, version)
    try:
        return decoders[0].decode(body)
    except ValidationError:
        return _in_other_spelling(decoders, body)


def body_of_any_version(api: str, side: int, fields: Json) -> Body:
    """Return a body of fields that a reader of text made sure of, numbers as printed; those that it does not give are
    None.
    """
    return convert(fields, any_version(api, side), strict=False)


def structs_of(api: str, side: int, version: int) -> list[type[Struct]]:
    """Return what bodies of this version are: with the names of today, and with former ones where there are any."""
    return [decoder.type for decoder in _decoders(api, side, version)]


def _in_other_spelling(decoders: list[Decoder[Any]], body: Raw) -> Any:
    """Return a body as the next decoder that fits reads it. That decoder is tried first from now on.

    Raises:
        msgspec.DecodeError: it is not read under these either; what was wrong under the names that were right last.
    """
    with suppress(ValidationError):
        read = decoders[-1].decode(body)
        decoders.reverse()
        return read
    return decoders[0].decode(body)


@lru_cache(maxsize=1_000)
def _decoders(api: str, side: int, version: int) -> list[Decoder[Any]]:
    """For the names of today, and for former ones where there are any."""
    text = _BODIES[api][side]
    return [Decoder(_struct(text, 0, version, spelling)[0]) for spelling in range(2 if "|" in text else 1)]


@lru_cache(maxsize=100)
def any_version(api: str, side: int) -> type[Struct]:
    """Return a Struct with the fields of all versions, each of which may be missing."""
    return _struct(_BODIES[api][side], 0, None, 0)[0]


def _struct(text: str, at: int, version: int | None, spelling: int) -> tuple[type[Struct], int]:
    """Return a struct from its text, which ends there or with a bracket, and where it ends; loose if it is of any
    version.
    """
    fields: list[Any] = []
    names: dict[str, str] = {}
    namespace: dict[str, Any] = {}
    while at < len(text) and text[at] not in "]}":
        match = _FIELD.match(text, at)
        if match is None:
            raise AssertionError(f"a shape that cannot be read: {text[at : at + 40]}")
        alternatives, mark, first, last, onwards, type_name, bracket = match.groups()
        at = match.end()
        name, *former = alternatives.split("|")
        value: Any = _TYPES[type_name]
        if bracket:
            value, at = _struct(text, at, version, spelling)
            value = list[value] if bracket == "[" else value
            at += 1
        at += text.startswith(" ", at)
        lowest = int(first or 0)
        highest = int(last) if last else lowest if first and not onwards else None
        if version is None:
            fields.append((name, value | None, None))
        elif lowest <= version and (highest is None or version <= highest):
            value = value | None if mark == "*" else value
            default = [UNSET if type_name == "nothing" else None] if mark == "?" else []
            fields.append((name, value, *default))
            names[name] = former[0] if former and spelling else name
            if type_name == "nothing":
                namespace["__post_init__"] = _require_records
        else:
            namespace[name] = None
    struct = defstruct(
        "Body",
        fields,
        namespace=namespace,
        rename=names,
        kw_only=True,
        omit_defaults=True,
        forbid_unknown_fields=version is not None,
        gc=False,
    )
    return struct, at


def _require_records(body: Any) -> None:
    """Raise ValueError unless a partition has either the size of its records or says that there are none."""
    if (body.recordsSizeInBytes is None) == (body.records is UNSET):
        raise ValueError("not one field recordsSizeInBytes")
