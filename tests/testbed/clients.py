"""Clients whose history is the ground truth: producers, consumers, and the one that reads all when all is over."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import (
    AcknowledgeType,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    ShareConsumer,
    TopicPartition,
)

from tests.testbed.history import ACKS_ALL, Ledger
from tests.testbed.security import APP, client_settings

ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT

#: Records in a transaction, and the share of transactions that are aborted.
TRANSACTION_RECORDS = 20
ABORTED_SHARE = 0.3
#: Of the answers to a member that now and then holds records.
HELD_SHARE = 0.12
JOIN_S = 40.0
SWEEP_S = 60.0


@dataclass(frozen=True)
class Writer:
    """A producer: so many records a second, at random times."""

    name: str  #: client id, and beginning of each key
    topic: str  #: where it writes
    rate: float  #: records per second
    acks: str = ACKS_ALL  #: all or 1
    transactional: bool = False  #: in transactions, some of them aborted
    size: int = 300  #: bytes of a record at most
    user: str = APP  #: as whom, where the cluster has users


@dataclass(frozen=True)
class Reader:
    """A consumer in a group of its own; one with a rack reads from a follower there."""

    name: str
    topic: str
    fetch_min_bytes: int = 1
    fetch_wait_ms: int = 500
    isolation: str = "read_uncommitted"
    rack: str = ""


@dataclass(frozen=True)
class Member:
    """A member of a share group."""

    name: str  #: client id
    group: str
    topic: str
    explicit: bool = True  #: it acknowledges record by record, and releases and rejects some
    holds_s: float = 0  #: so long it now and then keeps records before it acknowledges them


class Clients:
    """Threads that write and read until they are stopped."""

    def __init__(self, bootstrap: str, ledger: Ledger, seed: int, secured: bool = False) -> None:
        self._bootstrap = bootstrap
        self._secured = secured
        self.ledger = ledger
        self._seed = seed
        self._stopped = threading.Event()
        self._deleted: set[str] = set()
        self._threads: list[threading.Thread] = []
        self._failures: list[BaseException] = []

    def write(self, writer: Writer) -> None:
        """Start a producer."""
        self._spawn(lambda: _Production(self, writer).run())

    def read(self, reader: Reader) -> None:
        """Start a consumer."""
        self._spawn(lambda: self._consume(reader))

    def share(self, member: Member) -> None:
        """Start a member of a share group."""
        self._spawn(lambda: self._work(member))

    def leave(self, topic: str) -> None:
        """Nobody writes to or reads from this topic any more."""
        self._deleted.add(topic)

    def stop(self) -> None:
        """Stop all, producers after their last answers.

        Raises:
            RuntimeError: a client failed, or does not end.
        """
        self._stopped.set()
        end = time.monotonic() + JOIN_S
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        if any(thread.is_alive() for thread in self._threads):
            raise RuntimeError("a client does not stop")
        if self._failures:
            raise RuntimeError("a client failed") from self._failures[0]

    def go_on(self, topic: str) -> bool:
        """Whether a topic is still written and read."""
        return not self._stopped.is_set() and topic not in self._deleted

    def pause(self, seconds: float) -> None:
        """Sleep, at most until all is stopped."""
        self._stopped.wait(seconds)

    def settings(self, name: str, user: str = APP, **more: Any) -> dict[str, Any]:
        """Settings of a client."""
        access = client_settings(user) if self._secured else {}
        return {"bootstrap.servers": self._bootstrap, "client.id": name, "log_level": 0} | access | more

    def random(self, name: str) -> random.Random:
        """Chances of one client."""
        return random.Random(f"{self._seed}-{name}")

    def _spawn(self, work: Callable[[], None]) -> None:
        def guarded() -> None:
            try:
                work()
            except BaseException as failure:
                self._failures.append(failure)
                raise

        thread = threading.Thread(target=guarded, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _consume(self, reader: Reader) -> None:
        settings: dict[str, Any] = {
            "group.id": f"g-{reader.name}",
            "fetch.min.bytes": reader.fetch_min_bytes,
            "fetch.wait.max.ms": reader.fetch_wait_ms,
            "isolation.level": reader.isolation,
            "auto.offset.reset": "earliest",
        }
        if reader.rack:
            settings["client.rack"] = reader.rack
        consumer = Consumer(self.settings(reader.name, **settings))
        consumer.subscribe([reader.topic])
        while self.go_on(reader.topic):
            message = consumer.poll(0.5)
            if message is None:
                continue
            row: dict[str, Any] = {"client": reader.name, "t": time.time()}
            if message.error():
                self.ledger.client("consume_err", **row, error=str(message.error()))
                continue
            place = {"topic": message.topic(), "partition": message.partition(), "offset": message.offset()}
            self.ledger.client("consume", **row, **place, key=_key(message))
        consumer.close()

    def _work(self, member: Member) -> None:
        """What a member of a share group does with what it is given."""
        mode = "explicit" if member.explicit else "implicit"
        settings = {"group.id": member.group, "share.acknowledgement.mode": mode}
        consumer = ShareConsumer(self.settings(member.name, **settings))
        consumer.subscribe([member.topic])
        chance = self.random(member.name)
        while self.go_on(member.topic):
            try:
                given = [message for message in consumer.poll(0.5) if not message.error()]
                if given and member.holds_s and chance.random() < HELD_SHARE:
                    self.pause(member.holds_s)
                for message in given:
                    done = chance.choices((ACCEPT, RELEASE, REJECT), (88, 9, 3))[0] if member.explicit else ACCEPT
                    if member.explicit:
                        consumer.acknowledge(message, done)
                    place = {"topic": message.topic(), "partition": message.partition(), "offset": message.offset()}
                    self.ledger.client("share", client=member.name, t=time.time(), **place, done=done.name)
                if given and member.explicit:
                    consumer.commit_sync(5)
            except KafkaException as error:
                self.ledger.client("share_err", client=member.name, t=time.time(), error=str(error))
                self.pause(0.5)
        consumer.close()


class _Production:
    """One producer's life."""

    def __init__(self, clients: Clients, writer: Writer) -> None:
        self._clients = clients
        self._writer = writer
        self._random = clients.random(writer.name)
        self._number = 0
        self._producer = self._connect()

    def run(self) -> None:
        while self._clients.go_on(self._writer.topic):
            try:
                self._step()
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                self._recover(error)
            self._clients.pause(self._random.expovariate(self._writer.rate))
        self._producer.flush(20)

    def _connect(self) -> Producer:
        settings: dict[str, Any] = {"linger.ms": 4, "request.timeout.ms": 6000, "message.timeout.ms": 20000}
        settings["acks"] = self._writer.acks
        if self._writer.transactional:
            settings["transactional.id"] = f"tx-{self._writer.name}"
        producer = Producer(self._clients.settings(self._writer.name, self._writer.user, **settings))
        if self._writer.transactional:
            producer.init_transactions(30)
        return producer

    def _step(self) -> None:
        writer, place = self._writer, self._number % TRANSACTION_RECORDS
        if writer.transactional and place == 0:
            self._producer.begin_transaction()
        key = f"{writer.name}-{self._number}"
        size = self._random.randint(30, writer.size)
        self._producer.produce(
            writer.topic, key=key, value=self._random.randbytes(size), on_delivery=self._answered(key, time.time())
        )
        self._number += 1
        if writer.transactional and place == TRANSACTION_RECORDS - 1:
            aborted = self._random.random() < ABORTED_SHARE
            (self._producer.abort_transaction if aborted else self._producer.commit_transaction)(20)
            self._clients.ledger.client("abort" if aborted else "commit", client=writer.name, t=time.time())
        self._producer.poll(0)

    def _answered(self, key: str, sent: float) -> Callable[[KafkaError | None, Any], None]:
        def answered(error: KafkaError | None, message: Any) -> None:
            self._clients.ledger.client(
                "produce",
                client=self._writer.name,
                t0=sent,
                t1=time.time(),
                topic=self._writer.topic,
                key=key,
                partition=message.partition() if message else None,
                offset=None if error else message.offset(),
                error=str(error.code()) if error else None,
                acks=self._writer.acks,
            )

        return answered

    def _recover(self, error: KafkaException) -> None:
        """Go on with the next transaction; with another producer where this one is done for."""
        self._clients.ledger.client("txnerr", client=self._writer.name, t=time.time(), error=str(error))
        self._number += -self._number % TRANSACTION_RECORDS
        try:
            if error.args[0].fatal():
                self._producer = self._connect()
            elif self._writer.transactional:
                self._producer.abort_transaction(20)
        except KafkaException as another:
            self._clients.ledger.client("txnerr", client=self._writer.name, t=time.time(), error=str(another))
            self._clients.pause(1)


def sweep(clients: Clients, partitions: dict[str, int]) -> None:
    """Read whatever is in topics, aborted transactions too, into the ledger.

    Raises:
        RuntimeError: a partition's end is not reached in time.
    """
    ledger = clients.ledger
    reading: dict[str, Any] = {
        "isolation.level": "read_uncommitted",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    }
    consumer = Consumer(clients.settings("sweep", **{"group.id": "g-sweep"}, **reading))
    try:
        left = set()
        for place in [TopicPartition(topic, n) for topic, count in partitions.items() for n in range(count)]:
            start, end = consumer.get_watermark_offsets(place, timeout=20)
            ledger.final(topic=place.topic, partition=place.partition, start=start, end=end)
            left.add((place.topic, place.partition, start))
        consumer.assign([TopicPartition(*place) for place in left])
        places = {(topic, partition) for topic, partition, _ in left}
        deadline = time.monotonic() + SWEEP_S
        while places and time.monotonic() < deadline:
            message = consumer.poll(1)
            if message is None:
                continue
            place = (message.topic(), message.partition())
            if not message.error():
                ledger.final(topic=place[0], partition=place[1], offset=message.offset(), key=_key(message))
            elif message.error().code() == KafkaError._PARTITION_EOF:
                places.discard(place)
        if places:
            raise RuntimeError(f"not read to the end: {sorted(places)}")
    finally:
        consumer.close()


def _key(message: Any) -> str | None:
    key = message.key()
    return key.decode() if key else None
