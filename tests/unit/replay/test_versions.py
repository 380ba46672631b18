from __future__ import annotations

import pytest

from pipelines.replay.versions import ASSUMED, parse_version, rules_for


@pytest.mark.parametrize(
    ("text", "version"),
    [("3.9.1", (3, 9, 1)), ("2.8.2-SNAPSHOT", (2, 8, 2)), ("0.10.2.2", (0, 10, 2)), ("4.3", (4, 3, 0)), ("", None)],
)
def test_versions_are_read(text, version):
    assert parse_version(text) == version


@pytest.mark.parametrize(
    ("rule", "before", "since"),
    [
        ("waits_for_caught_up_replicas", "0.10.1.1", "0.10.2.0"),
        ("maximal_isr", "2.6.3", "2.7.0"),
        ("caught_up_must_be_eligible", "3.5.2", "3.6.0"),
        ("high_watermark_needs_min_isr", "3.6.2", "3.7.0"),
        ("epoch_start_gates_expansion", "2.0.0", "2.0.1"),
        ("loses_wake_up_on_isr_commit", "2.6.3", "2.7.0"),
    ],
)
def test_a_rule_holds_from_its_version_on(rule, before, since):
    assert not getattr(rules_for(before), rule)
    assert getattr(rules_for(since), rule)


def test_kafka_13091_is_fixed_in_31():
    assert rules_for("3.0.2").loses_wake_up_on_isr_commit
    assert not rules_for("3.1.0").loses_wake_up_on_isr_commit


def test_the_default_lag_time_grew_in_25():
    assert (rules_for("2.4.1").lag_time_max_ms, rules_for("2.5.0").lag_time_max_ms) == (10_000, 30_000)


def test_an_unknown_version_is_taken_for_the_assumed_one():
    assert rules_for(None).version == ASSUMED
