"""A change feed tells the rows that differ."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.lake import changes
from highwater.pipelines.lake.changes import CHANGE_TYPE, compare_rows
from highwater.pipelines.lake.delta_log import read_log
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.table_files import build_table
from highwater.schemas.audit import VIOLATIONS
from highwater.schemas.table import INTS, STRING, TIMESTAMP, TableSpec, column, required
from tests.unit.storage.stores import disk as root  # noqa: F401

SPEC = TableSpec(
    layer="gold",
    name="samples",
    comment="",
    columns=(
        required("place", STRING, ""),
        column("at", TIMESTAMP, ""),
        column("brokers", INTS, ""),
    ),
    keys=("place",),
    bounded_by=("at",),
    feeds_changes=True,
)
Row = tuple[str, int | None, tuple[int, ...] | None]
ROWS = st.lists(
    st.tuples(
        st.sampled_from("abcd"), st.none() | st.sampled_from([0, 1]), st.none() | st.sampled_from([(), (1,), (1, 2)])
    ),
    unique_by=lambda row: row[0],
)


def plain(rows: pa.Table) -> list[tuple[Any, ...]]:
    at = SPEC.column_names.index("at")
    rows = rows.set_column(at, "at", rows.column(at).cast(pa.int64()))
    return [tuple(tuple(v) if isinstance(v, list) else v for v in row.values()) for row in rows.to_pylist()]


@given(ROWS, ROWS)
def test_changes_are_what_makes_old_rows_new(old: list[Row], new: list[Row]) -> None:
    changes = plain(compare_rows(SPEC, *(build_table(SPEC, rows).to_batches() for rows in (old, new))))
    gone, come = Counter(old) - Counter(new), Counter(new) - Counter(old)
    updated = {row[0] for row in gone} & {row[0] for row in come}
    expected = [(*row, "update_preimage" if row[0] in updated else "delete") for row in gone]
    expected += [(*row, "update_postimage" if row[0] in updated else "insert") for row in come]
    assert sorted(changes, key=repr) == sorted(expected, key=repr)


def rows(*values: Row) -> pa.Table:
    return build_table(SPEC, list(values))


def fed(lake: Lake, since: int) -> list[tuple[Any, ...]]:
    """Place, type and version of what the feed has; read by another library."""
    table = deltalake.DeltaTable(lake.path(SPEC))
    columns = ["place", "_change_type", "_commit_version"]
    changes = pa.table(table.load_cdf(starting_version=since, columns=columns).read_all())
    return sorted(tuple(row[name] for name in columns) for row in changes.to_pylist())


def test_a_reader_of_the_feed_is_told_what_differs(tmp_path: Path) -> None:
    lake = Lake(None, tmp_path)  # type: ignore[arg-type]
    lake.replace(SPEC, rows(("a", 1, None), ("b", 1, (1,)), ("c", 1, ())), stamp="one")
    lake.replace(SPEC, rows(("a", 1, None), ("b", 1, (2,)), ("d", 1, ())), stamp="two")
    assert fed(lake, 2) == [
        ("b", "update_postimage", 2),
        ("b", "update_preimage", 2),
        ("c", "delete", 2),
        ("d", "insert", 2),
    ]
    assert [row["place"] for row in lake.rows(SPEC, "place").to_pylist()] == ["a", "b", "d"]
    lake.empty(SPEC)
    assert [(place, kind) for place, kind, _ in fed(lake, 3)] == [("a", "delete"), ("b", "delete"), ("d", "delete")]


def test_what_is_as_it_was_is_not_written_again(root: Any) -> None:  # noqa: F811
    lake = Lake(None, root)  # type: ignore[arg-type]
    lake.replace(SPEC, rows(("a", 1, None), ("b", 1, (1,))), stamp="one")
    before = read_log(lake.path(SPEC))
    lake.replace(SPEC, rows(("b", 1, (1,)), ("a", 1, None)), stamp="two")
    after = read_log(lake.path(SPEC))
    assert (after.files, lake.stamp(SPEC), after.version) == (before.files, "two", 2)
    assert lake.rows(SPEC, "place").num_rows == 2
    lake.replace(SPEC, rows(("b", 1, (1,))), stamp="three")
    assert lake.rows(SPEC, "place").to_pylist() == [{"place": "b"}]


def test_large_tables_are_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "COMPARED_BYTES", 0)
    lake = Lake(None, tmp_path)  # type: ignore[arg-type]
    for _ in range(2):
        lake.replace(SPEC, rows(("a", 1, None)))
    assert fed(lake, 2) == [("a", "delete", 2), ("a", "insert", 2)]


def test_lists_of_findings_are_compared() -> None:
    finding = dict.fromkeys(VIOLATIONS.column_names) | {"brokers": [1, 2], "severity": "violation"}
    for name in ("cluster_id", "finding_id", "rule_id", "message"):
        finding[name] = name
    told = [
        pa.Table.from_pylist([finding | {"brokers": brokers}], VIOLATIONS.arrow_schema).to_batches()
        for brokers in ([1, 2], [1, 3])
    ]
    assert compare_rows(VIOLATIONS, told[0], told[0]).num_rows == 0
    changes = compare_rows(VIOLATIONS, *told)
    assert changes.column(CHANGE_TYPE).to_pylist() == ["update_preimage", "update_postimage"]
    assert changes.column("brokers").to_pylist() == [[1, 2], [1, 3]]


def test_a_merge_feeds_what_differs(tmp_path: Path) -> None:
    lake = Lake(None, tmp_path)  # type: ignore[arg-type]
    lake.merge(SPEC, rows(("a", 5_000, None), ("b", 5_000, (1,)), ("c", 0, ())), None, "one")
    # Of c the table has an older row, which is not looked at.
    lake.merge(SPEC, rows(("a", 5_000, None), ("b", 7_000, (1,)), ("c", 6_000, ()), ("d", 6_000, ())), "at", "two")
    assert lake.stamp(SPEC) == "two"
    assert fed(lake, 2) == [
        ("b", "update_postimage", 2),
        ("b", "update_preimage", 2),
        ("c", "insert", 2),
        ("d", "insert", 2),
    ]
    there = [(row["place"], row["brokers"]) for row in lake.rows(SPEC, "place", "brokers").to_pylist()]
    assert sorted(there, key=repr) == [("a", None), ("b", [1]), ("c", []), ("c", []), ("d", [])]
