"""The form of a conformance table: scenarios, each with its source, its range of versions and what must come out."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from tests.unit.replay.model.rules import Rules, rules_for

#: Every scenario runs on each of these that lies in its range.
VERSIONS = (
    "0.10.2.2",
    "0.11.0.3",
    "1.1.1",
    "2.0.0",
    "2.0.1",
    "2.4.1",
    "2.5.1",
    "2.6.3",
    "2.7.0",
    "2.7.2",
    "2.8.2",
    "3.0.2",
    "3.3.2",
    "3.6.2",
    "3.9.1",
    "4.3.1",
)


class Scenario(NamedTuple):
    """One scenario."""

    name: str  #: what it says, the name of its function
    #: Kafka's test, ``ClassTest.method``, or the method of the rule where no test says it, each with ``(KAFKA-n)`` of
    #: the change that the range of versions comes from; several, separated by a comma
    source: str
    run: Callable[[Rules], object]  #: plays it on a version, and returns what came out
    expected: object  #: what must come out
    #: since, until: first version, and first version after the range; None: no bound
    since: str | None
    until: str | None

    def versions(self) -> list[str]:
        low = rules_for(self.since).version if self.since else (0, 0, 0)
        high = rules_for(self.until).version if self.until else (99, 0, 0)
        return [version for version in VERSIONS if low <= rules_for(version).version < high]


class Table:
    """Scenarios of one area, in the order in which they stand in its file."""

    def __init__(self) -> None:
        self.scenarios: list[Scenario] = []

    def scenario(
        self, source: str, expected: object, since: str | None = None, until: str | None = None
    ) -> Callable[[Callable[[Rules], object]], Callable[[Rules], object]]:
        """Register a function as a scenario. Applied twice, it is two: one rule before a version, another since."""

        def register(run: Callable[[Rules], object]) -> Callable[[Rules], object]:
            self.scenarios.append(Scenario(run.__name__, source, run, expected, since, until))
            return run

        return register

    def parameters(self) -> list[object]:
        """One test per scenario and version."""
        return [
            pytest.param(scenario, version, id=f"{scenario.name}@{version}")
            for scenario in self.scenarios
            for version in scenario.versions()
        ]


def check(scenario: Scenario, version: str) -> None:
    assert scenario.run(rules_for(version)) == scenario.expected, f"{scenario.source}, on {version}"
