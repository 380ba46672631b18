"""Where a replay goes on: by what came, and never from rows that something else made."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.kafka import seals as s

SECOND = 1_000_000
LAG = 60 * SECOND
ONE, TWO = ("c", 1), ("c", 2)


def seal(sealed_s: int, premises: str = "same", since_s: int | None = None) -> s.Seal:
    """A seal of an hourly run, which went on from the one an hour before unless another is given."""
    since_us = max(sealed_s - 3600 if since_s is None else since_s, 0) * SECOND
    return s.Seal(sealed_s * SECOND, sealed_s * SECOND - 5, sealed_s * SECOND, premises, since_us)


def run(
    number: int,
    *seals: tuple[s.Broker, s.Seal],
    components: str = "c",
    shape: str = "shape",
    late: s.Broker | None = None,
) -> s.StoredRun:
    back = {} if late is None else {late: dict(seals)[late].since_us}
    return s.StoredRun(number, f"run{number}", components, "", number, shape, dict(seals), back)


#: Runs after each of three hours, the newest first.
HOURS = [run(hour, (ONE, seal(hour * 3600 - 60)), (TWO, seal(hour * 3600 - 60))) for hour in (3, 2, 1)]


def start(
    earliest_s: int | None,
    runs: list[s.StoredRun] = HOURS,
    components: str = "c",
    shape: str = "shape",
    there: Container[int] | None = None,
) -> s.Start:
    earliest = {} if earliest_s is None else {ONE: earliest_s * SECOND}
    return s.starts([ONE], runs, components, shape, earliest, lambda broker, before_us: "same", LAG, there=there)[ONE]


def beginning(reason: str, late_us: int | None = None) -> s.Start:
    return s.Start(None, None, reason, late_us, is_first=True)


def test_the_first_run_begins_at_the_beginning():
    assert start(10, []) == beginning(s.FIRST)


def test_a_log_that_goes_on_is_gone_on_with():
    assert start(3 * 3600 - 5) == s.Start(HOURS[0].seals[ONE], 3, s.NEW)


def test_what_comes_exactly_at_the_seal_is_not_late():
    assert start(3 * 3600 - 60).reason == s.NEW
    assert start(3 * 3600 - 61).reason == s.LATE


def test_nothing_new_keeps_the_seal():
    assert start(None) == s.Start(HOURS[0].seals[ONE], 3, s.UNCHANGED)


def test_a_late_file_goes_back_to_the_last_seal_before_it():
    """The second hour comes after the third: what was replayed after the first holds."""
    found = start(3600)
    assert (found.reason, found.folds_run, found.late_us) == (s.LATE, 1, 3600 * SECOND)


def test_what_is_older_than_every_seal_goes_back_to_the_beginning():
    assert start(5) == beginning(s.LATE, 5 * SECOND)


def test_a_seal_that_a_later_run_went_back_behind_is_outdated():
    """The third run went back behind the seals of the first two, which did not know what it had come to know."""
    went_back = [run(3, (ONE, seal(3 * 3600 - 60, since_s=0))), *HOURS[1:]]
    assert start(3 * 3600 - 61).folds_run == 2
    assert start(3 * 3600 - 61, went_back) == beginning(s.LATE, (3 * 3600 - 61) * SECOND)
    gone_on = [run(4, (ONE, seal(4 * 3600 - 60))), *went_back]
    assert start(4 * 3600 - 61, gone_on).folds_run == 3
    assert start(3 * 3600 - 61, gone_on).folds_run is None


def test_other_rules_begin_anew():
    assert start(3 * 3600, components="d") == beginning(s.FINGERPRINT)


def test_late_lines_do_not_go_back_over_a_change_of_rules():
    runs = [HOURS[0], run(2, (ONE, seal(7140)), components="older"), HOURS[2]]
    assert start(3700, runs) == beginning(s.LATE, 3700 * SECOND)


def test_folds_of_another_shape_are_not_resumed():
    assert start(3 * 3600, shape="other") == beginning(s.FINGERPRINT)
    runs = [HOURS[0], run(2, (ONE, seal(7140)), shape="other"), HOURS[2]]
    assert start(3700, runs) == beginning(s.LATE, 3700 * SECOND)


def test_settings_told_of_the_past_begin_anew():
    found = s.starts([ONE], HOURS, "c", "shape", {ONE: 3 * 3600 * SECOND}, lambda broker, before_us: "other", LAG)
    assert found[ONE] == beginning(s.CONFIGURATION)


def test_each_broker_has_a_start_of_its_own():
    found = s.starts([ONE, TWO], HOURS, "c", "shape", {ONE: 3600 * SECOND}, lambda broker, before_us: "same", LAG)
    assert (found[ONE].folds_run, found[TWO].folds_run) == (1, 3)
    assert found[TWO].reason == s.UNCHANGED


def test_a_broker_that_was_not_there_begins_at_the_beginning():
    found = s.starts([("c", 9)], HOURS, "c", "shape", {("c", 9): 5}, lambda broker, before_us: "same", LAG)
    assert found["c", 9] == beginning(s.FIRST)


def test_a_late_file_goes_back_to_a_run_whose_folds_are_there():
    """Those of the second hour are gone: what that run was told counts all the same."""
    assert start(2 * 3600, there={3, 1}).folds_run == 1
    went_back = [HOURS[0], run(2, (ONE, seal(2 * 3600 - 60, since_s=0))), HOURS[2]]
    assert start(2 * 3600, went_back, there={3, 1}) == beginning(s.LATE, 2 * 3600 * SECOND)


def test_where_days_were_dropped_is_the_beginning():
    pinned = {ONE: (seal(1800), 7)}

    def begin(earliest_s: int) -> s.Start:
        earliest = {ONE: earliest_s * SECOND}
        return s.starts([ONE], HOURS, "c", "shape", earliest, lambda broker, before_us: "same", LAG, pinned)[ONE]

    assert begin(3600).folds_run == 1, "a seal behind it holds"
    assert begin(5) == s.Start(seal(1800), 7, s.LATE, 5 * SECOND, is_first=True)


# ------------------------------------------------------------------------------------------------- what is kept


DAY = 86_400


def days(*sealed_s: int, late: int | None = None) -> list[s.StoredRun]:
    """Runs of a cluster, the newest first; one of them, by its number, went back behind what the others had."""
    return [
        run(number, (ONE, seal(at, since_s=0 if number == late else None)), late=ONE if number == late else None)
        for number, at in reversed(list(enumerate(sealed_s, 1)))
    ]


def test_of_each_day_the_first_run_stays_and_the_last_ones_do():
    runs = days(DAY + 1, DAY + 2, 2 * DAY + 1, 2 * DAY + 2, 2 * DAY + 3, 2 * DAY + 4)
    assert s.select_kept_runs(runs, {}, 2, 0) == {1, 3, 5, 6}


def test_of_each_of_the_last_hours_the_first_run_stays():
    runs = days(DAY + 1, DAY + 3600, DAY + 3700, DAY + 7200, DAY + 7300, DAY + 7400)
    assert s.select_kept_runs(runs, {}, 1, 1) == {1, 4, 6}
    assert s.select_kept_runs(runs, {}, 1, 2) == {1, 2, 4, 6}


def test_a_day_whose_first_run_a_late_file_has_changed_has_another_one():
    runs = days(DAY + 1, 2 * DAY + 1, 2 * DAY + 2, 2 * DAY + 3, 2 * DAY + 4, late=3)
    assert [kept.number for kept in s.list_valid_runs(runs, "c")] == [5, 4, 3]
    assert s.select_kept_runs(runs, {}, 1, 0) == {3, 5}


def test_nothing_stays_of_before_the_run_that_a_replay_begins_with_once_days_were_dropped():
    runs = days(DAY + 1, 2 * DAY + 1, 2 * DAY + 2, 3 * DAY + 1, 3 * DAY + 2)
    assert s.select_kept_runs(runs, {"c": 3}, 1, 0) == {3, 4, 5}


def test_the_folds_stay_that_the_run_went_on_with_before_which_days_were_dropped():
    *later, run, before = days(DAY + 1, 2 * DAY + 1, 2 * DAY + 2, 3 * DAY + 1)[:4]
    rules_alone = replace(run, folds_run=before.number)
    assert s.select_kept_runs([*later, rules_alone, before], {"c": run.number}, 1, 0) >= {
        before.number,
        later[0].number,
    }


def test_a_run_that_left_no_folds_keeps_those_that_it_went_on_with():
    runs = [replace(run(3, (ONE, seal(9))), folds_run=2), run(2, (ONE, seal(9)))]
    assert s.select_kept_runs(runs, {}, 1, 0) == {2}


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=6), st.integers(0, 10_000))
def test_nothing_that_came_lies_before_the_seal_that_is_gone_on_from(sealed_s: list[int], earliest_s: int):
    runs = [run(number, (ONE, seal(at))) for number, at in enumerate(sorted(sealed_s, reverse=True))]
    found = start(earliest_s, runs)
    assert found.seal is None or found.seal.sealed_us <= earliest_s * SECOND


@given(st.integers(0, 1 << 50), st.integers(10, 3600), st.none() | st.integers(0, 1 << 50))
def test_a_seal_lies_on_a_whole_second_and_never_steps_back(last_us: int, lag_s: int, since_s: int | None):
    since_us = None if since_s is None else since_s * SECOND
    found = s.compute_seal_us(last_us, lag_s * SECOND, since_us)
    assert found % SECOND == 0
    assert found <= last_us - lag_s * SECOND or found == since_us
    assert since_us is None or found >= since_us
