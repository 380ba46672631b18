"""Records of the metadata log (``__cluster_metadata-0``, KRaft), decoded. Pure.

A record is a frame version, an API key and a version (``org.apache.kafka.metadata.MetadataRecordSerde``), then the
message, whose fields are declared in Kafka's ``metadata/src/main/resources/common/metadata``. Records about replication
are decoded; the others are known by name. Unknown versions are not decoded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from highwater.pipelines.data_dir.records import Malformed, Reader, Record

T = TypeVar("T")

FRAME_VERSION = 1
#: Types of control records (``org.apache.kafka.common.record.ControlRecordType``).
LEADER_CHANGE: Final = 2
CONTROL_NAMES = {
    0: "AbortMarker",
    1: "CommitMarker",
    2: "LeaderChangeMessage",
    3: "SnapshotHeaderRecord",
    4: "SnapshotFooterRecord",
    5: "KRaftVersionRecord",
    6: "VotersRecord",
}
#: All that was ever released, by key. Keys 6 and 13 were given up before there was a release with KRaft.
_RECORDS = (
    "RegisterBroker UnregisterBroker Topic Partition Config PartitionChange - FenceBroker UnfenceBroker RemoveTopic "
    "DelegationToken UserScramCredential FeatureLevel - ClientQuota ProducerIds RemoveFeatureLevel "
    "BrokerRegistrationChange AccessControlEntry RemoveAccessControlEntry NoOp ZkMigrationState "
    "RemoveUserScramCredential BeginTransaction EndTransaction AbortTransaction RemoveDelegationToken "
    "RegisterController ClearElr UnregisterController"
)
NAMES = {key: f"{name}Record" for key, name in enumerate(_RECORDS.split()) if name != "-"}
NO_LEADER_CHANGE: Final = -2


class RegisterBrokerRecord(NamedTuple):
    broker_id: int
    broker_epoch: int
    incarnation_id: str
    fenced: bool
    in_controlled_shutdown: bool


class UnregisterBrokerRecord(NamedTuple):
    broker_id: int
    broker_epoch: int


class BrokerChange(NamedTuple):
    """A change of a broker registration. None for unchanged fields."""

    broker_id: int
    broker_epoch: int
    fenced: bool | None
    in_controlled_shutdown: bool | None


class TopicRecord(NamedTuple):
    name: str
    topic_id: str


class RemoveTopicRecord(NamedTuple):
    topic_id: str


class ClearElrRecord(NamedTuple):
    """All topics if `topic` is empty."""

    topic: str


class Registration(NamedTuple):
    """A partition's registration in the metadata."""

    leader: int  #: -1 if there is none
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    elr: tuple[int, ...]
    last_known_elr: tuple[int, ...]
    leader_recovery_state: int  #: 1 while it recovers from an unclean election
    directories: tuple[str, ...] | None  #: ids of log directories, one per replica; None where no record said


class PartitionRecord(NamedTuple):
    partition: int
    topic_id: str
    registration: Registration


class PartitionChangeRecord(NamedTuple):
    """Changes of a partition. None, or `NO_LEADER_CHANGE`, for unchanged fields."""

    partition: int
    topic_id: str
    isr: tuple[int, ...] | None = None
    leader: int = NO_LEADER_CHANGE
    replicas: tuple[int, ...] | None = None
    removing_replicas: tuple[int, ...] | None = None
    adding_replicas: tuple[int, ...] | None = None
    leader_recovery_state: int | None = None
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    directories: tuple[str, ...] | None = None


class ConfigRecord(NamedTuple):
    """A setting; a value of None removes it."""

    resource_type: int
    resource_name: str
    key: str
    value: str | None


class FeatureLevelRecord(NamedTuple):
    name: str
    level: int


class Transaction(NamedTuple):
    """Begin, end or abort of a metadata transaction (KIP-868)."""

    reason: str | None


class LeaderChange(NamedTuple):
    """A node became the active controller."""

    leader: int


Message = (
    RegisterBrokerRecord
    | UnregisterBrokerRecord
    | BrokerChange
    | TopicRecord
    | RemoveTopicRecord
    | ClearElrRecord
    | PartitionRecord
    | PartitionChangeRecord
    | ConfigRecord
    | FeatureLevelRecord
    | Transaction
    | LeaderChange
)


class Decoded(NamedTuple):
    """One decoded metadata record."""

    name: str  #: as Kafka calls it
    api_key: int | None  #: None for a control record
    version: int | None  #: of the message
    message: Message | None  #: its content; None if this kind is not decoded, or cannot be
    problem: str | None = None  #: why it cannot be decoded


def decode(record: Record) -> Decoded:
    """Decode a record of a data batch. Errors are returned in its `problem`."""
    api_key = version = None
    try:
        reader = Reader(record.value or b"")
        frame, api_key, version = (
            reader.read_uvarint(),
            reader.read_uvarint(),
            reader.read_uvarint(),
        )
        name = NAMES.get(api_key, f"unknown {api_key}")
        if frame != FRAME_VERSION:
            return Decoded(name, api_key, version, None, f"frame version {frame} is not known, {FRAME_VERSION} is")
        if api_key not in NAMES:
            return Decoded(name, api_key, version, None, f"API key {api_key} is not known")
        if api_key not in _DECODERS:
            return Decoded(name, api_key, version, None)
        version_max, decoder = _DECODERS[api_key]
        if version > version_max:
            return Decoded(name, api_key, version, None, f"version {version} is not known, up to {version_max} are")
        message = decoder(reader, version)
        if reader.left:
            raise Malformed(f"{reader.left} bytes behind its fields")
        return Decoded(name, api_key, version, message)
    except Malformed as problem:
        return Decoded(NAMES.get(api_key or -1, "unknown"), api_key, version, None, str(problem))


def decode_control(record: Record) -> Decoded:
    """Decode a record of a control batch: the new leader of the metadata quorum."""
    try:
        key = Reader(record.key or b"")
        key.int16()
        kind = key.int16()
        name = CONTROL_NAMES.get(kind, f"control {kind}")
        if kind != LEADER_CHANGE:
            return Decoded(name, None, None, None)
        value = Reader(record.value or b"")
        version = value.int16()
        # The voters that follow differ by version; who leads does not.
        return Decoded(name, None, version, LeaderChange(value.int32()))
    except Malformed as problem:
        return Decoded("control", None, None, None, str(problem))


def _register_broker(reader: Reader, version: int) -> Message:
    broker = reader.int32()
    if version >= 2:
        reader.boolean()  # migrating from ZooKeeper
    incarnation, epoch = reader.uuid(), reader.int64()
    reader.array(lambda: (reader.string(), reader.string(), reader.uint16(), reader.int16(), reader.read_tags()))
    reader.array(lambda: (reader.string(), reader.int16(), reader.int16(), reader.read_tags()))
    reader.read_nullable_string()  # rack
    fenced = reader.boolean()
    in_shutdown = reader.boolean() if version >= 1 else False
    reader.read_tags()
    return RegisterBrokerRecord(broker, epoch, incarnation, fenced, in_shutdown)


def _make_decoder(build: Callable[[Reader], Message]) -> Callable[[Reader, int], Message]:
    """Return a decoder for fields that do not depend on the version. Unknown tagged fields are ignored."""

    def decoder(reader: Reader, version: int) -> Message:
        message = build(reader)
        reader.read_tags()
        return message

    return decoder


def _decode_partition(reader: Reader, version: int) -> Message:
    partition, topic_id = reader.int32(), reader.uuid()
    replicas, isr, removing, adding = (reader.array(reader.int32) for _ in range(4))
    leader, leader_epoch, partition_epoch = reader.int32(), reader.int32(), reader.int32()
    directories = reader.array(reader.uuid) if version >= 1 else None
    tags = reader.read_tags()
    elr, last_known_elr, recovery_state = _read_ints(tags, 1) or (), _read_ints(tags, 2) or (), _read_int8(tags, 0) or 0
    epochs, lists = (leader_epoch, partition_epoch), (isr, replicas, removing, adding, elr, last_known_elr)
    return PartitionRecord(partition, topic_id, Registration(leader, *epochs, *lists, recovery_state, directories))


def _decode_partition_change(reader: Reader, version: int) -> Message:
    partition, topic_id = reader.int32(), reader.uuid()
    tags = reader.read_tags()
    return PartitionChangeRecord(
        partition=partition,
        topic_id=topic_id,
        isr=_read_ints(tags, 0),
        leader=Reader(tags[1]).int32() if 1 in tags else NO_LEADER_CHANGE,
        replicas=_read_ints(tags, 2),
        removing_replicas=_read_ints(tags, 3),
        adding_replicas=_read_ints(tags, 4),
        leader_recovery_state=_read_int8(tags, 5),
        elr=_read_ints(tags, 6),
        last_known_elr=_read_ints(tags, 7),
        directories=_read_list(tags, 8, Reader.uuid),
    )


def _decode_broker_change(reader: Reader, version: int) -> Message:
    broker, epoch = reader.int32(), reader.int64()
    tags = reader.read_tags()
    fenced, in_shutdown = _read_int8(tags, 0) or 0, _read_int8(tags, 1) or 0
    return BrokerChange(broker, epoch, fenced > 0 if fenced else None, in_shutdown > 0 if in_shutdown else None)


def _decode_transaction(reader: Reader, version: int) -> Message:
    tags = reader.read_tags()
    return Transaction(Reader(tags[0]).read_nullable_string() if 0 in tags else None)


def _read_setting(reader: Reader) -> tuple[str, str, str | None]:
    return reader.string(), reader.string(), reader.read_nullable_string()


def _read_int8(tags: dict[int, bytes], tag: int) -> int | None:
    return Reader(tags[tag]).int8() if tag in tags else None


def _read_list(tags: dict[int, bytes], tag: int, read: Callable[[Reader], T]) -> tuple[T, ...] | None:
    if tag not in tags:
        return None
    reader = Reader(tags[tag])
    return reader.read_nullable_array(lambda: read(reader))


def _read_ints(tags: dict[int, bytes], tag: int) -> tuple[int, ...] | None:
    return _read_list(tags, tag, Reader.int32)


#: Highest version known, and how it is read.
_DECODERS: dict[int, tuple[int, Callable[[Reader, int], Message]]] = {
    0: (4, _register_broker),
    1: (0, _make_decoder(lambda reader: UnregisterBrokerRecord(reader.int32(), reader.int64()))),
    2: (0, _make_decoder(lambda reader: TopicRecord(reader.string(), reader.uuid()))),
    3: (2, _decode_partition),
    4: (0, _make_decoder(lambda reader: ConfigRecord(reader.int8(), *_read_setting(reader)))),
    5: (2, _decode_partition_change),
    7: (0, _make_decoder(lambda reader: BrokerChange(reader.int32(), reader.int64(), True, None))),
    8: (0, _make_decoder(lambda reader: BrokerChange(reader.int32(), reader.int64(), False, None))),
    9: (0, _make_decoder(lambda reader: RemoveTopicRecord(reader.uuid()))),
    12: (0, _make_decoder(lambda reader: FeatureLevelRecord(reader.string(), reader.int16()))),
    17: (3, _decode_broker_change),
    23: (0, _decode_transaction),
    24: (0, _decode_transaction),
    25: (0, _decode_transaction),
    28: (0, _make_decoder(lambda reader: ClearElrRecord(reader.string()))),
}
