"""The ledger of runs: what a run notes, the next one reads."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

from highwater.jobs.tables import show_tables
from highwater.pipelines.gold.ledger import note_run
from highwater.pipelines.kafka.seals import LATE, NEW, Seal, Start
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.replay.carried import ReplayPlan
from highwater.pipelines.replay.runs import folds_shape, runs_of
from highwater.pipelines.replay.window import ReplayWindow
from highwater.pipelines.rules.incremental import AuditState, judged_by
from highwater.schemas.state import FOLDS, RUNS
from tests.console import CaptureConsole

EAST, WEST = ("c", 1), ("d", 1)
SECOND = 1_000_000
JUDGED = AuditState("f", {EAST: 5, WEST: 6}, frozenset({WEST}), {"isr_changes": 3}, {"c": 7, "d": 0})


def seal(sealed_s: int, since_s: int = 0) -> Seal:
    return Seal(sealed_s * SECOND, sealed_s * SECOND - 5, sealed_s * SECOND - 9, "p", since_s * SECOND)


def noted(lake: Lake, plan: ReplayPlan, seals: dict[tuple[str, int], Seal], inputs: str, replayed: bool = True) -> None:
    note_run(lake, plan, seals, "a", "replay-1 grammar-1 s", inputs, JUDGED, replayed)


def plan_of(lake: Lake, starts: dict[tuple[str, int], Start]) -> ReplayPlan:
    return ReplayPlan(ReplayWindow(), starts, {EAST: ["y", "x"]}, {EAST: 40 * SECOND}, runs_of(lake))


def test_a_run_notes_what_the_next_one_goes_on_with(tmp_path: Path) -> None:
    lake = Lake(None, tmp_path)
    starts = {EAST: Start(None, None, LATE, 3 * SECOND, True), WEST: Start(seal(10), 4, LATE, 2)}
    noted(lake, plan_of(lake, starts), {EAST: seal(30), WEST: seal(20, 10)}, "i")
    (run,) = runs_of(lake)
    assert (run.number, run.run_id, run.components, run.inputs) == (1, "a", "replay-1 grammar-1 s", "i")
    assert run.seals == {EAST: seal(30), WEST: seal(20, 10)}
    assert run.late == {EAST: 0, WEST: 10 * SECOND}
    assert (run.folds_run, run.folds_shape, run.file_ids) == (1, folds_shape(), {"x", "y"})
    assert judged_by(lake, 1) == JUDGED


def test_a_run_of_rules_alone_goes_on_with_the_folds_of_the_one_before(tmp_path: Path) -> None:
    lake = Lake(None, tmp_path)
    first = {EAST: Start(None, None, NEW, None, True)}
    noted(lake, plan_of(lake, first), {EAST: seal(30)}, "i")
    noted(lake, plan_of(lake, {EAST: Start(seal(30), 1, NEW)}), {EAST: seal(30, 30)}, "i", replayed=False)
    run, before = runs_of(lake)
    assert (run.number, run.folds_run, run.seals[EAST].since_us) == (2, 1, 30 * SECOND)
    assert before.number == 1
    changes = lake.rows(RUNS, "run_number", "changes").sort_by("run_number")["changes"].to_pylist()
    assert changes == [None, ["rules"]]


def test_a_lake_without_logs_has_its_runs_too(tmp_path: Path) -> None:
    lake = Lake(None, tmp_path)
    noted(lake, ReplayPlan(ReplayWindow(), {}, {}, {}), {}, "")
    (run,) = runs_of(lake)
    assert (run.number, run.seals, run.file_ids) == (1, {}, frozenset())
    judged = judged_by(lake, 1)
    assert judged is not None
    assert judged.windows == {}
    assert judged_by(lake, 2) is None


def test_the_state_that_the_next_run_goes_on_from_is_shown(tmp_path: Path) -> None:
    lake = Lake(None, tmp_path)
    first = {EAST: Start(None, None, NEW, None, True)}
    noted(lake, plan_of(lake, first), {EAST: seal(30)}, "i")
    noted(lake, plan_of(lake, {EAST: Start(seal(30), 1, NEW)}), {EAST: seal(30, 30)}, "i", replayed=False)
    left = {"run_number": 1, "kind": "wake", "cluster_id": "c", "broker_id": 1, "pending": 2, "row": "{}"}
    rows = [left, left | {"pending": 1, "row": "{ü}", "last_time": seal(30).sealed_us}, left | {"run_number": 2}]
    lake.append_once(FOLDS, pa.Table.from_pylist(rows, FOLDS.arrow_schema), "a")
    console = CaptureConsole()
    show_tables(console, tmp_path, "state", as_json=True)
    (shown,) = (json.loads(text) for text in console.texts("result"))
    carried = {"cluster_id": "c", "broker_id": 1, "kind": "wake", "rows": 2, "pending": 3, "size_bytes": 6}
    assert shown["carried"] == [carried | {"last": "1970-01-01T00:00:30.000+00:00"}]
    assert shown["seals"][0]["partitions"] == "1970-01-01T00:00:30.000Z"
    show_tables(console, tmp_path, "state", as_json=False)
    assert len(console.texts("table")) == 2
