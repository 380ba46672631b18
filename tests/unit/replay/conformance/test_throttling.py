"""Replication quotas: followers that are held back, and those that never are."""

from __future__ import annotations

from collections.abc import Hashable

import pytest

from tests.unit.replay.conformance.brokers import FOLLOWER, Client
from tests.unit.replay.conformance.table import Scenario, Table, check
from tests.unit.replay.model.rules import Rules

TABLE = Table()


class Throttle:
    """A quota that throttles everything, and is exceeded or not."""

    def __init__(self, exceeded: bool) -> None:
        self.exceeded = exceeded

    def is_throttled(self, key: Hashable) -> bool:
        return True

    def is_exceeded(self) -> bool:
        return self.exceeded


QUOTAS = "ReplicaManagerQuotasTest.testCompleteInDelayedFetchWithReplicaThrottling"


def _throttled(rules: Rules, in_sync: bool, exceeded: bool) -> list[tuple[str, object]]:
    client = Client(rules, isr=(1, 2, 3) if in_sync else (1, 3))
    client.broker.quota = Throttle(exceeded)
    client.partition.ineligible.add(FOLLOWER)
    client.partition.zookeeper_refuses = True
    client.fetch("f", 0, FOLLOWER, wait_ms=5_000)
    client.partition.isr = client.partition.isr._replace(proposal=None)
    client.produce("p", acks=0)
    return [answer for answer in client.answers if answer[0] == "f"]


@TABLE.scenario(QUOTAS, [("f", 10)])
def a_follower_below_its_quota_is_not_held_back(rules: Rules) -> object:
    return _throttled(rules, in_sync=False, exceeded=False)


@TABLE.scenario(QUOTAS, [])
def a_follower_out_of_sync_is_held_back_beyond_its_quota(rules: Rules) -> object:
    return _throttled(rules, in_sync=False, exceeded=True)


@TABLE.scenario(QUOTAS, [("f", 10)], since="1.1.1")
@TABLE.scenario(f"{QUOTAS} (KAFKA-6937)", [], until="1.1.1")
def a_follower_in_sync_is_never_held_back(rules: Rules) -> object:
    return _throttled(rules, in_sync=True, exceeded=True)


@pytest.mark.parametrize(("scenario", "version"), TABLE.parameters())
def test_throttling(scenario: Scenario, version: str) -> None:
    check(scenario, version)
