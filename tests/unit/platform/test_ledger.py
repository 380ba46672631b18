"""The ledger of runs: what a run notes, the next one reads."""

from __future__ import annotations

from pathlib import Path

from pipelines.gold.ledger import note_run
from pipelines.kafka.seals import LATE, NEW, Seal, Start
from pipelines.lake.lake import Lake
from pipelines.replay.carried import Plan
from pipelines.replay.runs import folds_shape, runs_of
from pipelines.replay.window import Window
from pipelines.rules.incremental import Judged, judged_by
from schemas.state import RUNS

EAST, WEST = ("c", 1), ("d", 1)
SECOND = 1_000_000
JUDGED = Judged("f", {EAST: 5, WEST: 6}, frozenset({WEST}), {"isr_changes": 3}, {"c": 7, "d": 0})


def seal(sealed_s: int, since_s: int = 0) -> Seal:
    return Seal(sealed_s * SECOND, sealed_s * SECOND - 5, sealed_s * SECOND - 9, "p", since_s * SECOND)


def noted(lake: Lake, plan: Plan, seals: dict[tuple[str, int], Seal], inputs: str, replayed: bool = True) -> None:
    note_run(lake, plan, seals, "a", "replay-1 grammar-1 s", inputs, JUDGED, replayed)


def plan_of(lake: Lake, starts: dict[tuple[str, int], Start]) -> Plan:
    return Plan(Window(), starts, {EAST: ["y", "x"]}, {EAST: 40 * SECOND}, runs_of(lake))


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
    noted(lake, Plan(Window(), {}, {}, {}), {}, "")
    (run,) = runs_of(lake)
    assert (run.number, run.seals, run.file_ids) == (1, {}, frozenset())
    judged = judged_by(lake, 1)
    assert judged is not None
    assert judged.windows == {}
    assert judged_by(lake, 2) is None
