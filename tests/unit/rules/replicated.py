"""A partition that replicates correctly, step by step, and the facts that its brokers' logs would hold.

Slow and obvious, and nothing in it is shared with the rules. Three brokers with clocks of their own; leaders change,
followers lag, leave and rejoin the ISR and restart with a shorter log; the topic may be deleted and created anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact

MS = 1_000
START_US = 1_700_000_000_000_000
BROKERS = (1, 2, 3)


def in_order(facts: list[Fact]) -> list[Fact]:
    """Facts in the order in which the audit gives them to rules."""

    def order(fact: Fact) -> tuple[object, ...]:
        chained = fact.kind in (a.FETCH, a.READ)
        by_connection = (fact.broker_id, fact.connection or "", fact.correlation_id or -1) if chained else (-1, "", -1)
        return (a.RANK[fact.kind], *by_connection, fact.time_us, fact.broker_id or -1, fact.byte_offset or -1)

    return sorted(facts, key=order)


@dataclass
class Replica:
    """A broker's replica; `log_epoch` is the last one whose leader it took its log from."""

    end: int = 0
    high_watermark: int = 0
    epoch: int = -1
    log_epoch: int = -1
    connection: str = ""
    correlation_id: int = 0
    told: int | None = None


@dataclass
class Partition:
    """See the module; `run` gives the facts."""

    random: Random  #: decides everything
    ids: bool  #: whether lines and fetches name the topic's id
    now_us: int = START_US
    life: int = 0
    facts: list[Fact] = field(default_factory=list)
    lines: int = 0
    connections: int = 0

    def run(self, steps: int, recreated: bool) -> list[Fact]:
        skews = {broker: self.random.randint(-200, 200) * MS for broker in BROKERS}
        self._skews = skews
        self._create()
        for step in range(steps):
            if recreated and step == steps // 2:
                self.life += 1
                self._create()
            self.now_us += self.random.randint(0, 4) * MS + self.random.randint(0, 999)
            acts = (self._append, self._fetch, self._fetch, self._fetch, self._shrink, self._rejoin, self._read)
            self.random.choice((*acts, *acts, self._elect, self._restart))()
        return in_order(self.facts)

    # ------------------------------------------------------------------- lines

    def _say(self, kind: str, broker: int, **values: object) -> None:
        self.lines += 1
        self.now_us += self.random.randint(0, 1500)
        time_us = (self.now_us + self._skews[broker]) // MS * MS
        file = "request" if "connection" in values else "server"
        fact = Fact(kind, time_us, broker, file_id=f"{broker}-{file}", byte_offset=self.lines)
        self.facts.append(fact._replace(**values))  # type: ignore[arg-type]

    @property
    def _topic_id(self) -> str | None:
        return f"id-{self.life}" if self.ids else None

    # ------------------------------------------------------------------- steps

    def _create(self) -> None:
        self.replicas = {broker: Replica() for broker in BROKERS}
        self.seen: dict[int, int] = {}
        self.epoch, self.partition_epoch, self.high_watermark, self.start = -1, -1, 0, 0
        self.isr = set(BROKERS)
        if not self.ids:
            self._say(a.PARTITION_STATE, 1, name="NewPartition", detail="NonExistentPartition")
        self._lead(self.random.choice(BROKERS))

    def _lead(self, leader: int) -> None:
        self.leader, self.epoch, self.partition_epoch = leader, self.epoch + 1, self.partition_epoch + 1
        log = self.replicas[leader]
        self.start, self.high_watermark, self.seen = log.end, log.high_watermark, {}
        shown: dict[str, object] = {
            "leader": leader,
            "leader_epoch": self.epoch,
            "partition_epoch": self.partition_epoch,
        }
        shown |= {"topic_id": self._topic_id, "isr": tuple(sorted(self.isr)), "replicas": BROKERS}
        for broker in BROKERS:
            if broker == leader:
                told = {"offset": log.end, "high_watermark": log.high_watermark}
                self._say(a.LEADERSHIP, broker, name="leader_start", **shown, **told)
                log.epoch = log.log_epoch = self.epoch
            elif self.random.random() < 0.7:
                self._follow(broker)
        self._advance()

    def _follow(self, broker: int) -> None:
        """A follower learns of the epoch: it cuts its log to where the leader's epoch starts."""
        log = self.replicas[broker]
        shown: dict[str, object] = {"leader_epoch": self.epoch, "previous": log.epoch, "topic_id": self._topic_id}
        shown |= {"offset": log.end, "high_watermark": log.high_watermark}
        self._say(a.LEADERSHIP, broker, name="follower_start", **shown)
        if log.end > self.start and log.log_epoch != self.epoch:
            self._say(a.TRUNCATION, broker, name="log", offset=self.start)
            log.end = self.start
        log.epoch, log.log_epoch, log.told = self.epoch, self.epoch, None
        log.high_watermark = min(log.high_watermark, log.end)
        self._connect(log)

    def _connect(self, log: Replica) -> None:
        self.connections += 1
        log.connection, log.correlation_id, log.told = f"c{self.connections % 40}", 0, None

    def _append(self) -> None:
        self.replicas[self.leader].end += self.random.randint(1, 3)
        self._advance()

    def _advance(self) -> None:
        """The high watermark moves to what the whole ISR has."""
        ends = [self.replicas[self.leader].end, *(self.seen.get(r, -1) for r in self.isr if r != self.leader)]
        if min(ends) > self.high_watermark:
            before, self.high_watermark = self.high_watermark, min(ends)
            self.replicas[self.leader].high_watermark = self.high_watermark
            self._say(
                a.HIGH_WATERMARK, self.leader, name="updated", previous=before, high_watermark=self.high_watermark
            )

    def _fetch(self) -> None:
        replica = self.random.choice([broker for broker in BROKERS if broker != self.leader])
        log = self.replicas[replica]
        if not log.connection:
            self._connect(log)
        log.correlation_id += self.random.choice((1, 1, 1, 2))
        request: dict[str, object] = {
            "connection": log.connection,
            "correlation_id": log.correlation_id,
            "replica_id": replica,
        }
        asked = request | {"offset": log.end, "leader_epoch": log.epoch if log.epoch >= 0 else None}
        if log.epoch != self.epoch:
            self._say(a.FETCH, self.leader, **asked, topic_id=self._topic_id, error_code=74)
            if self.random.random() < 0.8:
                self._follow(replica)
            return
        answered = self.high_watermark
        self.seen[replica] = log.end
        if replica not in self.isr and log.end >= max(self.high_watermark, self.start):
            self._commit(self.isr | {replica})
        self._advance()
        leader_end = self.replicas[self.leader].end
        unchanged = log.told == log.end and leader_end == log.end
        named = request if unchanged else asked
        self._say(a.FETCH, self.leader, **named, topic_id=self._topic_id, error_code=0, high_watermark=answered)
        log.end = self.random.randint(log.end, leader_end)
        log.told = log.end
        before, log.high_watermark = log.high_watermark, min(answered, log.end)
        if log.high_watermark < before:
            self._say(
                a.HIGH_WATERMARK, replica, name="non_monotonic", previous=before, high_watermark=log.high_watermark
            )
        told = answered if self.random.random() < 0.5 else None
        self._say(a.HIGH_WATERMARK, replica, name="follower", high_watermark=log.high_watermark, offset=told)

    def _commit(self, isr: set[int], *, by_controller: bool = False) -> None:
        self.isr, self.partition_epoch = set(isr), self.partition_epoch + 1
        shown: dict[str, object] = {"partition_epoch": self.partition_epoch, "isr": tuple(sorted(isr))}
        if not by_controller:
            self._say(a.ISR_CHANGE, self.leader, name="committed", **shown)
        shown |= {"leader": self.leader, "leader_epoch": self.epoch, "topic_id": self._topic_id}
        if by_controller or self.random.random() < 0.5:
            self._say(a.LEADERSHIP, self.leader, name="leader_update", **shown)
        self._advance()

    def _shrink(self) -> None:
        end = self.replicas[self.leader].end
        behind = [r for r in self.isr if r != self.leader and self.seen.get(r, -1) < end]
        if behind and self.random.random() < 0.3:
            self._say(a.ISR_CHANGE, self.leader, name="shrink", high_watermark=self.high_watermark, offset=end)
            self._commit(self.isr - {self.random.choice(behind)})

    def _rejoin(self) -> None:
        """A follower that was told nothing hears of the epoch."""
        for broker in BROKERS:
            if broker != self.leader and self.replicas[broker].epoch != self.epoch:
                self._follow(broker)
                return

    def _elect(self) -> None:
        able = sorted(self.isr - {self.leader})
        if able:
            leader = self.random.choice(able)
            # A new leader hears of its epoch with the log that it has.
            self.replicas[leader].epoch = self.epoch
            if self.random.random() < 0.5:
                self.isr.discard(self.leader)
            self._lead(leader)

    def _restart(self) -> None:
        """A follower's broker dies and comes back without the end of its log: the controller takes it out first."""
        broker = self.random.choice([broker for broker in BROKERS if broker != self.leader])
        log = self.replicas[broker]
        if broker in self.isr:
            self._commit(self.isr - {broker}, by_controller=True)
        # What is lost was never needed: it is out of the ISR now.
        log.end = self.random.randint(0, log.end)
        log.high_watermark = min(log.high_watermark, log.end)
        if self.random.random() < 0.5:
            # It is told what it was before, in the epoch that goes on or in a later one.
            self._say(a.LOADED, broker, offset=log.end)
            self._say(a.LOADED, broker, high_watermark=log.high_watermark)
            log.epoch = -1
        self._connect(log)

    def _read(self) -> None:
        """A consumer at its limit is given nothing, or what was committed while it was answered."""
        position = self.high_watermark
        request: dict[str, object] = {
            "connection": "consumer",
            "correlation_id": self.lines,
            "leader_epoch": self.epoch,
        }
        request |= {"client": "reader", "name": "read_uncommitted", "offset": position, "topic_id": self._topic_id}
        self._append()
        grown = self.high_watermark > position
        size, later = (100, self.high_watermark) if grown else (0, position)
        self._say(a.READ, self.leader, **request, high_watermark=position, previous=later, size_bytes=size)
