"""Old days are dropped, and what is told of the days that stay does not change: not by a run, not by a replay of all
that is left, not by a late file. Closed days stay as they were told.

The slice has a minute. Its clocks are moved so that midnight lies within it, and what a replay needs of the time before
its anchor is cut to a second.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from highwater.pipelines.base.config import Config, load_config
from highwater.pipelines.base.errors import InputError
from highwater.pipelines.gold import gold as gold_stage
from highwater.pipelines.kafka import seals
from highwater.pipelines.lake.delta_commits import allow_commits
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.silver import parse as parse_stage
from highwater.pipelines.silver.parse import parse
from highwater.pipelines.upkeep import expiry
from highwater.schemas import bronze, gold, silver
from highwater.schemas.audit import RULE_RESULTS
from highwater.schemas.incidents import INCIDENTS
from highwater.schemas.state import EXPIRIES, FOLDS, RUNS
from highwater.schemas.table import TableSpec
from tests.catalog import ANSWERS
from tests.cuts import cut_at, deliver
from tests.ingests import ingest
from tests.spark.audits.test_clusters import of_west
from tests.verbs import SLICE

TIME = re.compile(rb"^\[(2026-11-20 \d\d:\d\d:\d\d,\d{3})\]", re.MULTILINE)
MIDNIGHT = datetime(2026, 11, 21, tzinfo=UTC)
#: When midnight comes, on the slice's own clocks: it has requests from 15:33:52 to 15:34:26.
AT = datetime(2026, 11, 20, 15, 34, 24, tzinfo=UTC)
TODAY = MIDNIGHT + timedelta(days=1, hours=3)
KEEP = expiry.Keep(1, 1, None)
#: Told of runs, not of days.
OF_RUNS = (gold.RUNS, gold.COVERAGE, RULE_RESULTS)
LATE_BROKER = 3

Rows = dict[str, list[tuple[Any, ...]]]


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return pieces_of(tmp_path_factory, AT)


def pieces_of(tmp_path_factory: pytest.TempPathFactory, at: datetime) -> list[Path]:
    """The slice, in two pieces up to midnight, and two after it.

    Args:
        at: when midnight comes, on the slice's own clocks.
    """
    moved = tmp_path_factory.mktemp("moved")
    plain = cut_at(SLICE, tmp_path_factory.mktemp("plain"), [])[0]
    for path in plain.rglob("*"):
        if path.is_file():
            target = moved / path.relative_to(plain)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(TIME.sub(partial(_moved, at=at), path.read_bytes()))
    instants = [MIDNIGHT + timedelta(seconds=seconds) for seconds in (-24, 0, 1)]
    return cut_at(moved, tmp_path_factory.mktemp("pieces"), instants)


def _moved(found: re.Match[bytes], at: datetime) -> bytes:
    time = datetime.strptime(found[1].decode(), "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC) + (MIDNIGHT - at)
    return f"[{time:%Y-%m-%d %H:%M:%S},{time.microsecond // 1000:03}]".encode()


@pytest.fixture(scope="module")
def config() -> Config:
    return load_config(None, {"replay.seal_lag_ms": 10_000})


@pytest.fixture(autouse=True)
def near(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "GONE_US", 1_000_000)


def audit(lake: Lake, config: Config, folder: Path, number: int) -> dict[int, str]:
    ingest(lake.spark, lake, [folder], config.ingest, f"{number:04d}")
    parse(lake)
    return replay(lake, config, number)


def replay(lake: Lake, config: Config, number: int) -> dict[int, str]:
    starts = gold_stage.refresh(lake, config, f"run {number}")
    return {broker_id: start.reason for (_, broker_id), start in starts.items()}


def told(lake: Lake) -> Rows:
    """Rows of all tables of gold that tell of days."""
    specs = [spec for spec in ANSWERS if spec not in OF_RUNS]
    return {spec.full_name: sorted(map(_plain, lake.read(spec).collect())) for spec in specs}


def _plain(row: Any) -> tuple[str, ...]:
    return tuple(map(str, row))


def on_days(lake: Lake, closed: bool) -> Rows:
    """Of tables that are dated, the rows of closed days, or of the others."""
    chosen = {}
    for spec in (spec for spec in ANSWERS if spec.dated_by):
        is_open = F.coalesce(
            F.greatest(*(F.col(name) for name in (spec.dated_by * 2)[:2])) >= F.lit(MIDNIGHT), F.lit(True)
        )
        matching = lake.read(spec).where(~is_open if closed else is_open)
        chosen[spec.full_name] = sorted(map(_plain, matching.collect()))
    return chosen


def differences(before: Rows, now: Rows) -> dict[str, tuple[list[Any], list[Any]]]:
    return {
        name: (
            [row for row in before[name] if row not in now[name]][:3],
            [row for row in now[name] if row not in before[name]][:3],
        )
        for name in before
        if before[name] != now[name]
    }


def count(lake: Lake, spec: TableSpec) -> int:
    return lake.read(spec).count()


def reopened(lake: Lake) -> Lake:
    """What another process sees."""
    return Lake(lake.spark, lake.root)


def drop_days(lake: Lake, keep: expiry.Keep = KEEP, cluster: str | None = None) -> list[tuple[str, int]]:
    plan = expiry.plan_expiry(lake.root, keep, TODAY, cluster)
    assert plan is not None
    counts = expiry.count_rows(lake.root, plan)
    assert expiry.expire(lake.root, plan, TODAY, allow_commits) == counts
    return counts


@pytest.mark.long
def test_days_that_stay_are_told_as_before(
    spark: SparkSession, pieces: list[Path], config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, folder = Lake(spark, tmp_path / "lake"), tmp_path / "folder"
    for number, delivered in enumerate([pieces[:2], pieces[2:]]):
        for piece in delivered:
            deliver(piece, folder)
        audit(lake, config, folder, number)
    before, coverage = told(lake), sorted(map(_plain, lake.read(gold.COVERAGE).collect()))
    rows = {spec.name: count(lake, spec) for spec in (bronze.LOG_LINES, silver.FETCH_REQUESTS, silver.LEADER_AND_ISR)}

    dropped = dict(drop_days(lake))
    print("dropped:", dropped)
    assert dropped["bronze.log_lines"] > 1000
    assert dropped["silver.fetch_requests"] > 100
    lake = reopened(lake)
    assert count(lake, silver.FETCH_REQUESTS) == rows["fetch_requests"] - dropped["silver.fetch_requests"]
    assert count(lake, silver.LEADER_AND_ISR) == rows["leader_and_isr"]
    assert drop_days(lake) == []
    assert count(lake, EXPIRIES) == 1

    assert set(replay(lake, config, 2).values()) == {seals.UNCHANGED}
    assert differences(before, told(lake)) == {}
    assert sorted(map(_plain, lake.read(gold.COVERAGE).collect())) == coverage

    original = gold_stage.compute_replay_fingerprint
    monkeypatch.setattr(gold_stage, "compute_replay_fingerprint", lambda *given: f"{original(*given)}x")
    assert set(replay(reopened(lake), config, 3).values()) == {seals.FINGERPRINT}
    ledger = lake.read(RUNS).where("run_id = 'run 3'").collect()
    assert all(row["from_time"] is not None for row in ledger), "from the anchor"
    assert differences(before, told(lake)) == {}

    monkeypatch.setattr(parse_stage, "compute_grammar_fingerprint", lambda: "other grammars")
    lines = count(lake, silver.LINE_COUNTS)
    assert parse(reopened(lake)).again
    assert count(lake, silver.LINE_COUNTS) == lines
    replay(reopened(lake), config, 4)
    assert differences(before, told(lake)) == {}


@pytest.mark.long
def test_a_late_file_is_gone_back_for_up_to_the_cut_and_not_behind_it(
    spark: SparkSession, config: Config, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # The second after midnight is final before the late file comes: the log goes on for longer than the lag.
    pieces = pieces_of(tmp_path_factory, AT - timedelta(seconds=14))
    whole, lake = Lake(spark, tmp_path / "whole"), Lake(spark, tmp_path / "lake")
    folder, late = tmp_path / "folder", tmp_path / "late"
    for piece in pieces[:2]:
        deliver(piece, folder)
    audit(lake, config, folder, 0)
    for piece in pieces[2:]:
        deliver(piece, folder)
    audit(whole, config, folder, 0)
    held = next(path for path in pieces[2].rglob("kafka-request*") if f"broker-{LATE_BROKER}" in path.parts)
    target = late / held.relative_to(pieces[2])
    target.parent.mkdir(parents=True)
    (folder / held.relative_to(pieces[2])).rename(target)
    audit(lake, config, folder, 1)
    closed = on_days(lake, closed=True)
    drop_days(lake)

    lake = reopened(lake)
    deliver(late, folder)
    reasons = audit(lake, config, folder, 2)
    assert reasons.pop(LATE_BROKER) == seals.LATE
    assert set(reasons.values()) == {seals.UNCHANGED}
    assert differences(closed, on_days(lake, closed=True)) == {}
    differing = differences(on_days(whole, closed=False), on_days(lake, closed=False))
    # An incident of the first second of a day counts produces of the day before, which is closed.
    of_whole, of_lake = differing.pop(INCIDENTS.full_name, ([], []))
    start_times = {row[INCIDENTS.column_names.index("start_time")] for row in of_whole + of_lake}
    assert all(time < str(MIDNIGHT + timedelta(seconds=1)) for time in start_times)
    assert differing == {}

    old = next(path for path in pieces[1].rglob("kafka-request*") if path.is_file())
    target = folder / "again" / old.relative_to(pieces[1])
    target.parent.mkdir(parents=True)
    target.write_bytes(b"".join(old.read_bytes().splitlines(keepends=True)[1:]))
    before, lines = told(lake), count(lake, bronze.LOG_LINES)
    audit(lake, config, folder, 3)
    registered = lake.read(bronze.LOG_FILES).where("problem LIKE 'expired: it ends on 2026-11-20%'").collect()
    assert [(row["path"], row["record_count"]) for row in registered] == [(str(target), 0)]
    assert count(lake, bronze.LOG_LINES) == lines
    assert differences(before, told(lake)) == {}


@pytest.mark.long
def test_one_of_two_clusters_loses_days(
    spark: SparkSession, pieces: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, folder = Lake(spark, tmp_path / "lake"), tmp_path / "folder"
    names = {str(folder / name): name for name in ("east", "west")}
    config = load_config(None, {"replay.seal_lag_ms": 10_000, "ingest.clusters": names})
    for number, delivered in enumerate([pieces[:2], pieces[2:]]):
        for piece in delivered:
            deliver(piece, folder / "east")
            for path in deliver(piece, folder / "west"):
                text = of_west(path.read_bytes())
                path.unlink()
                path.write_bytes(text)
        audit(lake, config, folder, number)
    before = told(lake)
    lines = lines_of(lake)
    assert lines["east"] == lines["west"]

    dropped = dict(drop_days(lake, cluster="west"))
    lake = reopened(lake)
    assert lines_of(lake) == {"east": lines["east"], "west": lines["west"] - dropped["bronze.log_lines"]}
    assert dropped["bronze.log_lines"] > 1000
    assert differences(before, told(lake)) == {}
    original = gold_stage.compute_replay_fingerprint
    monkeypatch.setattr(gold_stage, "compute_replay_fingerprint", lambda *given: f"{original(*given)}x")
    replay(lake, config, 2)
    ledger = lake.read(RUNS).where("run_id = 'run 2'").collect()
    assert {row["cluster_id"]: row["from_time"] is None for row in ledger} == {"east": True, "west": False}
    assert differences(before, told(lake)) == {}


def lines_of(lake: Lake) -> dict[str, int]:
    counts = lake.read(bronze.LOG_LINES).groupBy("cluster_id").count().collect()
    return {row["cluster_id"]: row["count"] for row in counts}


def test_what_is_not_safe_is_refused(spark: SparkSession, pieces: list[Path], config: Config, tmp_path: Path) -> None:
    lake, folder = Lake(spark, tmp_path / "lake"), tmp_path / "folder"
    for piece in pieces:
        deliver(piece, folder)
    audit(lake, config, folder, 0)
    # Ten seconds before the end of the log is before midnight.
    assert expiry.plan_expiry(lake.root, KEEP, TODAY) is not None
    # What runs left is gone.
    lake.empty(FOLDS)
    with pytest.raises(InputError, match=r"has no state of a replay of cluster \S+ from before 2026-11-21"):
        expiry.plan_expiry(lake.root, KEEP, TODAY)
    assert expiry.plan_expiry(lake.root, expiry.Keep(30, 30, None), TODAY) is None
