from __future__ import annotations

import pytest

from highwater.pipelines.kafka.versions import ASSUMED, rule_of
from tests.unit.replay.model.rules import rules_for


@pytest.mark.parametrize(
    ("rule", "before", "since"),
    [
        ("waits_for_caught_up_replicas", "0.10.1.1", "0.10.2.0"),
        ("maximal_isr", "2.6.3", "2.7.0"),
        ("caught_up_must_be_eligible", "3.5.2", "3.6.0"),
        ("high_watermark_needs_min_isr", "3.6.2", "3.7.0"),
        ("epoch_start_gates_expansion", "2.0.0", "2.0.1"),
        ("loses_wake_up_on_isr_commit", "2.6.3", "2.7.0"),
        ("caps_min_isr_at_replicas", "3.6.2", "3.7.0"),
        ("expansion_needs_eligibility", "3.2.3", "3.3.0"),
        ("expansion_needs_broker_epoch", "3.4.1", "3.5.0"),
        ("rejects_stale_broker_epochs", "3.6.2", "3.7.0"),
        ("shrink_spares_replicas_at_the_end", "2.0.1", "2.1.0"),
        ("undoes_refused_isr_changes", "3.0.2", "3.1.0"),
        ("logs_isr_commits", "2.3.1", "2.4.0"),
        ("partition_epoch_gates_state", "3.2.3", "3.3.0"),
        ("epochs_start_once", "3.2.3", "3.3.0"),
        ("logs_follower_starts", "2.5.1", "2.6.0"),
        ("assigns_epoch_on_election", "2.0.0", "2.0.1"),
        ("fences_leader_epochs", "2.0.1", "2.1.0"),
        ("counts_diverging_fetches", "2.6.3", "2.7.0"),
        ("unassigned_followers_are_errors", "3.2.3", "3.3.0"),
        ("loses_contended_checks", "0.10.2.2", "0.11.0.0"),
        ("repeats_contended_checks", "1.0.2", "1.1.0"),
        ("has_action_queue", "2.6.3", "2.7.0"),
        ("sessions_keep_leader_epochs", "2.4.1", "2.5.0"),
        ("verifies_transactions", "3.5.2", "3.6.0"),
        ("group_coordinator_has_threads", "3.9.1", "4.0.0"),
        ("stop_replica_checks_operations", "2.3.1", "2.4.0"),
        ("names_known_topics", "2.3.1", "2.4.0"),
        ("logs_expired_produces", "1.1.1", "2.0.0"),
        ("logs_progress", "1.1.1", "2.0.0"),
        ("reads_committed", "0.10.2.2", "0.11.0.0"),
        ("answers_fetches_for_high_watermark", "2.3.1", "2.4.0"),
        ("tells_diverging_epochs", "2.6.3", "2.7.0"),
        ("followers_serve_consumers", "2.3.1", "2.4.0"),
        ("preferred_replica_answers_at_once", "3.1.2", "3.2.0"),
        ("fetches_beyond_the_end_complete", "3.7.2", "3.8.0"),
        ("roll_moves_high_watermark", "2.3.1", "2.4.0"),
        ("follower_checks_fetches", "3.3.1", "3.3.2"),
        ("epoch_replies_name_the_epoch", "1.1.1", "2.0.0"),
        ("answers_for_epochs_before_the_first", "2.0.0", "2.0.1"),
        ("truncates_on_fetch", "2.7.2", "2.8.0"),
        ("processes_diverging_responses", "2.7.2", "2.8.0"),
    ],
)
def test_a_rule_holds_from_its_version_on(rule, before, since):
    assert not getattr(rules_for(before), rule)
    assert getattr(rules_for(since), rule)


@pytest.mark.parametrize(
    ("rule", "last", "no_more"),
    [
        ("counts_diverging_fetches", "2.7.1", "2.7.2"),
        ("counts_diverging_fetches", "2.8.0", "2.8.1"),
        ("epochs_start_once", "2.8.2", "3.0.0"),
        ("every_fetch_moves_high_watermark", "2.3.1", "2.4.0"),
        ("failed_reads_reset_followers", "2.3.1", "2.4.0"),
        ("loses_contended_checks", "1.0.2", "1.1.0"),
        ("repeats_contended_checks", "2.6.3", "2.7.0"),
        ("append_checks_fetches_first", "2.1.0", "2.1.1"),
        ("every_fetch_checks_produces", "0.11.0.3", "1.0.0"),
        ("throttles_in_sync_replicas", "1.0.1", "1.0.2"),
        ("throttles_in_sync_replicas", "1.1.0", "1.1.1"),
        ("answers_fetches_for_high_watermark", "2.5.1", "2.6.0"),
        ("truncates_to_high_watermark", "0.10.2.2", "0.11.0.0"),
        ("exits_rather_than_truncates", "2.0.0", "2.0.1"),
        ("processes_diverging_responses", "3.4.0", "3.4.1"),
    ],
)
def test_a_rule_holds_up_to_its_version(rule, last, no_more):
    assert getattr(rules_for(last), rule)
    assert not getattr(rules_for(no_more), rule)


def test_what_restarts_a_fetcher_changed_three_times():
    found = [rules_for(version).fetcher_restart for version in ("2.0.0", "2.0.1", "2.1.0", "3.2.3", "3.3.0")]
    assert found == ["leader_changed", "epoch_missed", *["leader_or_epoch_changed"] * 2, "epoch_grew"]


def test_kafka_13091_is_fixed_in_31():
    assert rules_for("3.0.2").loses_wake_up_on_isr_commit
    assert not rules_for("3.1.0").loses_wake_up_on_isr_commit


def test_the_default_lag_time_grew_in_25():
    assert (rules_for("2.4.1").lag_time_max_ms, rules_for("2.5.0").lag_time_max_ms) == (10_000, 30_000)


def test_an_unknown_version_is_taken_for_the_assumed_one():
    assert rules_for(None).version == rules_for("9.9").version == rules_for("5.4.1").version == ASSUMED


@pytest.mark.parametrize(
    ("version", "expected"),
    [("3.3.1", False), ("3.3.2", True), ("7.3.1-ccs", None), ("7.4.0-ccs", True), ("5.4.1", None), (None, None)],
)
def test_nothing_is_claimed_by_a_rule_that_patch_releases_differ_in(version, expected):
    assert rule_of(version, lambda rules: rules.follower_checks_fetches) is expected


def test_a_platforms_number_is_predicted_by_the_last_patch_release():
    assert rules_for("7.3.1-ccs").follower_checks_fetches
    assert not rules_for("2.0.0.3.1.4.0-315").epoch_start_gates_expansion
