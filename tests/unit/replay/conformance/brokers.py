"""Small brokers for the scenarios: broker 1 leads partition "p" of three replicas."""

from __future__ import annotations

from collections.abc import Iterable

from tests.unit.replay.model.delayed_fetch import FetchParams
from tests.unit.replay.model.errors import Error
from tests.unit.replay.model.log import ReplicaLog
from tests.unit.replay.model.partition import LeaderState, Partition
from tests.unit.replay.model.reads import FetchPartition
from tests.unit.replay.model.replica_manager import Batch, Fetched, ReplicaManager
from tests.unit.replay.model.rules import Rules

LEADER, FOLLOWER, OTHER = 1, 2, 3
KEY = "p"
LAG_MS = 30_000


def state(
    epoch: int, isr: Iterable[int] = (1, 2, 3), leader: int = LEADER, partition_epoch: int | None = None
) -> LeaderState:
    return LeaderState(leader, epoch, epoch if partition_epoch is None else partition_epoch, tuple(isr), (1, 2, 3))


def leader(
    rules: Rules,
    isr: Iterable[int] = (1, 2, 3),
    records: int = 0,
    min_isr: int = 1,
    now_ms: int = 0,
    epoch: int = 1,
) -> Partition:
    """A leader from `now_ms` on, whose log held that many records, of 10 bytes each, before its epoch."""
    partition = Partition(rules, LEADER, ReplicaLog(rules), min_isr=min_isr, lag_time_max_ms=LAG_MS)
    for _ in range(records):
        partition.log.append(1, 10, 0)
    partition.make_leader(state(epoch, isr), now_ms)
    return partition


def append(partition: Partition, records: int = 1, now_ms: int = 0, acks: int = 1) -> int:
    """Append one batch, ten bytes a record; returns the log end offset."""
    return partition.append(records, 10 * records, acks, now_ms).last_offset + 1


def follow(partition: Partition, replica_id: int, offset: int, now_ms: int, broker_epoch: int | None = None) -> bool:
    """A follower fetches from an offset; True if the high watermark moved."""
    at = partition.log.locate(offset)
    replica = partition.replicas[replica_id]
    return partition.follower_fetched(replica, at, now_ms, partition.log.end_offset, broker_epoch)


def commit(partition: Partition, now_ms: int) -> bool:
    """The controller accepts what is in flight, if anything is; True if the high watermark moved."""
    proposal = partition.isr.proposal
    if proposal is None:
        return False
    result = partition.alter_committed(
        proposal, proposal.isr, partition.leader_epoch, partition.partition_epoch + 1, now_ms
    )
    return result.high_watermark_moved


def hw(partition: Partition) -> int:
    return partition.log.high_watermark.offset


class Client:
    """A broker, and what it answered: ``answers`` holds (name, answer) in the order of the answers."""

    def __init__(self, rules: Rules, isr: Iterable[int] = (1, 2, 3), records: int = 0, min_isr: int = 1) -> None:
        self.broker = ReplicaManager(rules, LEADER)
        self.partition = leader(rules, isr, records, min_isr)
        self.broker.partitions[KEY] = self.partition
        self.broker.known.add(KEY)
        self.answers: list[tuple[str, object]] = []
        self.details: dict[str, dict[object, Fetched]] = {}

    def produce(self, name: str, acks: int = -1, timeout_ms: int = 1_000, records: int = 1) -> None:
        def respond(statuses: object) -> None:
            assert isinstance(statuses, dict)
            self.answers.append((name, statuses[KEY].error))

        self.broker.produce({KEY: Batch(records, 10 * records)}, acks, timeout_ms, respond)

    def fetch(
        self,
        name: str,
        offset: int,
        replica_id: int = -1,
        min_bytes: int = 1,
        wait_ms: int = 500,
        epoch: int | None = None,
        last_fetched_epoch: int | None = None,
        bytes_max: int = 1_000,
        committed_only: bool = False,
        broker_epoch: int | None = None,
        rack: bool = False,
        referred: bool = False,
    ) -> Fetched | None:
        """Fetch; returns the answer if it came at once. Answers say their bytes, or their error if there is one."""

        def respond(response: object) -> None:
            assert isinstance(response, dict)
            answer = response[KEY]
            self.details[name] = response
            self.answers.append((name, answer.size if answer.error is Error.NONE else answer.error))

        params = FetchParams(replica_id, min_bytes, 10_000, wait_ms, committed_only, rack, broker_epoch, referred)
        self.broker.fetch(params, [FetchPartition(KEY, offset, bytes_max, epoch, last_fetched_epoch)], respond)
        return self.details[name][KEY] if name in self.details else None

    def at(self, now_ms: int) -> Client:
        self.broker.advance_to(now_ms)
        return self
