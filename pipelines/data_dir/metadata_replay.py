"""Replay of the metadata log: the state after each record, as controllers and brokers saw it. Pure.

A record of a partition holds the changed fields. The new state follows from
``org.apache.kafka.metadata.PartitionRegistration.merge``: the partition epoch goes up by one with every change, the
leader epoch by one whenever a leader is named, even the same one (``PartitionChangeBuilder`` names it to raise the
epoch without an election). So the whole history of leaders and ISRs is exact, with epochs, on the controller's clock.

Records of a metadata transaction (KIP-868) take effect at its end; the records of an aborted one never do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from highwater.pipelines.data_dir import metadata_records as mr
from highwater.pipelines.data_dir.metadata_records import Decoded, Registration


class RegisteredNode(NamedTuple):
    """Registration of a broker."""

    broker_epoch: int
    incarnation_id: str | None
    fenced: bool | None
    in_controlled_shutdown: bool | None


class Change(NamedTuple):
    """Content of one metadata record, and the state after it."""

    record: str  #: name of the record
    api_key: int | None  #: None for a control record
    record_version: int | None  #: of the message
    change_no: int = 0  #: which change of that record; one that clears ELRs changes many partitions
    topic: str | None = None  #: name; None if no record named this id
    topic_id: str | None = None
    partition: int | None = None
    #: the partition's state after the record; None if its first record is missing
    registration: Registration | None = None
    changed: tuple[str, ...] = ()  #: names of the changed fields of a partition
    #: leader in the record, if the registration is unknown; also a new active controller
    leader: int | None = None
    isr: tuple[int, ...] | None = None  #: ISR in the record, if the registration is unknown
    node_id: int | None = None  #: registered broker
    node: RegisteredNode | None = None  #: after the record
    resource: tuple[int, str] | None = None  #: type and name of what is configured
    key: str | None = None  #: of a setting; name of a feature
    value: str | None = None  #: of a setting (None takes it back); level of a feature; reason of a transaction
    applied: bool = True  #: False for what an aborted transaction held
    problem: str | None = None  #: why the record, or what follows from it, is not known


_FIELDS = tuple(name for name in mr.PartitionChangeRecord._fields if name not in ("partition", "topic_id"))


def merge(old: Registration, change: mr.PartitionChangeRecord) -> Registration:
    """Return the partition registration after a change."""
    named = change.leader != mr.NO_LEADER_CHANGE
    recovery = change.leader_recovery_state
    replicas = _choose(change.replicas, old.replicas)
    directories = old.directories
    if change.directories:
        directories = change.directories
    elif replicas != old.replicas and old.directories is not None:
        known = dict(zip(old.replicas, old.directories, strict=False))
        directories = tuple(known[replica] for replica in replicas) if known.keys() >= set(replicas) else None
    return Registration(
        leader=change.leader if named else old.leader,
        leader_epoch=old.leader_epoch + named,
        partition_epoch=old.partition_epoch + 1,
        isr=_choose(change.isr, old.isr),
        replicas=replicas,
        removing_replicas=_choose(change.removing_replicas, old.removing_replicas),
        adding_replicas=_choose(change.adding_replicas, old.adding_replicas),
        elr=_choose(change.elr, old.elr),
        last_known_elr=_choose(change.last_known_elr, old.last_known_elr),
        leader_recovery_state=old.leader_recovery_state if recovery is None or recovery < 0 else recovery,
        directories=directories,
    )


def _choose(new: tuple[int, ...] | None, old: tuple[int, ...]) -> tuple[int, ...]:
    return old if new is None else new


class Replay:
    """Metadata state after the records applied so far."""

    def __init__(self) -> None:
        self.partitions: dict[str, dict[int, Registration]] = {}
        self.topics: dict[str, str] = {}
        self.nodes: dict[int, RegisteredNode] = {}
        #: State before the open transaction.
        self._before: tuple[dict[str, dict[int, Registration]], dict[str, str], dict[int, RegisteredNode]] | None = None

    def begin(self) -> None:
        """Begin a metadata transaction."""
        partitions = {topic_id: dict(states) for topic_id, states in self.partitions.items()}
        self._before = (partitions, dict(self.topics), dict(self.nodes))

    def end(self, aborted: bool) -> None:
        """End the open transaction: committed or aborted."""
        if aborted and self._before is not None:
            self.partitions, self.topics, self.nodes = self._before
        self._before = None

    def apply(self, decoded: Decoded) -> Iterator[Change]:
        """Yield the changes of a record: one, except for records that clear ELRs."""
        base = Change(decoded.name, decoded.api_key, decoded.version, problem=decoded.problem)
        match decoded.message:
            case mr.PartitionRecord() as record:
                yield self._register(base, record)
            case mr.PartitionChangeRecord() as record:
                yield self._change(base, record)
            case mr.TopicRecord(name, topic_id):
                self.topics[topic_id] = name
                yield base._replace(topic=name, topic_id=topic_id)
            case mr.RemoveTopicRecord(topic_id):
                self.partitions.pop(topic_id, None)
                yield base._replace(topic=self.topics.pop(topic_id, None), topic_id=topic_id)
            case mr.ClearElrRecord(topic):
                yield from self._clear_elr(base, topic)
            case mr.ConfigRecord(kind, name, key, value):
                yield base._replace(resource=(kind, name), key=key, value=value)
            case mr.FeatureLevelRecord(name, level):
                yield base._replace(key=name, value=str(level))
            case mr.Transaction(reason):
                yield base._replace(value=reason)
            case mr.LeaderChange(leader):
                yield base._replace(leader=leader)
            case None:
                yield base
            case record:
                yield self._apply_broker(base, record)

    def _register(self, base: Change, record: mr.PartitionRecord) -> Change:
        self.partitions.setdefault(record.topic_id, {})[record.partition] = record.registration
        return self._locate(base, record.topic_id, record.partition)._replace(registration=record.registration)

    def _change(self, base: Change, record: mr.PartitionChangeRecord) -> Change:
        empty = mr.PartitionChangeRecord(record.partition, record.topic_id)
        changed = tuple(name for name in _FIELDS if getattr(record, name) != getattr(empty, name))
        base = self._locate(base, record.topic_id, record.partition)._replace(changed=changed)
        old = self.partitions.get(record.topic_id, {}).get(record.partition)
        if old is None:
            leader = None if record.leader == mr.NO_LEADER_CHANGE else record.leader
            problem = "the partition's registration is not in the log: an earlier segment is missing"
            return base._replace(leader=leader, isr=record.isr, problem=problem)
        new = merge(old, record)
        self.partitions[record.topic_id][record.partition] = new
        return base._replace(registration=new)

    def _locate(self, base: Change, topic_id: str, partition: int) -> Change:
        return base._replace(topic=self.topics.get(topic_id), topic_id=topic_id, partition=partition)

    def _clear_elr(self, base: Change, topic: str) -> Iterator[Change]:
        """Yield a change per partition with an ELR (eligible leader replicas), as ``ReplicationControlManager`` does.

        Args:
            topic: topic whose ELRs are cleared. Empty for all topics.
        """
        yield base._replace(topic=topic or None)
        change_no = 0
        for topic_id, partitions in self.partitions.items():
            if topic and self.topics.get(topic_id) != topic:
                continue
            for partition, old in partitions.items():
                if not old.elr and not old.last_known_elr:
                    continue
                change_no += 1
                partitions[partition] = merge(
                    old, mr.PartitionChangeRecord(partition, topic_id, elr=(), last_known_elr=())
                )
                yield self._locate(base, topic_id, partition)._replace(
                    change_no=change_no, registration=partitions[partition], changed=("elr", "last_known_elr")
                )

    def _apply_broker(
        self,
        base: Change,
        record: mr.RegisterBrokerRecord | mr.UnregisterBrokerRecord | mr.BrokerChange,
    ) -> Change:
        node_id, epoch = record.broker_id, record.broker_epoch
        old = self.nodes.get(node_id, RegisteredNode(epoch, None, None, None))
        match record:
            case mr.RegisterBrokerRecord():
                node = RegisteredNode(epoch, record.incarnation_id, record.fenced, record.in_controlled_shutdown)
            case mr.BrokerChange(_, _, fenced, in_shutdown):
                node = RegisteredNode(
                    epoch,
                    old.incarnation_id,
                    old.fenced if fenced is None else fenced,
                    old.in_controlled_shutdown if in_shutdown is None else in_shutdown,
                )
            case _:
                self.nodes.pop(node_id, None)
                return base._replace(node_id=node_id, node=old._replace(broker_epoch=epoch))
        self.nodes[node_id] = node
        return base._replace(node_id=node_id, node=node)
