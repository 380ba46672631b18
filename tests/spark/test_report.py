"""The report's queries against an oracle of plain Python over the same rows."""

import random
import shutil
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from highwater.pipelines.base.config import Config, load_config
from highwater.pipelines.base.errors import InputError
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.report.collect import collect_report
from highwater.pipelines.report.collect_detail import collect_detail
from highwater.pipelines.report.model import Report, RunInfo
from highwater.pipelines.rules.registry import RULES
from highwater.schemas.audit import EVIDENCE, RULE_RESULTS, VIOLATIONS
from highwater.schemas.bronze import LOG_FILES
from highwater.schemas.gold import CLASSES, COVERAGE, DELAYED_OPERATIONS, HOLES, REPLICA_BLAME, REQUEST_PHASES
from highwater.schemas.silver import BROKER_CONFIGS, BROKER_LIFECYCLE
from highwater.schemas.table import TableSpec
from tests.unit.report import ranges
from tests.unit.report.rows import (
    START,
    Row,
    at,
    blame_interval,
    config_rows,
    covered,
    fetch,
    found,
    log_file,
    operation,
    proof,
    quantile,
    random_appends,
    random_fetches,
    random_operations,
    random_requests,
    result,
    source,
)

SLOW_MS = 20
RUN = RunInfo("run-1", "0.1.0", "c0ffee", "f00d", (("x/broken.log.gz", "truncated gzip: copy the file again"),))
SPLIT = ("wait_for_fetch", "carry", "follower", "closing_fetch", "completion", "isr_change")


@pytest.fixture(scope="module")
def config() -> Config:
    return load_config(None, {"latency.slow_ms": SLOW_MS})


def fill(lake: Lake, spec: TableSpec, rows: list[Row]) -> None:
    """Write rows; columns left out are null."""
    lake.replace(spec, lake.spark.createDataFrame(pa.Table.from_pylist(rows, spec.arrow_schema)))


def near(value: float | None) -> Any:
    return value if value is None else pytest.approx(value, abs=0.011)


def minimal(lake: Lake) -> None:
    fill(lake, LOG_FILES, [log_file("a/server.log", 1)])
    fill(lake, COVERAGE, [covered(1, "request.produce", 10)])


def collect(lake: Lake, config: Config, since: datetime | None = None, until: datetime | None = None) -> Report:
    return collect_report(lake, config, run=RUN, since=since, until=until)


PRODUCES = random_operations(seed=7, size=600)
FETCHES = random_fetches(seed=9, size=700)
APPENDS = random_appends(seed=8, size=400)
REQUESTS = random_requests(seed=3, size=500)
WINDOWS = {"all": (None, None), "half a minute": (15_000, 45_000)}


@pytest.fixture(scope="module")
def busy(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake of operations of every kind; those of one kind change nothing of the others'. To be read only."""
    lake = Lake(spark, tmp_path_factory.mktemp("busy"))
    minimal(lake)
    fill(lake, DELAYED_OPERATIONS, PRODUCES + FETCHES + APPENDS)
    fill(lake, REQUEST_PHASES, REQUESTS)
    intervals = [
        blame_interval(3, at(44_000), True, "coordinator"),
        blame_interval(2, at(44_999), True),
        blame_interval(3, at(45_000), True),
        blame_interval(1, at(0), False),
    ]
    fill(lake, REPLICA_BLAME, intervals)
    return lake


@pytest.fixture(scope="module")
def reports(busy: Lake, config: Config) -> dict[str, Report]:
    """Its reports by window."""
    bounds = {name: [None if ms is None else at(ms) for ms in window] for name, window in WINDOWS.items()}
    return {name: collect(busy, config, since, until) for name, (since, until) in bounds.items()}


def total_of(row: Row) -> float:
    """totalTimeMs: until the response was sent."""
    return (row["line_time"] - row["arrival_time"]) / timedelta(milliseconds=1)


def without_of(row: Row) -> float:
    """The same without the replica that closed it."""
    if row["wait_without_closing_ms"] is None:
        return total_of(row)
    return min(total_of(row), total_of(row) - row["wait_ms"] + row["wait_without_closing_ms"])


def explained(rows: list[Row], candidates: set[int]) -> set[int]:
    """Of brokers that stood out in an interval those whose share of slow waiting is 0.2 above their share of all."""
    slow = {id(row): max(row["wait_ms"] - SLOW_MS, 0) for row in rows}
    return {
        broker_id
        for broker_id in candidates
        for of_broker in [[row for row in rows if blamed_of(row) == broker_id]]
        if sum(slow[id(row)] for row in of_broker) / sum(slow.values()) >= len(of_broker) / len(rows) + 0.2
    }


def blamed_of(row: Row) -> int:
    return row["closing_replica"] or (row["broker_id"] if row["closing_role"] == "leader" else -1)


@pytest.mark.parametrize("window", WINDOWS)
def test_operations_and_blame_agree_with_plain_python(reports: dict[str, Report], window: str) -> None:
    report = reports[window]
    since, until = (None if ms is None else at(ms) for ms in WINDOWS[window])
    rows = [
        row
        for row in PRODUCES
        if (since is None or row["arrival_time"] >= since) and (until is None or row["arrival_time"] < until)
    ]
    produce = report.operations.produce
    classes = Counter(row["class"] for row in rows)
    assert produce.observed == len(rows)
    assert {name: getattr(produce, name) for name in CLASSES} == {name: classes[name] for name in CLASSES}
    assert produce.replayed == len(rows) - classes["unobservable"]
    assert produce.by_cause == Counter(row["cause"] for row in rows)
    assert produce.late_reasons == {"lost_wake_up": classes["late"]}
    assert produce.unobservable_reasons == {"fetch_not_logged": classes["unobservable"]}
    assert produce.known_bugs == Counter(row["known_bug"] for row in rows if row["known_bug"])

    good = [row for row in rows if row["succeeded"]]
    assert (produce.succeeded, produce.with_error) == (len(good), len(rows) - len(good))
    for n in (1, 5, 20):
        close = [row for row in good if row["residual_ms"] is not None and abs(row["residual_ms"]) <= n]
        assert produce.within_ms[str(n)] == pytest.approx(len(close) / len(good), abs=1e-6)
    distances = [abs(row["residual_ms"]) for row in rows if row["residual_ms"] is not None]
    for name, q in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999), ("max", 1)):
        assert getattr(produce.residual_ms, name) == near(quantile(distances, q)), name
    widths = [row["interval_width_ms"] for row in rows if row["interval_width_ms"] is not None]
    assert produce.interval_width_ms.p99 == near(quantile(widths, 0.99))

    split = [row for row in rows if row["wait_completion_ms"] is not None]
    assert report.latency.produce_acks_all.split == len(split)
    for name in SPLIT:
        column = f"{name.removeprefix('wait_')}_ms" if name == "wait_for_fetch" else f"{name}_ms"
        parts = [row.get(f"wait_{column}") or 0.0 for row in split]
        times = report.latency.produce_acks_all.phases_ms[name]
        assert times.mean == near(sum(parts) / len(parts)), name
        assert times.p99 == near(quantile(parts, 0.99)), name

    all_slow = sum(max(row["wait_ms"] - SLOW_MS, 0) for row in good)
    assert {blame.broker_id for blame in report.blame} == {blamed_of(row) for row in good}
    assert report.blame[-1].broker_id == -1
    slow_waits = [blame.slow_wait_ms_total for blame in report.blame[:-1]]
    assert slow_waits == sorted(slow_waits, reverse=True)
    for blame in report.blame:
        own = [row for row in good if blamed_of(row) == blame.broker_id]
        slow = sum(max(row["wait_ms"] - SLOW_MS, 0) for row in own)
        without = [without_of(row) if row in own else total_of(row) for row in good]
        assert blame.operations == len(own)
        assert blame.share == pytest.approx(slow / all_slow, abs=1e-5)
        assert blame.share_wait == pytest.approx(
            sum(r["wait_ms"] for r in own) / sum(r["wait_ms"] for r in good), abs=1e-5
        )
        assert blame.wait_ms_total == near(sum(row["wait_ms"] for row in own))
        assert blame.wait_ms_p99 == near(quantile([row["wait_ms"] for row in own], 0.99))
        assert blame.operations_slow == sum(row["wait_ms"] > SLOW_MS for row in own)
        assert blame.p99_ms_actual == near(quantile([total_of(row) for row in good], 0.99))
        assert blame.p99_ms_without == (near(quantile(without, 0.99)) if blame.broker_id >= 0 else None)
        assert blame.role == Counter(row["closing_role"] or "unknown" for row in own)
    candidates = {2} if until else {2, 3}
    assert {blame.broker_id for blame in report.blame if blame.singled_out} == explained(good, candidates)

    starts = Counter((row["arrival_time"] - START) // timedelta(seconds=10) for row in rows)
    assert [interval.observed for interval in report.timeline] == [starts[key] for key in sorted(starts)]
    assert report.timeline[0].time == ("2026-11-20T14:00:10.000Z" if since else "2026-11-20T14:00:00.000Z")
    assert sum(interval.slow for interval in report.timeline) == sum(row["wait_ms"] > SLOW_MS for row in rows)

    assert report.verdict == "violated"
    expected = sorted((row for row in rows if row["class"] == "contradicted"), key=lambda r: -abs(r["residual_ms"]))
    worst = [row.correlation_id for row in produce.worst]
    assert worst[: len(expected)] == [row["correlation_id"] for row in expected][: len(worst)]


def within(measured: list[Row], n: int) -> Any:
    close = [row for row in measured if row["class"] != "unobservable" and abs(row["residual_ms"]) <= n]
    return pytest.approx(len(close) / len(measured), abs=1e-6)


def test_fetches_agree_with_plain_python(reports: dict[str, Report]) -> None:
    rows, fetches = FETCHES, reports["all"].operations.fetch
    waited = [row for row in rows if row["parked"]]
    for figures, own in ((fetches, rows), (fetches.parked, waited)):
        classes = Counter(row["class"] for row in own)
        assert (figures.observed, figures.replayed) == (len(own), len(own) - classes["unobservable"])
        assert {name: getattr(figures, name) for name in CLASSES} == {name: classes[name] for name in CLASSES}
        assert figures.by_cause == Counter(row["cause"] for row in own)
        assert figures.succeeded == sum(row["succeeded"] for row in own)
        for n in (1, 5, 20):
            assert figures.within_ms[str(n)] == within(own, n)
        distances = [abs(row["residual_ms"]) for row in own if row["class"] != "unobservable"]
        assert figures.residual_ms.p95 == near(quantile(distances, 0.95))
        assert figures.residual_ms.max == near(max(distances))
        assert figures.interval_width_ms.p99 == near(quantile([row["interval_width_ms"] for row in own], 0.99))
    not_shown = ("append_not_logged", "session_not_logged")
    known = [row for row in rows if row["cause"] != "unknown" and row["class_reason"] not in not_shown]
    assert fetches.cause_known == pytest.approx(len(known) / len(rows), abs=1e-6)

    def reader(row: Row) -> tuple[str, int | None, str | None]:
        if row["replica_id"] >= 0:
            return "follower", None, None
        return "consumer", row["min_bytes"], "read_committed" if row["isolation_level"] == 1 else "read_uncommitted"

    readers = Counter(map(reader, rows))
    told = {(group.reader, group.min_bytes, group.isolation_level): group for group in fetches.groups}
    assert {key: group.observed for key, group in told.items()} == readers
    assert [group.observed for group in fetches.groups] == sorted(readers.values(), reverse=True)
    for key, group in told.items():
        own = [row for row in rows if reader(row) == key]
        parked = [row for row in own if row["parked"]]
        assert group.parked == len(parked)
        assert group.within_ms["5"] == within(parked, 5)
        assert group.late == sum(row["class"] == "late" for row in own)
        assert group.by_cause == Counter(row["cause"] for row in own)

    worst = sorted((row for row in rows if row["class"] == "late"), key=lambda row: -abs(row["residual_ms"]))
    assert [row.correlation_id for row in fetches.worst][: len(worst)] == [row["correlation_id"] for row in worst][:10]
    assert {row.api for row in fetches.worst} == {"FETCH"}


def test_coordinators_agree_with_plain_python(reports: dict[str, Report]) -> None:
    rows, report = APPENDS, reports["all"]
    made = report.operations.coordinator
    classes = Counter(row["class"] for row in rows)
    good = [row for row in rows if row["succeeded"]]
    assert {name: getattr(made, name) for name in CLASSES} == {name: classes[name] for name in CLASSES}
    assert made.within_ms["5"] == within(good, 5)
    assert {api: figures.observed for api, figures in made.by_api.items()} == {"END_TXN": 200, "OFFSET_COMMIT": 200}
    for api, figures in made.by_api.items():
        assert figures.late == sum(row["class"] == "late" and row["api"] == api for row in rows)
        assert figures.within_ms["5"] == within([row for row in good if row["api"] == api], 5)
    assert {blame.broker_id: blame.operations for blame in report.blame_coordinator} == Counter(map(blamed_of, good))
    assert {blame.broker_id for blame in report.blame_coordinator if blame.singled_out} == explained(good, {3})
    for blame in report.blame_coordinator:
        own = [row["wait_ms"] for row in good if blamed_of(row) == blame.broker_id]
        assert blame.wait_ms_p99 == near(quantile(own, 0.99))
        assert blame.p99_ms_actual == near(quantile([total_of(row) for row in good], 0.99))


def test_the_verdict_is_about_produces(lake: Lake, config: Config) -> None:
    fill(lake, LOG_FILES, [log_file("a/server.log", 1)])
    fill(lake, COVERAGE, [covered(1, "request.produce", 10)])
    info = RunInfo("run-1", "0.1.0", "c0ffee", "f00d")
    others = [
        fetch(1, **{"class": "late"}, residual_ms=500.0),
        fetch(2, **{"class": "unobservable"}, residual_ms=None),
        operation(3, api="END_TXN", **{"class": "contradicted"}, residual_ms=-50.0),
    ]

    def verdict() -> str:
        return collect_report(lake, config, run=info, since=None, until=None).verdict

    fill(lake, DELAYED_OPERATIONS, others)
    assert verdict() == "inconclusive"  # no produce was seen
    fill(lake, DELAYED_OPERATIONS, [*others, operation(4)])
    assert verdict() == "clean"


def test_latency_by_kind_of_request(reports: dict[str, Report]) -> None:
    rows, latency = REQUESTS, reports["all"].latency
    kinds = {
        "produce_acks_all": [row for row in rows if row["acks"] == -1],
        "produce_acks_1": [row for row in rows if row["acks"] in (0, 1)],
        "fetch_follower": [row for row in rows if row["replica_id"] == 2],
        "fetch_consumer": [row for row in rows if row["replica_id"] == -1],
        "end_txn": [row for row in rows if row["api"] == "END_TXN"],
    }
    assert set(latency.by_kind) == set(kinds)
    for name, own in kinds.items():
        kind = getattr(latency, name)
        totals = [row["total_time_ms"] for row in own]
        waits = [row["remote_time_ms"] for row in own]
        assert kind.requests == len(own)
        assert kind.total_ms.p50 == near(quantile(totals, 0.5))
        assert kind.total_ms.p999 == near(quantile(totals, 0.999))
        assert kind.phases_ms["remote"].mean == near(sum(waits) / len(waits))
        assert kind.phases_ms["remote"].p99 == near(quantile(waits, 0.99))
        assert kind.phases_within_1_ms == pytest.approx(
            sum(abs(r["unaccounted_ms"]) <= 1 for r in own) / len(own), abs=1e-6
        )
    accounted = sum(abs(row["unaccounted_ms"]) <= 1 for row in rows)
    assert latency.phases_within_1_ms == pytest.approx(accounted / len(rows), abs=1e-6)


def test_brokers_tiers_coverage_and_provenance(lake: Lake, config: Config) -> None:
    fill(
        lake,
        LOG_FILES,
        [
            log_file("1/server.log", 1, mode="kraft", kafka_version="3.9.1"),
            log_file("1/kafka-request.log", 1, first_time=at(-5), last_time=at(9_000), line_count=50),
            log_file("2/server.log", 2, problem="empty file", first_time=None, last_time=None),
            log_file("9/server.log", 9),
            log_file("stray.log", None, cluster_id=None),
        ],
    )
    partition = {"logger": "kafka.cluster.Partition", "level": "DEBUG"}
    delayed = {"logger": "kafka.server.DelayedProduce", "level": "TRACE"}
    fill(
        lake,
        COVERAGE,
        [
            covered(1, "request.produce", 600),
            covered(1, "partition.hw", 50, **partition),
            covered(1, "delayed.initial", 50, **delayed),
            covered(1, "server.known", 200, outcome="known"),
            covered(1, "odd <n>", 7, outcome="unparsed"),
            covered(2, "delayed.initial", 50, **delayed),
            covered(2, "odd <n>", 3, outcome="unparsed"),
            covered(2, "request.received", 1, outcome="known"),
            covered(2, "request.produce", 4, level="INFO"),  # only those of deprecated versions: no request log
            covered(9, "server.known", 2, outcome="known"),
        ],
    )
    fill(lake, BROKER_CONFIGS, config_rows())
    fill(
        lake,
        BROKER_LIFECYCLE,
        [
            source(1, 1, 5) | {"event": "version", "kafka_version": "3.9.0"},
            source(2, 1, 50) | {"event": "version", "kafka_version": "3.9.1"},
            source(3, 1, 60) | {"event": "starting", "mode": "kraft"},
        ],
    )
    fill(lake, DELAYED_OPERATIONS, [operation(1)])
    hole = {"cluster_id": "c", "broker_id": 1, "kind": "server", "reason": "not_read"}
    fill(lake, HOLES, [hole | {"message": "broker 1's server.log was not read to its end"}])

    report = collect(lake, config)

    assert report.tier_by_broker == {"c/1": "T3", "c/2": "T0", "c/9": "T0", "unknown/-1": "T0"}
    assert report.tier == "T0"
    first = report.brokers[0]
    assert (first.broker_id, first.files, first.lines, first.kafka_version, first.mode) == (1, 2, 150, "3.9.1", "kraft")
    assert (first.first_time, first.last_time) == ("2026-11-20T13:59:59.995Z", "2026-11-20T14:00:09.000Z")
    assert first.config == {"listeners": None, "min.insync.replicas": "3"}
    coverage = report.coverage
    assert (coverage.lines, coverage.parsed, coverage.unparsed) == (967, 957, 10)
    assert [(gap.count, gap.template) for gap in coverage.top_unparsed] == [(10, "odd <n>")]
    # Node 9 is a controller only: it leads nothing, so nothing of it is missed.
    assert [gap.needs.split(" --entity-name ")[-1] for gap in coverage.not_checkable] == [
        "2 --alter --add-config kafka.request.logger=DEBUG",
        "put each broker's server.log into the folder of its other logs",
    ]
    assert report.verdict == "inconclusive"
    assert report.inconclusive == ("broker 1's server.log was not read to its end",)
    assert report.problems == ("2/server.log: empty file", "x/broken.log.gz: truncated gzip: copy the file again")
    assert report.provenance.delta_versions == lake.versions()
    assert [file.file for file in report.provenance.inputs][-1] == "stray.log"


def test_findings_of_the_window_with_their_lines(lake: Lake, config: Config) -> None:
    minimal(lake)
    fill(lake, DELAYED_OPERATIONS, [operation(1)])
    first, second = RULES[0].rule_id, RULES[1].rule_id
    rows = [
        found(1, rule_id=first, time=at(999)),
        found(2, rule_id=first, time=at(1000)),
        found(3, rule_id=second, time=at(1500), implied_by="v2"),
        found(4, rule_id=first, time=None),
        found(5, rule_id=second, time=at(1999), severity="observation"),
        found(6, rule_id=first, time=at(2000), severity="open"),
    ]
    fill(lake, VIOLATIONS, rows)
    fill(lake, EVIDENCE, [proof(f"v{number}", place) for number in range(1, 7) for place in (1, 0)])
    reason = "1 case cannot be decided from these logs"
    results = [result(second), result(first, "violated", cases=3, open_cases=1, reason=reason)]
    fill(lake, RULE_RESULTS, results)

    report = collect(lake, config)

    assert report.verdict == "violated"
    assert f"{first}: {reason}" in report.inconclusive
    assert [one.finding_id for one in report.violations] == ["v1", "v2", "v4"]
    assert [rule.rule_id for rule in report.rules] == [first, second]

    report = collect(lake, config, at(1000), at(2000))

    assert [one.finding_id for one in report.violations] == ["v2", "v4"]
    assert [[other.finding_id for other in one.implied] for one in report.violations] == [["v3"], []]
    assert [one.finding_id for one in report.observations] == ["v5"]
    assert report.open_cases == ()
    lines = report.violations[0].evidence
    assert [(line.line_no, line.text) for line in lines] == [(1, "line 0"), (2, "line 1")]
    assert report.violations[0].brokers == (1, 2)


def test_a_lake_with_files_only_is_inconclusive(lake: Lake, config: Config) -> None:
    fill(lake, LOG_FILES, [log_file("1/server.log", 1)])

    report = collect(lake, config, since=START)

    assert report.verdict == "inconclusive"
    assert report.inconclusive[0] == "no log record was read"
    assert report.operations.produce.within_ms == {"1": None, "5": None, "20": None}
    assert report.blame == report.blame_coordinator == ()
    assert (report.operations.fetch.observed, report.operations.coordinator.observed) == (0, 0)
    assert report.latency.phases_within_1_ms is None
    assert report.timeline == ()
    assert report.window.since == "2026-11-20T14:00:00.000Z"


def test_an_empty_lake_is_an_input_error(lake: Lake, config: Config) -> None:
    with pytest.raises(InputError, match=r"bronze\.log_files"):
        collect(lake, config)


def test_a_long_timeline_is_coarsened(lake: Lake, config: Config) -> None:
    minimal(lake)
    fill(lake, DELAYED_OPERATIONS, [operation(0), operation(1, arrival_ms=40_000_000.0)])

    report = collect(lake, config)

    # 40,000 s in intervals of 10 s would be 4,000 of them; 2,000 is the limit.
    assert [interval.interval_s for interval in report.timeline] == [40, 40]
    assert any("timeline" in note and "too long" in note for note in report.notes)


def test_the_same_rows_in_more_files_give_the_same_report(
    spark: SparkSession, busy: Lake, reports: dict[str, Report], config: Config, tmp_path: Path
) -> None:
    lake = Lake(spark, Path(shutil.copytree(busy.root, tmp_path / "lake")))
    rows = PRODUCES + FETCHES + APPENDS
    random.Random(1).shuffle(rows)
    frame = spark.createDataFrame(pa.Table.from_pylist(rows, DELAYED_OPERATIONS.arrow_schema))
    lake.replace(DELAYED_OPERATIONS, frame.repartition(7))
    once, again = reports["all"].model_dump(), collect(lake, config).model_dump()
    for report in (once, again):
        del report["provenance"]["delta_versions"]
    assert again == once


def test_a_range_of_the_page_has_the_figures_of_a_report_of_that_window(
    busy: Lake, config: Config, reports: dict[str, Report]
) -> None:
    detail = collect_detail(busy, config, None, None, None)
    cubes = detail.cubes
    assert cubes is not None
    since, until = WINDOWS["half a minute"]
    assert since is not None
    assert until is not None
    start_s = int(START.timestamp()) - cubes.start_s
    first, last = ((start_s + ms // 1000) // cubes.interval_s for ms in (since, until))
    report = reports["half a minute"]
    for kind, operations, blamed in (
        ("produce", report.operations.produce, report.blame),
        ("coordinator", report.operations.coordinator, report.blame_coordinator),
    ):
        found = ranges.operations(cubes, kind, first, last)
        counts = found[None].counts
        for name in ("observed", "with_error", *CLASSES):
            assert counts[name] == getattr(operations, name), (kind, name)
        for n in (1, 5, 20):
            assert counts[f"within_{n}"] / operations.succeeded == pytest.approx(operations.within_ms[str(n)], abs=1e-6)
        assert found.keys() - {None} == {row.broker_id for row in blamed}
        all_slow = counts["slow_wait_us"]
        for row in blamed:
            own = found[row.broker_id]
            assert sum(own.wait.values()) == row.operations
            assert own.counts["slow"] == row.operations_slow
            assert own.counts["wait_us"] / 1000 == pytest.approx(row.wait_ms_total, abs=0.001)
            assert own.counts["slow_wait_us"] / all_slow == pytest.approx(row.share, abs=1e-6)
            read = [
                ranges.quantile(own.wait, 0.99, cubes.growth),
                ranges.quantile(found[None].total, 0.99, cubes.growth),
            ]
            exact = [row.wait_ms_p99, row.p99_ms_actual]
            if row.broker_id >= 0:
                read.append(ranges.quantile(ranges.without(cubes, found, row.broker_id), 0.99, cubes.growth))
                exact.append(row.p99_ms_without)
            assert read == [pytest.approx(value, rel=cubes.accuracy + 0.001, abs=0.02) for value in exact]


def test_what_only_the_page_shows_costs_no_query(busy: Lake, config: Config) -> None:
    tracker = busy.spark.sparkContext.statusTracker()
    busy.spark.sparkContext.setJobGroup("detail", "detail")
    try:
        collect_detail(busy, config, None, None, None)
        assert list(tracker.getJobIdsForGroup("detail")) == []
    finally:
        busy.spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
