"""Verdict and tiers."""

from itertools import product

import pytest
from pydantic import ValidationError

from highwater.pipelines.base.values import iso_utc
from highwater.pipelines.report.assemble import decide
from highwater.pipelines.report.tiers import explain_not_checkable, find_tier, make_not_checkable, select_counting
from highwater.pipelines.rules.registry import BY_ID
from tests.unit.report import sample


def test_clean_needs_operations_and_whole_files() -> None:
    assert decide(sample.produce(), 1000, 1.0, []) == ("clean", ())
    assert decide(sample.produce(), 1000, 0.95, []) == ("clean", ())


@pytest.mark.parametrize(
    ("produce", "lines", "share", "holes", "reason"),
    [
        ({}, 0, None, [], "no log record was read"),
        ({}, 10, 0.9499, [], r"only 95.0% of the log records were understood, less than 95%"),
        ({"observed": 0, "replayed": 0}, 10, 1.0, [], "no acks=all produce in these logs"),
        ({"observed": 10, "replayed": 0, "unobservable": 10}, 10, 1.0, [], "none of the 10 acks=all produces"),
        ({}, 10, 1.0, ["a.gz was not read: truncated gzip: copy it again"], "a.gz was not read"),
    ],
)
def test_inconclusive_says_why(
    produce: dict[str, int], lines: int, share: float | None, holes: list[str], reason: str
) -> None:
    verdict, reasons = decide(sample.produce(**produce), lines, share, holes)
    assert verdict == "inconclusive"
    assert len(reasons) == 1
    assert reason in reasons[0]


def test_a_contradiction_outweighs_what_is_missing() -> None:
    verdict, reasons = decide(sample.produce(contradicted=1), 10, 0.5, ["a.gz was not read: truncated gzip"])
    assert verdict == "violated"
    assert len(reasons) == 2


def test_a_tier_needs_all_below_it() -> None:
    for marks in product((False, True), repeat=3):
        reached = next((number for number, there in enumerate(marks) if not there), 3)
        assert find_tier(*marks, highest="T3") == f"T{reached}"
    assert find_tier(True, True, True, highest="T1") == "T1"
    assert find_tier(False, True, True, highest="T1") == "T0"


def test_brokers_count_and_other_nodes_only_without_any() -> None:
    assert select_counting({("c", 1): "T3", ("c", 2): "T1"}) == {("c", 1): "T3", ("c", 2): "T1"}
    assert select_counting({("c", 1): "T3", ("c", -1): "T0"}) == {("c", 1): "T3"}
    assert select_counting({("c", -1): "T1"}) == {("c", -1): "T1"}
    assert select_counting({("c", 1): "T2", ("c", 9): "T0"}, controllers=[("c", 9)]) == {("c", 1): "T2"}
    assert select_counting({}) == {}


def test_the_remedy_fits_the_version() -> None:
    assert make_not_checkable(2, "3.9.1").needs == (
        "kafka-configs.sh --bootstrap-server HOST:PORT --entity-type broker-loggers --entity-name 2 --alter "
        "--add-config kafka.request.logger=DEBUG"
    )
    assert make_not_checkable(2, None).needs.startswith("kafka-configs.sh")
    assert "log4j.properties" in make_not_checkable(2, "0.10.2.2").needs
    assert "log4j.properties" in make_not_checkable(2, "2.3.1").needs
    assert "delayed operations" in make_not_checkable(2, None).reason
    assert "server.log" in make_not_checkable(-1, None).needs


def test_the_remedy_says_what_it_costs_and_how_it_is_undone() -> None:
    gap = make_not_checkable(2, "3.9.0")
    assert gap.cost is not None
    assert gap.cost.startswith("It writes about 1.3 KB of log per request that a broker answers. A restart")
    assert gap.cost.endswith("--alter --delete-config kafka.request.logger")
    brokers = [sample.broker(tier="T1")]
    traced = explain_not_checkable(BY_ID["follower-hw-above-leader"], brokers, "T3", 100.0)
    assert traced is not None
    assert traced.cost is not None
    assert "3.4 KB of log per request that a broker answers, 27.0 GiB a day at the 100 requests a second" in traced.cost
    assert "begin with kafka.cluster.Partition=DEBUG alone, about 0.6 KB" in traced.cost
    old = make_not_checkable(2, "0.10.2.2").cost
    assert old is not None
    assert old.endswith("Undo it in config/log4j.properties, with a restart.")


def test_times_are_utc_to_the_millisecond() -> None:
    assert iso_utc(1_795_188_540_397_999) == "2026-11-20T15:29:00.397Z"
    assert iso_utc(0) == "1970-01-01T00:00:00.000Z"


def test_the_model_takes_nothing_it_does_not_know() -> None:
    with pytest.raises(ValidationError):
        sample.report(surprise=1)
    with pytest.raises(ValidationError):
        sample.blame(share=1.2)
    with pytest.raises(ValidationError):
        sample.worst(arrival_time="2026-11-20 14:05:00")
