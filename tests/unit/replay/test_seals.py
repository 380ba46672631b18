"""Where a replay goes on: by what came, and never from rows that something else made."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipelines.kafka import seals as s

SECOND = 1_000_000
LAG = 60 * SECOND
ONE, TWO = ("c", 1), ("c", 2)


def seal(sealed_s: int, premises: str = "same", since_s: int | None = None) -> s.Seal:
    """A seal of an hourly run, which went on from the one an hour before unless another is given."""
    since_us = max(sealed_s - 3600 if since_s is None else since_s, 0) * SECOND
    return s.Seal(sealed_s * SECOND, sealed_s * SECOND - 5, sealed_s * SECOND, premises, since_us)


def stamp(number: int, *seals: tuple[s.Broker, s.Seal], fingerprint: str = "f") -> s.Stamp:
    return s.Stamp(f"run{number}", fingerprint, number, dict(seals))


#: Runs after each of three hours, the newest first.
HOURS = [stamp(hour, (ONE, seal(hour * 3600 - 60)), (TWO, seal(hour * 3600 - 60))) for hour in (3, 2, 1)]


def start(earliest_s: int | None, stamps: list[s.Stamp] = HOURS, fingerprint: str = "f") -> s.Start:
    earliest = {} if earliest_s is None else {ONE: earliest_s * SECOND}
    return s.starts([ONE], stamps, fingerprint, earliest, lambda broker, before_us: "same", LAG)[ONE]


def test_the_first_run_begins_at_the_beginning():
    assert start(10, []) == s.Start(None, None, s.FIRST)


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
    assert (found.reason, found.carried_version, found.late_us) == (s.LATE, 1, 3600 * SECOND)


def test_what_is_older_than_every_seal_goes_back_to_the_beginning():
    assert start(5) == s.Start(None, None, s.LATE, 5 * SECOND)


def test_a_seal_that_a_later_run_went_back_behind_is_outdated():
    """The third run went back behind the seals of the first two, which did not know what it had come to know."""
    went_back = [stamp(3, (ONE, seal(3 * 3600 - 60, since_s=0))), *HOURS[1:]]
    assert start(3 * 3600 - 61).carried_version == 2
    assert start(3 * 3600 - 61, went_back) == s.Start(None, None, s.LATE, (3 * 3600 - 61) * SECOND)
    gone_on = [stamp(4, (ONE, seal(4 * 3600 - 60))), *went_back]
    assert start(4 * 3600 - 61, gone_on).carried_version == 3
    assert start(3 * 3600 - 61, gone_on).carried_version is None


def test_other_rules_begin_anew():
    assert start(3 * 3600, fingerprint="g") == s.Start(None, None, s.FINGERPRINT)


def test_late_lines_do_not_go_back_over_a_change_of_rules():
    stamps = [HOURS[0], stamp(2, (ONE, seal(7140)), fingerprint="older"), HOURS[2]]
    assert start(3700, stamps) == s.Start(None, None, s.LATE, 3700 * SECOND)


def test_settings_told_of_the_past_begin_anew():
    found = s.starts([ONE], HOURS, "f", {ONE: 3 * 3600 * SECOND}, lambda broker, before_us: "other", LAG)
    assert found[ONE] == s.Start(None, None, s.CONFIGURATION)


def test_each_broker_has_a_start_of_its_own():
    found = s.starts([ONE, TWO], HOURS, "f", {ONE: 3600 * SECOND}, lambda broker, before_us: "same", LAG)
    assert (found[ONE].carried_version, found[TWO].carried_version) == (1, 3)
    assert found[TWO].reason == s.UNCHANGED


def test_a_broker_that_was_not_there_begins_at_the_beginning():
    found = s.starts([("c", 9)], HOURS, "f", {("c", 9): 5}, lambda broker, before_us: "same", LAG)
    assert found["c", 9] == s.Start(None, None, s.FIRST)


def test_a_stamp_survives_its_commit():
    assert s.Stamp.from_json(HOURS[0].to_json()) == HOURS[0]


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=6), st.integers(0, 10_000))
def test_nothing_that_came_lies_before_the_seal_that_is_gone_on_from(sealed_s: list[int], earliest_s: int):
    stamps = [stamp(number, (ONE, seal(at))) for number, at in enumerate(sorted(sealed_s, reverse=True))]
    found = start(earliest_s, stamps)
    assert found.seal is None or found.seal.sealed_us <= earliest_s * SECOND


@given(st.integers(0, 1 << 50), st.integers(10, 3600), st.none() | st.integers(0, 1 << 50))
def test_a_seal_lies_on_a_whole_second_and_never_steps_back(last_us: int, lag_s: int, since_s: int | None):
    since_us = None if since_s is None else since_s * SECOND
    found = s.seal_us(last_us, lag_s * SECOND, since_us)
    assert found % SECOND == 0
    assert found <= last_us - lag_s * SECOND or found == since_us
    assert since_us is None or found >= since_us
