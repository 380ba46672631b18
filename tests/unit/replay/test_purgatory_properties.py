"""Random histories of the purgatory model against what must hold, computed slowly and obviously."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.replay.conformance.brokers import KEY, LAG_MS, Client
from tests.unit.replay.conformance.table import VERSIONS
from tests.unit.replay.model.errors import Error
from tests.unit.replay.model.operation import DelayedOperation
from tests.unit.replay.model.purgatory import DelayedOperationPurgatory
from tests.unit.replay.model.rules import Rules, rules_for

KEYS = ("a", "b", "c")
FOLLOWERS = (2, 3)


class Flag(DelayedOperation):
    """Completes when its flag is up; counts its endings."""

    def __init__(self, rules: Rules, delay_ms: int) -> None:
        super().__init__(rules, delay_ms)
        self.ready = False
        self.completions = 0
        self.expirations = 0

    def try_complete(self) -> bool:
        return self.ready and self.force_complete()

    def on_complete(self) -> None:
        self.completions += 1

    def on_expiration(self) -> None:
        assert self.completions == 1, "answered before it is noted"
        self.expirations += 1


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.sets(st.sampled_from(KEYS), min_size=1), st.integers(0, 200)),
        st.tuples(st.just("ready"), st.integers(0, 30)),
        st.tuples(st.just("force"), st.integers(0, 30)),
        st.tuples(st.just("check"), st.sampled_from(KEYS)),
        st.tuples(st.just("pass"), st.integers(0, 120)),
    ),
    max_size=60,
)


@given(actions=ACTIONS)
def test_every_operation_is_completed_exactly_once(actions):
    purgatory: DelayedOperationPurgatory[Flag] = DelayedOperationPurgatory(purge_interval=3)
    operations: list[Flag] = []
    keys: list[set[str]] = []
    for action, *arguments in actions:
        if action == "wait":
            operations.append(Flag(rules_for("3.9.1"), arguments[1]))
            keys.append(arguments[0])
            purgatory.try_complete_else_watch(operations[-1], sorted(arguments[0]))
        elif action in ("ready", "force") and operations:
            operation = operations[arguments[0] % len(operations)]
            if action == "ready":
                operation.ready = True
            else:
                operation.force_complete()
        elif action == "check":
            purgatory.check_and_complete(arguments[0])
            for operation, watched in zip(operations, keys, strict=True):
                assert operation.is_completed or not (operation.ready and arguments[0] in watched)
        elif action == "pass":
            purgatory.advance_clock(purgatory.now_ms + arguments[0])
        assert all(operation.completions == operation.is_completed for operation in operations)
        assert all(operation.expirations <= operation.completions for operation in operations)
        assert purgatory.delayed == sum(not operation.is_completed for operation in operations)
    purgatory.advance_clock(purgatory.now_ms + 1_000)
    assert [operation.completions for operation in operations] == [1] * len(operations)
    assert purgatory.delayed == 0


class Fetch(NamedTuple):
    now_ms: int
    offset: int
    leader_end: int


HISTORY = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 3), st.sampled_from([-1, 1])),
        st.tuples(st.just("fetch"), st.sampled_from(FOLLOWERS), st.integers(0, 4)),
        st.tuples(st.just("pass"), st.integers(1, 20_000), st.none()),
        st.tuples(st.just("shrink"), st.none(), st.none()),
        st.tuples(st.just("answer"), st.booleans(), st.none()),
    ),
    min_size=1,
    max_size=40,
)


def caught_up_ms(history: list[Fetch]) -> int:
    """When a replica was last caught up, from all its fetches: it had the end of a fetch, then or at the next one."""
    instants = [0]
    for number, fetch in enumerate(history):
        if fetch.offset >= fetch.leader_end:
            instants.append(fetch.now_ms)
        if number and fetch.offset >= history[number - 1].leader_end:
            instants.append(history[number - 1].now_ms)
    return max(instants)


def allowed(client: Client, histories: dict[int, list[Fetch]]) -> int:
    """The high watermark that the counted replicas allow, from the whole history."""
    partition, now_ms = client.partition, client.broker.now_ms
    counted = set(partition.isr.committed if not partition.rules.maximal_isr else partition.isr.maximal) - {1}
    counted |= {replica_id for replica_id in FOLLOWERS if now_ms - caught_up_ms(histories[replica_id]) <= LAG_MS}
    positions = [histories[replica_id][-1].offset if histories[replica_id] else -1 for replica_id in counted]
    return min([partition.log.end_offset, *positions])


@pytest.mark.parametrize("version", VERSIONS)
@given(isr=st.sampled_from([(1,), (1, 2), (1, 2, 3)]), history=HISTORY)
def test_the_high_watermark_and_what_waits_for_it(version, isr, history):
    client = Client(rules_for(version), isr)
    partition, histories = client.partition, {replica_id: [] for replica_id in FOLLOWERS}
    required: dict[str, int] = {}
    highest = 0
    for number, (action, first, second) in enumerate(history):
        before = partition.log.high_watermark.offset
        moved = action == "append"
        if action == "append":
            client.produce(f"p{number}", acks=second, timeout_ms=10**9, records=first)
            required[f"p{number}"] = partition.log.end_offset
        elif action == "fetch":
            last = histories[first][-1].offset if histories[first] else 0
            offset = min(last + second, partition.log.end_offset)
            moved = not histories[first] or offset != last
            histories[first].append(Fetch(client.broker.now_ms, offset, partition.log.end_offset))
            client.fetch(f"f{number}", offset, first, wait_ms=0)
        elif action == "pass":
            client.at(client.broker.now_ms + first)
        elif action == "shrink":
            client.broker.shrink_isrs()
        elif partition.isr.proposal is not None:
            if first:
                epochs = partition.leader_epoch, partition.partition_epoch + 1
                client.broker.alter_committed(KEY, partition.isr.proposal, *epochs)
            else:
                partition.alter_refused(partition.isr.proposal, Error.INELIGIBLE_REPLICA)
        now = partition.log.high_watermark.offset
        assert now >= before, "it goes forward within an epoch"
        if moved:
            assert now == max(before, allowed(client, histories)), "it goes as far as those who count allow"
        if now > before:
            assert now <= allowed(client, histories), "it waits for everyone who counts"
        highest = max(highest, now)
        answered = {name for name, _ in client.answers}
        waiting = {name for name in required if name not in answered}
        assert all(required[name] > highest for name in waiting), "no trigger is lost"
        acknowledged = [name for name, answer in client.answers if name in required and answer is Error.NONE]
        acks_all = [name for name in acknowledged if history[int(name[1:])][2] == -1]
        assert all(required[name] <= highest for name in acks_all), "nothing is acknowledged that is not committed"
