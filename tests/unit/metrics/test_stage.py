"""The stage and the verb on small tables, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from jobs import cli
from jobs.exit_codes import ExitCode
from pipelines.base.blobs import unpack
from pipelines.cluster.premises import STARTING, LifecycleRow, LogFile, Premises
from pipelines.kafka.controller_rows import LineRef
from pipelines.lake.batches import batches_of
from pipelines.lake.lake import Lake
from pipelines.metrics.mbeans import REQUEST_TIMES, UNDER_REPLICATED
from pipelines.metrics.request_stage import _each_once, _ranges
from pipelines.metrics.requests import IDENTITY
from pipelines.metrics.stage import Counts, collect_rows, partition_steps
from pipelines.replay.broker_lines import ORDER, STEPS
from pipelines.replay.timeline import leadership_fold
from pipelines.replay.window import WHOLE
from schemas import silver
from schemas.gold import DELAYED_OPERATIONS
from schemas.isr import ISR_TIMELINE
from schemas.metrics import BROKER_METRICS
from schemas.table import TableSpec
from schemas.timelines import BROKER_TIMELINE

BEGIN = datetime(2026, 11, 20, 12, tzinfo=UTC)
BEGIN_US = int(BEGIN.timestamp()) * 1_000_000
MINUTE_US = 60_000_000


def _at(second: float) -> datetime:
    return BEGIN + timedelta(seconds=second)


def _put(lake: Lake, spec: TableSpec, rows: list[Mapping[str, Any]]) -> None:
    source = {"cluster_id": "c", "broker_id": 1, "file_id": "f", "line_no": 1, "fact_no": 0, "time": BEGIN}
    numbered = [{**source, "byte_offset": place, **row} for place, row in enumerate(rows)]
    whole = [{name: row.get(name) for name in spec.column_names} for row in numbered]
    lake.replace(spec, pa.Table.from_pylist(whole, schema=spec.arrow_schema))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A broker that starts, leads a partition, and loses a follower; its server.log alone."""
    lake = Lake(cast(Any, None), tmp_path / "lake")
    _put(lake, silver.BROKER_LIFECYCLE, [{"time": _at(5), "event": STARTING}])
    state = {"position": 0, "state": "starting", "begin_by_time": _at(5), "reason": "booted", "witnesses": []}
    _put(lake, BROKER_TIMELINE, [state])
    start = {"role": "leader_start", "topic": "t", "partition": 0, "leader": 1, "leader_epoch": 0, "partition_epoch": 0}
    _put(
        lake,
        silver.LEADER_AND_ISR,
        [{**start, "time": _at(10), "isr": [1, 2], "replicas": [1, 2]}],
    )
    change = {"change": "committed", "topic": "t", "partition": 0, "isr": [1], "leader_epoch": 0, "partition_epoch": 1}
    _put(lake, silver.ISR_CHANGES, [{**change, "time": _at(70)}])
    made = {
        "topic": "t",
        "partition": 0,
        "change_time": _at(69),
        "replica_id": 2,
        "change": "shrink",
        "isr_before": [1, 2],
    }
    made |= {"isr_after": [1], "made_by": "leader", "class": "predicted", "lag_time_max_ms": 30_000}
    # Of the second one the controller's metadata told first, so that the leader has no line of it.
    of_metadata = {**made, "topic": "u", "committed_time": _at(80)}
    _put(lake, ISR_TIMELINE, [{**made, "committed_time": _at(70)}, of_metadata])
    return lake


@pytest.fixture
def premises() -> Premises:
    file = LogFile("f", "server.log", "server", "c", 1, BEGIN_US + 5_000_000, BEGIN_US + 125_000_000, True)
    life = LifecycleRow("c", 1, BEGIN_US + 5_000_000, LineRef("f", 0, 1), STARTING, "kraft", None, None)
    return Premises(files=(file,), lives=(life,))


def _counts(lake: Lake, premises: Premises, since_us: int = 0) -> Counts:
    """What the fold of the replay gives, without Spark."""
    fold = leadership_fold(premises, WHOLE, since_us)
    batches = [
        rows
        for reading in fold.sources
        for batch in batches_of(lake, reading.spec, reading.columns)
        for rows in reading.rows_of(batch)
    ]
    order = [(name, "ascending") for name in (*fold.rows.key, *ORDER)]
    lines = pa.Table.from_batches(batches).sort_by(order).select([*fold.rows.key, *fold.rows.taken])
    blobs = [blob for blob in fold.worker(iter(lines.to_batches())) if blob["table"][0].as_py() == STEPS]
    return partition_steps(pa.Table.from_batches(unpack(blobs)))


def _told(lake: Lake, premises: Premises, since_us: int = 0) -> dict[tuple[str, int], Any]:
    return {
        (row["name"], (row["interval_start"] - BEGIN_US) // MINUTE_US): row.get("value", row.get("event_count"))
        for row in collect_rows(lake, premises, _counts(lake, premises, since_us), MINUTE_US, since_us)
    }


def test_a_broker_without_a_request_log_has_its_partitions_and_no_requests(lake: Lake, premises: Premises) -> None:
    told = _told(lake, premises)
    assert [told["LeaderCount", minute] for minute in (0, 1, 2)] == [1, 1, 1]
    assert [told["UnderReplicatedPartitions", minute] for minute in (0, 1, 2)] == [0, 1, 1]
    assert [told["IsrShrinksPerSec", minute] for minute in (0, 1, 2)] == [0, 1, 0]
    assert not {name for name, _ in told} & {"TotalTimeMs", "RequestsPerSec", "NumDelayedOperations", "MaxLag"}


def test_intervals_from_an_instant_on_are_those_of_all(lake: Lake, premises: Premises) -> None:
    whole, later = _told(lake, premises), _told(lake, premises, BEGIN_US + MINUTE_US)
    assert later == {key: value for key, value in whole.items() if key[1] >= 1}


@pytest.mark.parametrize(("level", "is_told"), [("DEBUG", True), ("INFO", False)])
def test_requests_of_deprecated_versions_alone_are_no_metrics(
    lake: Lake, premises: Premises, level: str, is_told: bool
) -> None:
    """KAFKA-18272: at INFO a broker logs only those."""
    _put(lake, silver.PRODUCE_REQUESTS, [_produce(20)])
    _put_level(lake, level)
    assert (("TotalTimeMs", 0) in _told(lake, premises)) is is_told


def test_a_long_log_is_told_range_by_range(lake: Lake, premises: Premises, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = (1, 20, 59, 61, 125, 200)
    _put(lake, silver.PRODUCE_REQUESTS, [_produce(second) for second in seconds])
    _put_level(lake, "DEBUG")
    waits = [(10, 20), (50, 70), (60, 130)]
    fields = [field for field in DELAYED_OPERATIONS.arrow_schema if not field.nullable]
    required = {
        field.name: pa.scalar(0).cast(field.type).as_py() for field in fields if pa.types.is_primitive(field.type)
    }
    required |= {
        field.name: "" if pa.types.is_string(field.type) else [] for field in fields if field.name not in required
    }
    operation = {**required, "cluster_id": "c", "broker_id": 1, "operation": "produce", "api": "PRODUCE"}
    operation |= {"class": "explained", "wait_ms": 1.0}
    _put(
        lake,
        DELAYED_OPERATIONS,
        [
            {**operation, "arrival_time": _at(begun), "handled_time": _at(begun), "completed_time": _at(ended)}
            for begun, ended in waits
        ],
    )
    whole = _rows(lake, premises)
    assert {row["interval_start"] for row in whole if row["name"] == "NumDelayedOperations"} == {
        BEGIN_US + minute * MINUTE_US for minute in (0, 1, 2, 3)
    }
    monkeypatch.setattr("pipelines.metrics.request_stage._RANGE_INTERVALS", 1)
    assert _rows(lake, premises) == whole
    monkeypatch.setattr("pipelines.metrics.request_stage._RANGES_MAX", 0)
    assert _rows(lake, premises) == whole


def test_ranges_do_not_grow_with_the_distance_between_two_requests(lake: Lake) -> None:
    ends = [BEGIN_US, BEGIN_US + 100 * 365 * 24 * 60 * MINUTE_US]
    files = tuple(LogFile("f", "r.log", "kafka-request", "c", 1, at, at + 1, True) for at in ends)
    _put(lake, silver.PRODUCE_REQUESTS, [_produce((at - BEGIN_US) / 1_000_000) for at in ends])
    ranges = list(_ranges(lake, Premises(files=files), MINUTE_US, 0))
    assert len(ranges) <= 3
    assert [part.until_us for part in ranges[:-1]] == [part.since_us for part in ranges[1:]]
    assert (ranges[0].since_us, ranges[-1].until_us) == (0, None)


def _rows(lake: Lake, premises: Premises) -> list[dict[str, Any]]:
    return sorted(collect_rows(lake, premises, _counts(lake, premises), MINUTE_US, 0), key=repr)


def _produce(second: float) -> dict[str, Any]:
    at = dict.fromkeys(("time", "arrival_time", "dequeued_time", "handled_time", "completed_time"), _at(second))
    parts = [{"topic": "t", "partition": 0, "error_code": 0}]
    return {"api": "PRODUCE", "acks": -1, "partitions": parts, **dict.fromkeys(REQUEST_TIMES, 1.0), **at}


def _put_level(lake: Lake, level: str) -> None:
    count = {"kind": "kafka-request", "level": level, "template": "request.produce", "outcome": "typed"}
    _put(lake, silver.LINE_COUNTS, [{**count, "line_count": 1}])


def _verb(*arguments: str) -> int:
    return cli.run(["metrics", *arguments])


def test_the_verb_writes_what_a_lake_has(lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"interval_start": BEGIN, "interval_s": 60, "mbean": UNDER_REPLICATED.mbean(), "name": UNDER_REPLICATED.name}
    _put(lake, BROKER_METRICS, [{**row, "kind": "gauge", "measured": "exact", "value": 2.0}])
    where = ("--lake", str(lake.root), "--out", str(tmp_path / "out"))
    assert _verb(*where) == ExitCode.CLEAN
    assert (tmp_path / "out/broker-1/UnderReplicatedPartitions.csv").read_text().splitlines()[1].endswith(",2")
    assert _verb(*where, "--format", "openmetrics", "--until", "2026-11-20T12:01") == ExitCode.CLEAN
    assert (tmp_path / "out/metrics.openmetrics.txt").read_text().endswith("# EOF\n")
    assert _verb(*where, "--from", "2026-11-20T12:01") == ExitCode.USAGE
    assert "has no metrics of that time" in capsys.readouterr().err


def test_the_verb_names_what_is_missing(lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _verb("--lake", str(lake.root)) == ExitCode.USAGE
    assert "holds no table gold.broker_metrics; run `highwater audit`" in capsys.readouterr().err
    assert _verb("--lake", str(tmp_path / "nowhere")) == ExitCode.USAGE
    assert "is not a lake" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    row = {"interval_start": BEGIN, "interval_s": 60, "mbean": UNDER_REPLICATED.mbean(), "name": UNDER_REPLICATED.name}
    _put(lake, BROKER_METRICS, [{**row, "kind": "gauge", "measured": "exact", "value": 2.0}])
    assert _verb("--lake", str(lake.root), "--out", str(tmp_path / "file")) == ExitCode.USAGE
    assert _verb("--from", "2026-11-20T12:01", "--until", "2026-11-20T12:00") == ExitCode.USAGE


def test_a_batch_whose_lines_all_stand_in_another_file_too_has_none_left() -> None:
    names = IDENTITY
    batch = pa.RecordBatch.from_pylist([dict.fromkeys(names, "a"), dict.fromkeys(names, "b")])
    assert [part.num_rows for part in _each_once([batch, batch, batch.slice(1)])] == [2, 0, 0]
