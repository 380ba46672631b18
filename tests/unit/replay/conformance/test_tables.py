"""What holds for the conformance tables as a whole."""

from __future__ import annotations

import re
from collections import Counter

from tests.unit.replay.conformance import (
    test_delayed_fetch,
    test_delayed_operation,
    test_delayed_produce,
    test_partition_high_watermark,
    test_partition_isr,
    test_throttling,
    test_timer,
    test_truncation,
)

TABLES = [
    module.TABLE
    for module in (
        test_delayed_operation,
        test_delayed_fetch,
        test_delayed_produce,
        test_partition_isr,
        test_partition_high_watermark,
        test_throttling,
        test_timer,
        test_truncation,
    )
]
SCENARIOS = [scenario for table in TABLES for scenario in table.scenarios]


def test_there_are_sixty_scenarios_at_least_after_tests_of_kafka() -> None:
    assert len({scenario.name for scenario in SCENARIOS if re.match(r"\w+Test\.", scenario.source)}) >= 60


def test_every_scenario_runs_somewhere_and_names_its_source() -> None:
    for scenario in SCENARIOS:
        assert scenario.versions(), scenario.name
        assert re.match(r"[A-Z]\w+", scenario.source), scenario.name


def test_a_version_sees_a_scenario_once() -> None:
    seen = Counter((scenario.name, version) for scenario in SCENARIOS for version in scenario.versions())
    assert [key for key, count in seen.items() if count > 1] == []
