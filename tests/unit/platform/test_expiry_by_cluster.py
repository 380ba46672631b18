"""Days are dropped of each cluster by itself: what is silent, new, or ahead of its time is nothing to the others."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from highwater.jobs import cli
from highwater.pipelines.base.errors import InputError
from highwater.pipelines.lake.clusters import ClusterInstants
from highwater.pipelines.lake.delta_commits import allow_commits
from highwater.pipelines.lake.delta_log import find_version
from highwater.pipelines.replay.runs import among, folds_shape, pinned_runs, pinned_seals, replaced_folds, runs_of
from highwater.pipelines.upkeep import expiry
from highwater.pipelines.upkeep.upgrade import upgrade
from highwater.schemas.audit import EVIDENCE, VIOLATIONS
from highwater.schemas.bronze import LOG_FILES, LOG_LINES
from highwater.schemas.gold import DELAYED_OPERATIONS
from highwater.schemas.silver import FETCH_REQUESTS
from highwater.schemas.state import EXPIRIES, FOLDS
from highwater.schemas.table import TableSpec
from tests.unit.platform.test_expiry import (
    CUT,
    DAYS,
    TABLES,
    TODAY,
    at,
    opened,
    put,
    put_run,
    rows_of,
    us,
    written,
)

EAST, WEST = "c", "west"
DAY_US = 86_400_000_000
#: A row of the first cluster, in a file with rows of another one.
MIXED = {"cluster_id": EAST, "broker_id": 1, "time": at(hours=-5)}
DROPPED_OF = (LOG_LINES, FETCH_REQUESTS, DELAYED_OPERATIONS, VIOLATIONS, EVIDENCE)


def put_cluster(root: Path, ended: datetime, sealed: Mapping[int, datetime], cluster_id: str = WEST) -> None:
    """Another cluster, whose rows stand in files of their own and in one with rows of the first.

    Args:
        sealed: by number of the run, up to when it is final.
    """
    broker = {"cluster_id": cluster_id, "broker_id": 1}
    times = {"first_time": ended - timedelta(hours=4), "last_time": ended}
    file_id = f"of {cluster_id}"
    put(root, LOG_FILES, {**broker, **times, "file_id": file_id, "record_count": 1, "logged_cluster_id": "id of it"})
    moments = (ended - timedelta(hours=3), ended)
    put(root, LOG_LINES, *({**broker, "file_id": file_id, "time": moment} for moment in moments))
    put(root, FETCH_REQUESTS, MIXED, *({**broker, "time": moment} for moment in moments))
    operations = [{**broker, "arrival_time": moment, "class": "explained"} for moment in moments]
    put(root, DELAYED_OPERATIONS, *operations)
    finding = {"cluster_id": cluster_id, "finding_id": f"{cluster_id} {ended}", "severity": "open"}
    put(root, VIOLATIONS, {**finding, "time": ended})
    put(root, EVIDENCE, {name: finding[name] for name in ("cluster_id", "finding_id")})
    for number, moment in ({2: None} | dict(sealed)).items():
        put_run(root, number, moment, [file_id] if number == 2 else [], **broker)


@pytest.fixture(scope="module")
def of_one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("written"))


@pytest.fixture
def root(of_one: Path, tmp_path: Path) -> Path:
    return shutil.copytree(of_one, tmp_path, dirs_exist_ok=True)


def planned(root: Path, name: str | None = None) -> expiry.ExpiryPlan:
    plan = expiry.plan_expiry(root, DAYS, TODAY, name)
    assert plan is not None
    return plan


def expired(root: Path, name: str | None = None) -> dict[str, int]:
    plan = planned(root, name)
    counts = expiry.count_rows(root, plan)
    assert expiry.expire(root, plan, TODAY, allow_commits) == counts
    return dict(counts)


def rows_by_cluster(root: Path, cluster_id: str) -> dict[str, list[str]]:
    """What stands of a cluster in each table that has one."""
    specs = [spec for spec in TABLES if "cluster_id" in spec.column_names]
    return {
        spec.full_name: sorted(
            str(row) for row in rows_of(root, spec, *spec.column_names) if row["cluster_id"] == cluster_id
        )
        for spec in specs
    }


def ledger(root: Path) -> dict[str, tuple[datetime, str]]:
    rows = rows_of(root, EXPIRIES, "cluster_id", "closed_time", "run_id")
    return {row["cluster_id"]: (row["closed_time"], row["run_id"]) for row in rows}


def test_one_cluster_loses_days_and_the_others_not_a_row(root: Path) -> None:
    put_cluster(root, at(hours=-5), {1: at(hours=-6)})
    east = rows_by_cluster(root, EAST)
    # By the id that its lines tell, too.
    for name in (WEST, "id of it"):
        expired(root, name)
    assert ledger(root) == {WEST: (CUT, "r1")}
    assert rows_by_cluster(root, EAST) == east
    west = rows_by_cluster(root, WEST)
    # Fetches of before it ended stay from an hour before the anchor on.
    assert [len(west[spec.full_name]) for spec in DROPPED_OF] == [2, 1, 0, 0, 0]
    expired(root, EAST)
    assert rows_by_cluster(root, WEST) == west
    assert ledger(root) == {WEST: (CUT, "r1"), EAST: (CUT, "r1")}
    assert opened(root).closed == ClusterInstants({WEST: us(CUT), EAST: us(CUT)})


def test_without_a_name_each_cluster_loses_its_days(root: Path) -> None:
    put_cluster(root, at(hours=-5), {1: at(hours=-6)})
    counts = expired(root)
    assert ledger(root) == {EAST: (CUT, "r1"), WEST: (CUT, "r1")}
    assert counts["silver.fetch_requests"] == 5
    versions = {spec.name: len(rows_of(root, spec, spec.keys[0])) for spec in TABLES}
    assert expired(root) == {}
    assert {spec.name: len(rows_of(root, spec, spec.keys[0])) for spec in TABLES} == versions


@pytest.mark.parametrize("ended", [at(days=-900), at(days=900)], ids=["silent for years", "ahead of its time"])
def test_a_clock_far_off_is_nothing_to_the_others(
    root: Path, of_one: Path, tmp_path_factory: pytest.TempPathFactory, ended: datetime
) -> None:
    alone = shutil.copytree(of_one, tmp_path_factory.mktemp("alone"), dirs_exist_ok=True)
    put_cluster(root, ended, {1: ended})
    put(alone, FETCH_REQUESTS, MIXED)
    expired(alone)
    expired(root)
    assert rows_by_cluster(root, EAST) == rows_by_cluster(alone, EAST)
    # A day is old by the calendar: of the one that is silent none is left, of the other one all are.
    assert (WEST in ledger(root)) == (ended < CUT)
    assert len(rows_by_cluster(root, WEST)[DELAYED_OPERATIONS.full_name]) == (0 if ended < CUT else 2)


def test_one_whose_days_cannot_be_dropped_keeps_them_and_the_others_do_not(root: Path) -> None:
    """It came with old logs, so that no state is of before the cut."""
    put_cluster(root, at(hours=-5), {1: at(hours=1)})
    put_cluster(root, at(hours=-5), {}, cluster_id="north")
    row = {"cluster_id": "north", "broker_id": 1, "file_id": "later", "record_count": 1, "first_time": CUT}
    put(root, LOG_FILES, row)
    before = rows_by_cluster(root, WEST)
    refused = planned(root).refused
    assert "no state of a replay of cluster west from before 2026-11-21; the oldest is of" in str(refused[WEST])
    assert "holds files of cluster north that were not replayed yet" in str(refused["north"])
    expired(root)
    assert rows_by_cluster(root, WEST) == before
    assert ledger(root).keys() == {EAST}
    with pytest.raises(InputError, match="no state of a replay of cluster west"):
        planned(root, WEST)


def test_a_cluster_that_is_not_there_is_refused(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put_cluster(root, at(hours=-5), {1: at(hours=-6)})
    arguments = ["expire", "--lake", str(root), "--keep", "1d", "--dry-run", "--cluster"]
    assert cli.run([*arguments, "north"]) == 2
    assert "has no cluster north; give --cluster with one of c, west" in capsys.readouterr().err
    assert cli.run([*arguments, WEST]) == 0
    assert "days of cluster west before" in capsys.readouterr().err


def test_files_that_nothing_places_go_with_all_and_with_none_by_name(root: Path) -> None:
    times = {"first_time": at(hours=-9), "last_time": at(hours=-8)}
    put(root, LOG_FILES, {"file_id": "whose", **times, "cluster_id": None, "broker_id": None, "record_count": 1})
    put(root, LOG_LINES, {"file_id": "whose", "time": at(hours=-9)})
    expired(root, EAST)
    assert {row["file_id"] for row in rows_of(root, LOG_LINES, "file_id")} == {"whose", "new"}
    expired(root)
    assert {row["file_id"] for row in rows_of(root, LOG_LINES, "file_id")} == {"new"}
    assert ledger(root)["unknown"] == (CUT, "")


def test_files_without_an_old_row_of_the_cluster_are_not_opened(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_cluster(root, at(hours=-5), {1: at(hours=-6)})
    opened_files = []
    part_of = expiry.split_rows

    def spied(folder: Path, spec: TableSpec, paths: Sequence[str], *rest: Any) -> Any:
        opened_files.extend([spec.name] * len(paths))
        return part_of(folder, spec, paths, *rest)

    monkeypatch.setattr(expiry, "split_rows", spied)
    expired(root, WEST)
    # Of six and six files, one each of which is of the other cluster as well, or of it alone.
    assert opened_files.count(FETCH_REQUESTS.name) == opened_files.count(DELAYED_OPERATIONS.name) == 1


def test_the_feed_tells_of_rows_that_go_and_of_no_others(root: Path) -> None:
    """Though files hold rows that stay, too, of other days or other clusters."""
    put_cluster(root, at(hours=-5), {1: at(hours=-6)})
    moments = [(EAST, -3), (EAST, 3), (WEST, -7), (WEST, -8), (WEST, 5)]
    rows = [{"cluster_id": name, "broker_id": 1, "arrival_time": at(hours=hours)} for name, hours in moments]
    put(root, DELAYED_OPERATIONS, *({**row, "class": "explained"} for row in rows))
    folder = root / "gold" / DELAYED_OPERATIONS.name
    version = find_version(folder)
    assert version is not None
    expired(root, WEST)
    feed = pa.table(DeltaTable(folder).load_cdf(starting_version=version + 1).read_all()).to_pylist()
    told = {(row["_change_type"], row["cluster_id"], (row["arrival_time"] - CUT) / timedelta(hours=1)) for row in feed}
    assert told == {("delete", WEST, hours) for hours in (-5, -8, -7)}
    # One file had nothing but rows that went: two commits, since the other one names its rows.
    assert (find_version(folder), len(feed)) == (version + 2, 4)


def test_a_lake_of_an_earlier_version_goes_on(root: Path) -> None:
    """It closed days of all clusters at once."""
    put_cluster(root, at(hours=-5), {1: at(hours=-6)})
    older = replace(EXPIRIES, columns=EXPIRIES.columns[:-2], keys=("expired_time",))
    shutil.rmtree(root / "state" / EXPIRIES.name)
    closed = {"closed_time": CUT - timedelta(days=1), "gold_time": CUT - timedelta(days=1), "run_id": "r0"}
    put(root, older, {"expired_time": CUT, "known_time": CUT, **closed})
    assert any(line.startswith("state.expiries: ") for line in upgrade(root, allow_commits))
    assert opened(root).closed == ClusterInstants({}, us(CUT) - DAY_US)
    assert pinned_runs(opened(root), [EAST, WEST]) == {EAST: 0, WEST: 0}, "their states are not read any more"
    expired(root, WEST)
    assert opened(root).closed == ClusterInstants({WEST: us(CUT)}, us(CUT) - DAY_US)
    assert pinned_runs(opened(root), [EAST, WEST]) == {EAST: 0, WEST: 1}


# ------------------------------------------------------------------------------------- what replays begin with


def test_each_cluster_begins_with_the_run_before_which_its_days_were_dropped(root: Path) -> None:
    shape = {"folds_shape": folds_shape()}
    for cluster_id, number, hours in ((EAST, 3, -20), (WEST, 3, -30), (EAST, 4, 4), (WEST, 4, -4)):
        put_run(root, number, at(hours=hours), [], cluster_id=cluster_id, **shape)
    lake = opened(root)
    pinned = {EAST: 3, WEST: 4}
    seals = {
        broker[0]: (seal.sealed_us, number) for broker, (seal, number) in pinned_seals(runs_of(lake), pinned).items()
    }
    assert seals == {EAST: (us(at(hours=-20)), 3), WEST: (us(at(hours=-4)), 4)}
    assert pinned_seals(runs_of(lake), {WEST: 0}) == {}
    where = among({(EAST, 1): 3, (WEST, 1): 4})
    rows = lake.rows(FOLDS, "run_number", "cluster_id", where=where).to_pylist()
    assert {(row["run_number"], row["cluster_id"]) for row in rows} == {(3, EAST), (4, WEST)}


def test_folds_of_another_shape_are_none_to_begin_with(root: Path) -> None:
    put_run(root, 3, at(hours=-20), [], folds_shape="older")
    assert pinned_seals(runs_of(opened(root)), {EAST: 3}) == {}


def test_a_run_replaces_what_a_killed_one_left_and_what_nobody_asks_for(root: Path) -> None:
    for number in range(3, 60):
        put_run(root, number, at(hours=number), [])
    # The next one was killed before its commit of the ledger.
    put(root, FOLDS, {"run_number": 60, "cluster_id": EAST, "kind": "partition", "row": "{}"})
    lake = opened(root)
    gone = lake.rows(FOLDS, "run_number", where=replaced_folds(runs_of(lake), {}))["run_number"].to_pylist()
    days = {(number - 1) // 24 for number in range(1, 60)}
    kept = set(range(1, 60)) - set(gone)
    assert 60 in gone
    # The second run was final up to the hour of the nineteenth.
    hourly = set(range(11, 60)) - {19}
    assert kept >= hourly
    assert len(kept - hourly) < len(days)
