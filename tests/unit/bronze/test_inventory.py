"""Which files need not be opened again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.bronze.inventory import SETTLED_US, ReadLog, Stat, stat, unchanged, updated

NOW = 1_800_000_000_000_000
OLD = NOW - SETTLED_US
REGISTERED = {"a": "sha-a", "b": "sha-b"}


def entry(path: str = "/l/server.log", name: str | None = None, file_id: str = "a", **changes: int) -> ReadLog:
    values = {"size_bytes": 7, "modified_us": OLD, "looked_us": NOW} | changes
    return ReadLog(path, name or path, file_id=file_id, **values)


def test_a_file_that_is_as_it_was_is_known_by_its_hash() -> None:
    assert unchanged({"/l/server.log": Stat(7, OLD)}, [entry()], REGISTERED) == {
        "/l/server.log": [("/l/server.log", "sha-a")]
    }


@pytest.mark.parametrize(
    ("now", "noted"),
    [
        (Stat(8, OLD), entry()),
        (Stat(7, OLD + 1), entry()),
        (Stat(7, OLD - 1), entry()),
        (None, entry()),
        (Stat(7, OLD), entry(path="/l/another.log")),
        (Stat(7, OLD), entry(file_id="nobody's")),
        # It was changed as it was read: the next change may have the same time.
        (Stat(7, OLD + 1), entry(modified_us=OLD + 1)),
        (Stat(7, NOW + 60_000_000), entry(modified_us=NOW + 60_000_000)),
    ],
)
def test_any_other_is_hashed(now: Stat | None, noted: ReadLog) -> None:
    assert unchanged({"/l/server.log": now}, [noted], REGISTERED) == {}


def test_a_bundle_is_as_it_was_if_all_of_its_logs_are_known() -> None:
    first, second = (entry("/l/b.tgz", f"/l/b.tgz!/{log}", log) for log in "ab")
    stats = {"/l/b.tgz": Stat(7, OLD)}
    assert unchanged(stats, [second, first], REGISTERED) == {
        "/l/b.tgz": [("/l/b.tgz!/a", "sha-a"), ("/l/b.tgz!/b", "sha-b")]
    }
    assert unchanged(stats, [second, first], {"a": "sha-a"}) == {}


def test_a_bundle_is_opened_again_where_other_members_may_be_wanted() -> None:
    stats = {"/l/b.tgz": Stat(7, OLD), "/l/server.log": Stat(7, OLD)}
    logs = {"/l/b.tgz": [("/l/b.tgz!/a", "a")], "/l/server.log": [("/l/server.log", "b")]}
    noted = updated([], stats, logs, NOW, "these")
    assert unchanged(stats, noted, REGISTERED, "these").keys() == stats.keys()
    assert unchanged(stats, noted, REGISTERED, "others").keys() == {"/l/server.log"}


def test_what_was_opened_takes_the_place_of_what_was_noted() -> None:
    before = [entry(), entry("/l/gone.log"), entry("/l/b.tgz", "/l/b.tgz!/a")]
    stats = {"/l/server.log": Stat(9, NOW - 1), "/l/b.tgz": Stat(5, NOW - 2), "/l/lost.log": None}
    logs = {"/l/server.log": [("/l/server.log", "b")], "/l/b.tgz": [("/l/b.tgz!/c", "b")], "/l/lost.log": [("x", "a")]}
    assert updated(before, stats, logs, NOW) == [
        ReadLog("/l/b.tgz", "/l/b.tgz!/c", 5, NOW - 2, "b", NOW),
        entry("/l/gone.log"),
        ReadLog("/l/server.log", "/l/server.log", 9, NOW - 1, "b", NOW),
    ]


def test_a_files_size_and_time_are_asked_for_without_opening_it(tmp_path: Path) -> None:
    file = tmp_path / "server.log"
    file.write_bytes(b"1234567")
    os.utime(file, ns=(0, 1_700_000_000_123_456_789))
    file.chmod(0)
    assert stat(str(file)) == Stat(7, 1_700_000_000_123_457)
    assert stat(str(tmp_path / "nothing")) is None


SECOND_US = 1_000_000


@given(
    before_us=st.integers(0, 2 * SETTLED_US),
    after_us=st.integers(1, 2 * SETTLED_US),
    off_us=st.integers(-3 * SECOND_US, 3 * SECOND_US),
)
def test_no_file_that_was_changed_since_is_taken_for_known(before_us: int, after_us: int, off_us: int) -> None:
    """Of the same size, on a store that tells whole seconds, by a clock that is up to three seconds off."""

    def told(written_us: int) -> Stat:
        return Stat(7, (written_us + off_us) // SECOND_US * SECOND_US)

    noted = ReadLog("f", "f", *told(NOW - before_us), "a", NOW)
    assert unchanged({"f": told(NOW + after_us)}, [noted], REGISTERED) == {}
    if before_us >= SETTLED_US + 4 * SECOND_US:
        assert unchanged({"f": told(NOW - before_us)}, [noted], REGISTERED) == {"f": [("f", "sha-a")]}
