"""Small files of a table in one: rows, and what the log tells of batches, stay as they are."""

from pathlib import Path

import pytest
from deltalake import DeltaTable

from highwater.pipelines.base.errors import LakeError
from highwater.pipelines.lake import lake as lake_module
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.table_files import build_table
from highwater.schemas.table import INT, STRING, STRINGS, TableSpec, column

SPEC = TableSpec(
    "gold",
    "visits",
    "One row per visit",
    (column("topic", STRING, "Topic"), column("n", INT, "n"), column("brokers", STRINGS, "Brokers")),
    keys=("n",),
    feeds_changes=True,
)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(None, tmp_path)


def add(lake: Lake, *numbers: int) -> None:
    for n in numbers:
        lake.append_once(SPEC, build_table(SPEC, [("t", n, ["1", "2"])]), f"batch{n} x")


def numbers(lake: Lake) -> list[int]:
    return sorted(lake.rows(SPEC, "n")["n"].to_pylist())


def names(lake: Lake) -> set[str]:
    return {file.place.name for file in lake.files(SPEC) or ()}


def test_many_small_files_become_one(lake: Lake) -> None:
    add(lake, 1, 2, 3, 4)
    lake.gather(SPEC)
    assert len(names(lake)) == 4
    add(lake, 5)
    lake.gather(SPEC)
    assert (len(names(lake)), numbers(lake)) == (1, [1, 2, 3, 4, 5])
    assert DeltaTable(str(lake.path(SPEC))).to_pyarrow_table().num_rows == 5
    assert lake.stamp(SPEC) == "batch5 x"
    assert lake.rows(SPEC, "brokers")["brokers"].to_pylist() == [["1", "2"]] * 5


def test_no_row_changes(lake: Lake) -> None:
    add(lake, *range(5))
    lake.gather(SPEC)
    version = lake.versions()[SPEC.full_name]
    changes = DeltaTable(str(lake.path(SPEC))).load_cdf(starting_version=version).read_all()
    assert changes.num_rows == 0


def test_large_files_stay(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    add(lake, *range(5))
    monkeypatch.setattr(lake_module, "_SMALL_BYTES", 10)
    before = names(lake)
    lake.gather(SPEC)
    assert names(lake) == before


def test_what_a_run_has_not_seen_is_told_behind_it(lake: Lake) -> None:
    add(lake, *range(5))
    version, settled = lake.versions()[SPEC.full_name], {"batch4"}.__contains__
    lake.gather(SPEC)
    assert lake.find_added_files(SPEC, version) == ()
    assert lake.find_unsettled_files(SPEC, settled) == ()
    add(lake, 5)
    for added in (lake.find_added_files(SPEC, version), lake.find_unsettled_files(SPEC, settled)):
        assert [lake.rows(SPEC, "n").num_rows, len(added or ())] == [6, 1]
    # Of what was gathered the log does not tell which rows were new.
    assert lake.find_added_files(SPEC, version - 1) is None
    assert lake.find_unsettled_files(SPEC, {"batch3"}.__contains__) is None


def test_a_table_that_another_writes_meanwhile_stays(lake: Lake, tmp_path: Path) -> None:
    add(lake, *range(5))
    rival = Lake(None, tmp_path)
    late = Lake(None, tmp_path, fence=lambda: add(rival, 9))
    # What was added meanwhile stays as it is; what was removed cannot be gathered.
    late.gather(SPEC)
    assert (numbers(lake), len(names(lake))) == ([0, 1, 2, 3, 4, 9], 2)
    add(lake, *range(10, 15))
    late = Lake(None, tmp_path, fence=lambda: bool(rival.empty(SPEC)))
    with pytest.raises(LakeError, match="written by another process"):
        late.gather(SPEC)
    assert numbers(lake) == []


def test_a_table_without_rows_is_left_alone(lake: Lake) -> None:
    lake.gather(SPEC)
    lake.create([SPEC])
    lake.gather(SPEC)
    assert lake.versions() == {SPEC.full_name: 0}
