"""Time left: by stage and bytes, corrected by what the machine has shown."""

import io

import pytest

from highwater.pipelines.base.console import Plan, RichConsole, format_progress

STAGES = ("start Spark", "ingest", "parse", "quality", "replay", "report")


def test_more_text_takes_longer_and_each_stage_leaves_less() -> None:
    small, large = Plan(STAGES, 1_000_000), Plan(STAGES, 800_000_000)
    assert large.estimate_left_s("start Spark", 0) > 5 * small.estimate_left_s("start Spark", 0)  # type: ignore[operator]
    left = [large.estimate_left_s(STAGES[0], 0)]
    for stage, seconds in zip(STAGES, (6, 25, 49, 3.5, 146, 7), strict=True):
        large.end(stage, seconds)
        if stage != STAGES[-1]:
            left.append(large.estimate_left_s(STAGES[STAGES.index(stage) + 1], 0))
    assert left == sorted(left, reverse=True)  # type: ignore[type-var]


def test_a_slow_machine_is_told_by_what_it_has_shown() -> None:
    plan = Plan(STAGES, 200_000_000)
    before = plan.estimate_left_s("parse", 0)
    plan.end("start Spark", 12)
    plan.end("ingest", 13)
    assert before is not None
    assert plan.estimate_left_s("parse", 0) == pytest.approx((before - 6 - 6.5) * 2)


def test_what_is_overdue_is_never_less_than_nothing() -> None:
    plan = Plan(STAGES, 1_000_000)
    left = [plan.estimate_left_s("report", seconds) for seconds in range(100)]
    assert min(left) > 0  # type: ignore[type-var]
    assert left[-1] > left[50]  # type: ignore[operator]


def test_a_stage_that_is_not_planned_or_runs_again_says_no_more_than_it_knows() -> None:
    plan = Plan(STAGES, 27_000_000)
    assert format_progress(plan, "replay", 3.2) == "replay  3 s, about 15 s left (step 5 of 6, 27 MB of text)"
    plan.end("replay", 9)
    assert format_progress(plan, "replay", 3.2) == "replay  3 s"
    assert format_progress(plan, "catalog", 3.2) == "catalog  3 s"
    assert format_progress(None, "query", 1.0) == "query  1 s"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_time_left_and_a_file_one_line_a_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    for err, lines in ((_Terminal(), None), (io.StringIO(), 1)):
        console = RichConsole(io.StringIO(), err)
        console.plan(STAGES, 27_000_000)
        with console.stage("replay"):
            pass
        assert ("left (step 5 of 6, 27 MB of text)" in err.getvalue()) == (lines is None)
        if lines:
            assert len(err.getvalue().splitlines()) == lines
