"""The headline of a report: the worst effect, and what to do now."""

from typing import Any

from highwater.pipelines.report.headline import add_headline
from highwater.pipelines.report.model import Headline
from tests.unit.report import sample


def headline(rule_id: str = "committed-data-lost", **changes: Any) -> Headline:
    """Return the headline of a violation, where broker 2 died before it and is still down."""
    finding = sample.finding(rule_id, **changes)
    died = sample.incident(start_time=finding.time, end_time=None, broker_ids=(2,), cluster_id="east")
    report = sample.audited(violations=(finding,), verdict="violated", incidents=(died,))
    found = add_headline(report).headline
    assert found is not None
    return found


def test_records_that_a_broker_may_still_hold_are_kept_first() -> None:
    assert headline().action.startswith("Do not start broker 2: a restart deletes what only it holds.")


def test_brokers_of_other_clusters_hold_no_records_of_this_one() -> None:
    assert "Do not start" in headline(cluster_id="east").action
    assert "Do not start" not in headline(cluster_id="west").action


def test_no_replica_is_asked_for_records_that_were_never_written() -> None:
    found = headline("acked-as-duplicate-of-another-batch", offset_start=1216, offset_end=1217)
    assert found.amount == "1 acknowledged batch"
    assert found.subject == "orders-3 (offset 1216)"
    assert found.action == "No replica has the records. Send them again: highwater trace finding f1"


def test_the_meaning_of_a_text_has_its_places() -> None:
    text = "Segments could not be copied. Broker 2 logged 20 times."
    failed = sample.incident("remote_copy_failed", sentence=text, broker_ids=(2,), topic_partitions=("a-0", "b-1"))
    found = add_headline(sample.report(incidents=(failed,))).headline
    assert found is not None
    assert found.amount == "Segments could not be copied (partitions a-0 and b-1, broker 2)."
