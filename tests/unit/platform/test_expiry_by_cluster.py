"""Days are dropped of each cluster by itself: what is silent, new, or ahead of its time is nothing to the others."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from jobs import cli
from pipelines.base.errors import InputError
from pipelines.kafka import seals
from pipelines.kafka.seals import Seal, Stamp, Start
from pipelines.lake.clusters import ClusterInstants
from pipelines.lake.delta_commits import no_fence
from pipelines.lake.delta_log import table_version
from pipelines.lake.tables import create_table
from pipelines.replay.anchors import keep_anchors, pinned, rows_of_anchors
from pipelines.upkeep import expiry
from pipelines.upkeep.upgrade import upgrade
from schemas.audit import EVIDENCE, VIOLATIONS
from schemas.bronze import LOG_FILES, LOG_LINES
from schemas.gold import DELAYED_OPERATIONS
from schemas.silver import FETCH_REQUESTS
from schemas.state import ANCHORS, CARRIED, EXPIRIES, REPLAYS, STAMP
from schemas.table import TableSpec
from tests.unit.platform.test_expiry import (
    CUT,
    DAYS,
    TABLES,
    TODAY,
    at,
    opened,
    put,
    rows_of,
    us,
    written,
)

EAST, WEST = "c", "west"
DAY_US = 86_400_000_000
#: A row of the first cluster, in a file with rows of another one.
MIXED = {"cluster_id": EAST, "broker_id": 1, "time": at(hours=-5)}
DROPPED_OF = (LOG_LINES, FETCH_REQUESTS, DELAYED_OPERATIONS, VIOLATIONS, EVIDENCE)


def stamp_of(cluster_id: str, run_id: str, sealed: datetime) -> Stamp:
    return Stamp(run_id, "f", 1, {(cluster_id, 1): Seal(us(sealed), us(sealed), us(sealed), "p")})


def put_cluster(root: Path, ended: datetime, *runs: Stamp, cluster_id: str = WEST) -> None:
    """Another cluster, whose rows stand in files of their own and in one with rows of the first."""
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
    for run in runs:
        put(root, ANCHORS, {"run_id": run.run_id, "kind": STAMP, "row": run.to_json(), **broker})
        put(root, ANCHORS, {"run_id": run.run_id, "kind": "partition", "row": "{}", **broker})
    stamp = Stamp("r2", "f", 1).to_json()
    put(root, REPLAYS, {**broker, "run_id": "r2", "file_ids": [file_id], "reason": "new"}, stamp=stamp)


@pytest.fixture(scope="module")
def of_one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("written"))


@pytest.fixture
def root(of_one: Path, tmp_path: Path) -> Path:
    return shutil.copytree(of_one, tmp_path, dirs_exist_ok=True)


def planned(root: Path, name: str | None = None) -> expiry.Plan:
    plan = expiry.plan_expiry(root, DAYS, TODAY, name)
    assert plan is not None
    return plan


def expired(root: Path, name: str | None = None) -> dict[str, int]:
    plan = planned(root, name)
    counts = expiry.counted(root, plan)
    assert expiry.expire(root, plan, TODAY, no_fence) == counts
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
    put_cluster(root, at(hours=-5), stamp_of(WEST, "w", at(hours=-6)))
    east = rows_by_cluster(root, EAST)
    # By the id that its lines tell, too.
    for name in (WEST, "id of it"):
        expired(root, name)
    assert ledger(root) == {WEST: (CUT, "w")}
    assert rows_by_cluster(root, EAST) == east
    west = rows_by_cluster(root, WEST)
    # Fetches of before it ended stay from an hour before the anchor on.
    assert [len(west[spec.full_name]) for spec in DROPPED_OF] == [2, 1, 0, 0, 0]
    expired(root, EAST)
    assert rows_by_cluster(root, WEST) == west
    assert ledger(root) == {WEST: (CUT, "w"), EAST: (CUT, "r1")}
    assert opened(root).closed == ClusterInstants({WEST: us(CUT), EAST: us(CUT)})


def test_without_a_name_each_cluster_loses_its_days(root: Path) -> None:
    put_cluster(root, at(hours=-5), stamp_of(WEST, "w", at(hours=-6)))
    counts = expired(root)
    assert ledger(root) == {EAST: (CUT, "r1"), WEST: (CUT, "w")}
    assert counts["silver.fetch_requests"] == 5
    versions = {spec.name: len(rows_of(root, spec, spec.keys[0])) for spec in TABLES}
    assert expired(root) == {}
    assert {spec.name: len(rows_of(root, spec, spec.keys[0])) for spec in TABLES} == versions


@pytest.mark.parametrize("ended", [at(days=-900), at(days=900)], ids=["silent for years", "ahead of its time"])
def test_a_clock_far_off_is_nothing_to_the_others(
    root: Path, of_one: Path, tmp_path_factory: pytest.TempPathFactory, ended: datetime
) -> None:
    alone = shutil.copytree(of_one, tmp_path_factory.mktemp("alone"), dirs_exist_ok=True)
    put_cluster(root, ended, stamp_of(WEST, "w", ended))
    put(alone, FETCH_REQUESTS, MIXED)
    expired(alone)
    expired(root)
    assert rows_by_cluster(root, EAST) == rows_by_cluster(alone, EAST)
    # A day is old by the calendar: of the one that is silent none is left, of the other one all are.
    assert (WEST in ledger(root)) == (ended < CUT)
    assert len(rows_by_cluster(root, WEST)[DELAYED_OPERATIONS.full_name]) == (0 if ended < CUT else 2)


def test_one_whose_days_cannot_be_dropped_keeps_them_and_the_others_do_not(root: Path) -> None:
    """It came with old logs, so that no state is of before the cut."""
    put_cluster(root, at(hours=-5), stamp_of(WEST, "w", at(hours=1)))
    put_cluster(root, at(hours=-5), cluster_id="north")
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
    put_cluster(root, at(hours=-5), stamp_of(WEST, "w", at(hours=-6)))
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
    put_cluster(root, at(hours=-5), stamp_of(WEST, "w", at(hours=-6)))
    opened_files = []
    part_of = expiry.part_of

    def spied(folder: Path, spec: TableSpec, paths: Sequence[str], *rest: Any) -> Any:
        opened_files.extend([spec.name] * len(paths))
        return part_of(folder, spec, paths, *rest)

    monkeypatch.setattr(expiry, "part_of", spied)
    expired(root, WEST)
    # Of six and six files, one each of which is of the other cluster as well, or of it alone.
    assert opened_files.count(FETCH_REQUESTS.name) == opened_files.count(DELAYED_OPERATIONS.name) == 1


def test_the_feed_tells_of_rows_that_go_and_of_no_others(root: Path) -> None:
    """Though files hold rows that stay, too, of other days or other clusters."""
    put_cluster(root, at(hours=-5), stamp_of(WEST, "w", at(hours=-6)))
    moments = [(EAST, -3), (EAST, 3), (WEST, -7), (WEST, -8), (WEST, 5)]
    rows = [{"cluster_id": name, "broker_id": 1, "arrival_time": at(hours=hours)} for name, hours in moments]
    put(root, DELAYED_OPERATIONS, *({**row, "class": "explained"} for row in rows))
    folder = root / "gold" / DELAYED_OPERATIONS.name
    version = table_version(folder)
    assert version is not None
    expired(root, WEST)
    feed = pa.table(DeltaTable(folder).load_cdf(starting_version=version + 1).read_all()).to_pylist()
    told = {(row["_change_type"], row["cluster_id"], (row["arrival_time"] - CUT) / timedelta(hours=1)) for row in feed}
    assert told == {("delete", WEST, hours) for hours in (-5, -8, -7)}
    # One file had nothing but rows that went: two commits, since the other one names its rows.
    assert (table_version(folder), len(feed)) == (version + 2, 4)


def test_a_lake_of_an_earlier_version_goes_on(root: Path) -> None:
    """It closed days of all clusters at once, and kept states of all with one stamp."""
    seals = stamp_of(EAST, "r0", at(hours=-26)).seals | stamp_of(WEST, "r0", at(hours=-27)).seals
    both = Stamp("r0", "f", 1, seals)
    put_cluster(root, at(hours=-5), stamp_of(WEST, "w", at(hours=-6)))
    for row in ({"kind": STAMP, "row": both.to_json()}, {"kind": "partition", "row": "{}", "cluster_id": WEST}):
        put(root, ANCHORS, {"cluster_id": None, "broker_id": None, "run_id": "r0", **row})
    older = replace(EXPIRIES, columns=EXPIRIES.columns[:-1], keys=("expired_time",))
    shutil.rmtree(root / "state" / EXPIRIES.name)
    closed = {"closed_time": CUT - timedelta(days=1), "gold_time": CUT - timedelta(days=1), "run_id": "r0"}
    put(root, older, {"expired_time": CUT, "known_time": CUT, **closed})
    assert any(line.startswith("state.expiries: ") for line in upgrade(root, no_fence))
    assert opened(root).closed == ClusterInstants({}, us(CUT) - DAY_US)
    expired(root, WEST)
    assert opened(root).closed == ClusterInstants({WEST: us(CUT)}, us(CUT) - DAY_US)
    kept = {(row["run_id"], row["cluster_id"], row["kind"]) for row in rows_of(root, ANCHORS, *ANCHORS.keys)}
    assert ("r0", WEST, "partition") not in kept
    assert ("r0", None, STAMP) in kept, "the other cluster begins with it still"
    expired(root, EAST)
    assert ("r0", None, STAMP) not in {
        (row["run_id"], row["cluster_id"], row["kind"]) for row in rows_of(root, ANCHORS, *ANCHORS.keys)
    }


# ------------------------------------------------------------------------------------- what runs leave to begin with


def put_carried(root: Path, stamp: Stamp) -> None:
    create_table(root / "state" / "carried", CARRIED)
    rows = [{"kind": "partition", "cluster_id": name, "broker_id": 1, "row": "{}"} for name in (EAST, WEST)]
    put(root, CARRIED, *rows, stamp=stamp.run_id)


def replayed(root: Path, run_id: str, reason: str = seals.NEW, **sealed: datetime) -> set[str]:
    """A run, up to when it is final of each cluster; gives the clusters of which it keeps the state."""
    of_run: dict[tuple[str, int], Seal] = {}
    for name, moment in sealed.items():
        of_run |= stamp_of({"east": EAST}.get(name, name), run_id, moment).seals
    put(root, REPLAYS, {"run_id": run_id, "reason": reason}, stamp=Stamp(run_id, "f", 1, of_run).to_json())
    begun = Seal(us(at(hours=-9)), 0, 0, "p")
    keep_anchors(opened(root), {broker: Start(begun, 1, reason) for broker in of_run if broker[0] == EAST})
    rows = rows_of(root, ANCHORS, "run_id", "cluster_id", "kind")
    kept = {row["cluster_id"] for row in rows if row["run_id"] == run_id and row["kind"] == STAMP}
    assert kept == {row["cluster_id"] for row in rows if row["run_id"] == run_id and row["kind"] != STAMP}
    return kept


def test_each_cluster_has_a_state_kept_once_a_day_of_its_own(tmp_path: Path) -> None:
    for spec in (REPLAYS, ANCHORS):
        create_table(tmp_path / "state" / spec.name, spec)
    put_carried(tmp_path, stamp_of(EAST, "0", CUT))
    assert replayed(tmp_path, "1", east=at(hours=1)) == {EAST}
    assert replayed(tmp_path, "2", east=at(hours=2), west=at(days=900)) == {WEST}, "a new one, ahead of its time"
    assert replayed(tmp_path, "3", east=at(hours=25), west=at(days=900)) == {EAST}, "and silent"
    assert replayed(tmp_path, "4", east=at(hours=26), west=at(days=900)) == set()
    # What was kept that day is of before a late file.
    assert replayed(tmp_path, "5", seals.LATE, east=at(hours=26), west=at(days=900)) == {EAST}


def test_each_cluster_begins_with_the_run_before_which_its_days_were_dropped(root: Path) -> None:
    put_carried(root, stamp_of(EAST, "0", CUT))
    replayed(root, "1", east=at(hours=-20), west=at(hours=-30))
    replayed(root, "2", east=at(hours=4), west=at(hours=-4))
    runs = {EAST: "1", WEST: "2"}
    found = pinned(opened(root), runs)
    assert {broker[0]: seal.sealed_us for broker, seal in found.items()} == {
        EAST: us(at(hours=-20)),
        WEST: us(at(hours=-4)),
    }
    assert pinned(opened(root), {WEST: ""}) == {}
    where = rows_of_anchors(runs)
    rows = opened(root).rows(ANCHORS, "run_id", "cluster_id", "kind", where=where).to_pylist()
    assert {(row["run_id"], row["cluster_id"], row["kind"]) for row in rows} == {
        ("1", EAST, "partition"),
        ("2", WEST, "partition"),
    }
