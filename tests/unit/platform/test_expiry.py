"""What is dropped of old days, and what is refused. That answers stay the same, `tests.spark.audits` shows."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import ArrayType, BooleanType, StringType, TimestampType

from highwater.pipelines.base.errors import ConfigError, InputError
from highwater.pipelines.base.fingerprint import TABLES as MADE_ANEW
from highwater.pipelines.lake.clusters import ClusterInstants
from highwater.pipelines.lake.delta_commits import allow_commits, append
from highwater.pipelines.lake.delta_log import find_version, read_log
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.parquet import read_files
from highwater.pipelines.lake.row_parts import count_wanted, select_old, split_rows
from highwater.pipelines.lake.table_files import write_rows
from highwater.pipelines.lake.tables import create_table
from highwater.pipelines.replay.connections import GONE_US
from highwater.pipelines.silver.parse import _empty_outdated, list_dropped_files
from highwater.pipelines.upkeep import expiry, upgrade
from highwater.pipelines.upkeep.expiry import Keep, resolve_keep
from highwater.schemas import silver
from highwater.schemas.audit import EVIDENCE, VIOLATIONS
from highwater.schemas.bronze import LOG_FILES, LOG_LINES
from highwater.schemas.controllers import FAILOVERS
from highwater.schemas.gold import DELAYED_OPERATIONS
from highwater.schemas.quality import QUARANTINED_FILES
from highwater.schemas.silver import FETCH_REQUESTS, HIGH_WATERMARKS, LEADER_AND_ISR, LINE_COUNTS, REQUESTS, TOPICS
from highwater.schemas.state import EXPIRIES, FOLDS, RUNS
from highwater.schemas.table import STRING, TIMESTAMP, TableSpec, column

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TODAY = datetime(2026, 11, 22, 3, tzinfo=UTC)
CUT = datetime(2026, 11, 21, tzinfo=UTC)
BROKER = ("c", 1)
DAYS = Keep(1, 1, 1)
Copy = Callable[[Path], Path]
TABLES = (
    *(LOG_FILES, LOG_LINES, FETCH_REQUESTS, HIGH_WATERMARKS, REQUESTS, LEADER_AND_ISR, DELAYED_OPERATIONS),
    *(VIOLATIONS, EVIDENCE, QUARANTINED_FILES, RUNS, FOLDS, EXPIRIES),
)


def us(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def at(**since: float) -> datetime:
    """An instant by its distance from the cut."""
    return CUT + timedelta(**since)


def filled(spec: TableSpec, values: Mapping[str, Any]) -> dict[str, Any]:
    """A row with something in each column that may not be null."""
    row = {field.name: _something(field.dataType) for field in spec.columns if not field.nullable}
    return {**row, **values}


def _something(data_type: Any) -> Any:
    if isinstance(data_type, ArrayType):
        return []
    return {StringType: "x", TimestampType: CUT, BooleanType: True}.get(type(data_type), 1)


def put(root: Path, spec: TableSpec, *rows: Mapping[str, Any], stamp: str = "s") -> None:
    folder = root / spec.layer / spec.name
    if find_version(folder) is None:
        create_table(folder, spec)
    table = pa.Table.from_pylist([filled(spec, row) for row in rows], spec.arrow_schema)
    append(folder, write_rows(folder, spec, table), stamp)


def rows_of(root: Path, spec: TableSpec, *names: str) -> list[dict[str, Any]]:
    folder = root / spec.layer / spec.name
    return list(read_files(spec, [folder / file.path for file in read_log(folder).files], names).to_pylist())


def of_broker(broker_id: int | None = 1) -> dict[str, Any]:
    return {"cluster_id": "c", "broker_id": broker_id}


def put_run(root: Path, number: int, sealed: datetime | None, files: Sequence[str], **row: Any) -> None:
    """A run of the ledger, and a fold that it left."""
    values = {"run_number": number, "run_id": f"r{number}", "folds_run": number, "reason": "new"}
    sealed_row = dict.fromkeys(("sealed_time", "sessions_time", "waiting_time"), sealed)
    put(root, RUNS, {**of_broker(), **values, **sealed_row, "premises": "p", "file_ids": list(files), **row})
    cluster_id = row.get("cluster_id", of_broker()["cluster_id"])
    put(root, FOLDS, {**of_broker(), "cluster_id": cluster_id, "run_number": number, "kind": "partition", "row": "{}"})


def written(root: Path) -> Path:
    """Two days of one broker's log, a file each, and a run after each day."""
    for spec in TABLES:
        create_table(root / spec.layer / spec.name, spec)
    for file_id, first, last in (("old", at(hours=-20), at(hours=-3)), ("new", at(hours=-3), at(hours=20))):
        put(
            root,
            LOG_FILES,
            {**of_broker(), "file_id": file_id, "first_time": first, "last_time": last, "record_count": 1},
        )
        for moment in (first, last):
            put(root, LOG_LINES, {**of_broker(), "file_id": file_id, "time": moment})
    for hours in (-20, -4, -2.5, -1.5, 3):
        moment = at(hours=hours)
        put(root, FETCH_REQUESTS, {**of_broker(), "time": moment})
        put(root, LEADER_AND_ISR, {**of_broker(), "time": moment})
        put(root, REQUESTS, {**of_broker(), "time": moment, "transactional_id": "t" if hours == -20 else None})
        put(root, HIGH_WATERMARKS, {**of_broker(), "time": moment, "source": "loaded" if hours == -20 else "updated"})
        put(root, DELAYED_OPERATIONS, {**of_broker(), "arrival_time": moment, "class": "explained"})
        put(root, VIOLATIONS, {"cluster_id": "c", "finding_id": str(hours), "time": moment, "severity": "open"})
        put(root, EVIDENCE, {"cluster_id": "c", "finding_id": str(hours)})
    put_run(root, 1, at(hours=-1), ["old"], waiting_time=at(hours=-1.1))
    put_run(root, 2, at(hours=19), ["new"])
    return root


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    """Copies such a lake."""
    return partial(shutil.copytree, written(tmp_path_factory.mktemp("written")), dirs_exist_ok=True)


def expired(root: Path, keep: Keep = DAYS) -> dict[str, int]:
    plan = expiry.plan_expiry(root, keep, TODAY)
    assert plan is not None
    counts = expiry.count_rows(root, plan)
    assert expiry.expire(root, plan, TODAY, allow_commits) == counts
    return dict(counts)


def hours_left(root: Path, spec: TableSpec, name: str = "time") -> list[float]:
    return sorted((row[name] - CUT) / timedelta(hours=1) for row in rows_of(root, spec, name))


def test_what_no_replay_needs_is_dropped(lake: Copy, tmp_path: Path) -> None:
    counts = expired(lake(tmp_path))
    # The anchor is final up to an hour before the cut, its requests a little less, and an hour before that is needed.
    assert hours_left(tmp_path, FETCH_REQUESTS) == [-1.5, 3]
    assert hours_left(tmp_path, REQUESTS) == [-20, -1.5, 3], "what names a transaction stays"
    assert hours_left(tmp_path, HIGH_WATERMARKS) == [-20, -1.5, 3], "what is told at a start stays"
    assert hours_left(tmp_path, LEADER_AND_ISR) == [-20, -4, -2.5, -1.5, 3], "history stays"
    assert {row["file_id"] for row in rows_of(tmp_path, LOG_LINES, "file_id")} == {"new"}
    assert {row["file_id"] for row in rows_of(tmp_path, LOG_FILES, "file_id")} == {"old", "new"}
    assert hours_left(tmp_path, DELAYED_OPERATIONS, "arrival_time") == [3]
    assert [row["finding_id"] for row in rows_of(tmp_path, EVIDENCE, "finding_id")] == ["3"]
    assert counts["silver.fetch_requests"] == 3
    assert counts["gold.evidence"] == 4


def test_it_is_said_in_the_ledger_once(lake: Copy, tmp_path: Path) -> None:
    expired(lake(tmp_path))
    (row,) = rows_of(tmp_path, EXPIRIES, *EXPIRIES.column_names)
    assert (row["closed_time"], row["run_id"]) == (CUT, "r1")
    assert row["known_time"] == at(hours=20, microseconds=1)
    versions = {spec.name: find_version(tmp_path / spec.layer / spec.name) for spec in TABLES}
    assert expired(tmp_path) == {}
    assert {spec.name: find_version(tmp_path / spec.layer / spec.name) for spec in TABLES} == versions


def test_layers_are_kept_as_long_as_it_is_said_of_each(lake: Copy, tmp_path: Path) -> None:
    expired(lake(tmp_path), Keep(1, 2, None))
    assert {row["file_id"] for row in rows_of(tmp_path, LOG_LINES, "file_id")} == {"new"}
    assert hours_left(tmp_path, FETCH_REQUESTS) == [-20, -4, -2.5, -1.5, 3]
    assert hours_left(tmp_path, DELAYED_OPERATIONS, "arrival_time") == [-20, -4, -2.5, -1.5, 3]
    (row,) = rows_of(tmp_path, EXPIRIES, *EXPIRIES.column_names)
    assert (row["bronze_time"], row["silver_time"], row["gold_time"]) == (CUT, CUT - timedelta(days=1), None)


def test_rows_of_brokers_that_the_anchor_does_not_know_stay(lake: Copy, tmp_path: Path) -> None:
    lake(tmp_path)
    put(tmp_path, FETCH_REQUESTS, {**of_broker(2), "time": at(hours=-9)}, {**of_broker(None), "time": at(hours=-8)})
    register = {**of_broker(2), "file_id": "other", "first_time": at(hours=-9), "last_time": at(hours=-9)}
    put(tmp_path, LOG_FILES, register | {"record_count": 1})
    put(tmp_path, RUNS, {**of_broker(2), "run_number": 2, "run_id": "r2", "file_ids": ["other"], "reason": "new"})
    expired(tmp_path)
    assert hours_left(tmp_path, FETCH_REQUESTS) == [-9, -1.5, 3], "a row of nobody is replayed by nobody"


def test_nothing_is_so_old(lake: Copy, tmp_path: Path) -> None:
    assert expiry.plan_expiry(lake(tmp_path), Keep(30, 30, 30), TODAY) is None


def test_a_run_whose_folds_are_gone_is_none_to_begin_with(lake: Copy, tmp_path: Path) -> None:
    shutil.rmtree(lake(tmp_path) / "state" / "folds")
    put(tmp_path, FOLDS, {**of_broker(), "run_number": 2, "kind": "partition", "row": "{}"})
    with pytest.raises(InputError, match="no state of a replay"):
        expiry.plan_expiry(tmp_path, DAYS, TODAY)


def test_without_a_state_from_before_the_cut_nothing_is_dropped(lake: Copy, tmp_path: Path) -> None:
    lake(tmp_path)
    row = {"file_id": "older", "first_time": at(hours=-40), "last_time": None, "record_count": 0}
    put(tmp_path, LOG_FILES, {**of_broker(), **row})
    with pytest.raises(
        InputError, match=r"no state .* of cluster c from before 2026-11-20; the oldest is of 2026-11-20 23"
    ):
        expiry.plan_expiry(tmp_path, Keep(2, 2, 2), TODAY)


def test_a_state_that_a_late_file_has_changed_is_none(lake: Copy, tmp_path: Path) -> None:
    lake(tmp_path)
    put_run(tmp_path, 3, at(hours=19), [], reason="late", from_time=at(hours=-5))
    with pytest.raises(InputError, match="no state of a replay"):
        expiry.plan_expiry(tmp_path, DAYS, TODAY)


def test_files_that_were_not_replayed_are_waited_for(lake: Copy, tmp_path: Path) -> None:
    lake(tmp_path)
    row = {**of_broker(), "file_id": "later", "first_time": at(hours=1), "last_time": at(hours=2), "record_count": 1}
    put(tmp_path, LOG_FILES, row)
    with pytest.raises(InputError, match="not replayed yet"):
        expiry.plan_expiry(tmp_path, DAYS, TODAY)
    put(tmp_path, QUARANTINED_FILES, {"file_id": "later", "action": "quarantined"})
    assert expiry.plan_expiry(tmp_path, DAYS, TODAY) is not None


def test_tables_that_have_to_be_made_anew_are_waited_for(lake: Copy, tmp_path: Path) -> None:
    lake(tmp_path)
    put(tmp_path, RUNS, {"run_number": 3, "components": MADE_ANEW})
    with pytest.raises(InputError, match="made anew"):
        expiry.plan_expiry(tmp_path, DAYS, TODAY)


def test_a_lake_without_an_audit_is_refused(tmp_path: Path) -> None:
    create_table(tmp_path / "bronze" / "log_files", LOG_FILES)
    create_table(tmp_path / "state" / "runs", RUNS)
    with pytest.raises(InputError, match="holds no audit"):
        expiry.plan_expiry(tmp_path, DAYS, TODAY)


class Cut(Exception):
    """The process is killed."""


@pytest.mark.parametrize("commits", range(8))
def test_cut_off_anywhere_it_is_made_again(lake: Copy, tmp_path: Path, commits: int) -> None:
    undisturbed, root = lake(tmp_path / "a"), lake(tmp_path / "b")
    expired(undisturbed)
    left = commits

    def fence() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Cut

    plan = expiry.plan_expiry(root, DAYS, TODAY)
    assert plan is not None
    with pytest.raises(Cut):
        expiry.expire(root, plan, TODAY, fence)
    expired(root)
    for spec in TABLES:
        name = next(iter(spec.dated_by), spec.keys[0])
        assert sorted(map(str, rows_of(root, spec, name))) == sorted(map(str, rows_of(undisturbed, spec, name)))


def test_how_long_layers_are_kept() -> None:
    nothing = dict.fromkeys(Keep._fields)
    assert resolve_keep("90d", nothing) == Keep(90, 90, 90)
    assert resolve_keep("90d", nothing | {"bronze": "30d", "gold": "400d"}) == Keep(30, 90, 400)
    assert resolve_keep(None, nothing | {"bronze": "30d"}) == Keep(30, None, None)
    with pytest.raises(ConfigError, match="--keep"):
        resolve_keep(None, nothing)
    with pytest.raises(ConfigError, match="bronze_keep <= silver_keep <= gold_keep"):
        resolve_keep("90d", nothing | {"gold": "30d"})
    with pytest.raises(ConfigError, match="bronze_keep <= silver_keep"):
        resolve_keep(None, nothing | {"gold": "30d"})


DATED = TableSpec(
    "gold",
    "spans",
    "One row per span",
    (
        column("cluster_id", STRING, "Cluster"),
        column("begun", TIMESTAMP, "From"),
        column("ended", TIMESTAMP, "Until"),
    ),
    keys=("begun",),
    dated_by=("begun", "ended"),
)
INSTANTS = st.one_of(st.none(), st.integers(0, 6))
Span = tuple[str, int | None, int | None]
SPANS = st.tuples(st.sampled_from("abc"), INSTANTS, INSTANTS)
BY_CLUSTER = st.builds(ClusterInstants, st.dictionaries(st.sampled_from("ab"), st.integers(0, 7)), st.integers(0, 7))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(SPANS, max_size=6), max_size=4), BY_CLUSTER)
def test_each_row_is_before_the_instant_of_its_cluster_or_from_it_on(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[Span]], instants: ClusterInstants
) -> None:
    root = tmp_path_factory.mktemp("lake")
    folder = root / "gold" / "spans"
    create_table(folder, DATED)
    for rows in files:
        table = pa.Table.from_pylist(
            [dict(zip(DATED.column_names, row, strict=True)) for row in rows], DATED.arrow_schema
        )
        append(folder, write_rows(folder, DATED, table), None)
    paths = [file.path for file in read_log(folder).files]
    kept: list[Span] = []
    old = select_old(DATED, instants)
    for wanted, is_old in ((old, True), (old.invert(), False)):
        part = split_rows(folder, DATED, paths, wanted)
        assert set(part.whole) <= set(paths)
        there = [*part.whole, *(file.path for file in part.written)]
        rows = _spans(folder, there)
        assert part.rows_left_out == count_wanted(folder, DATED, paths, wanted.invert())
        assert part.rows_left_out == sum(map(len, files)) - len(rows)
        for cluster_id, *span in rows:
            date = max((us for us in span if us is not None), default=None)
            assert (date is not None and date < instants.of(cluster_id)) == is_old
        kept += rows
    assert sorted(map(str, kept)) == sorted(str(row) for rows in files for row in rows)


def _spans(folder: Path, paths: Sequence[str]) -> list[Span]:
    table = read_files(DATED, [folder / path for path in paths], DATED.column_names)
    dates = [pc.cast(table.column(name), pa.int64()).to_pylist() for name in DATED.dated_by]
    return list(zip(table.column("cluster_id").to_pylist(), *dates, strict=True))


def test_a_failover_is_dated_by_when_it_was_over() -> None:
    assert FAILOVERS.dated_by == ("taken_up_time", "serving_time")
    assert GONE_US == 3_600_000_000


def opened(root: Path) -> Lake:
    """A lake whose tables are small enough to be written without Spark."""
    return Lake(cast(Any, None), root)


def operations(*hours: float) -> pa.Table:
    rows = [filled(DELAYED_OPERATIONS, {**of_broker(), "arrival_time": at(hours=h), "class": "late"}) for h in hours]
    return pa.Table.from_pylist(rows, DELAYED_OPERATIONS.arrow_schema)


def classes(root: Path) -> list[tuple[float, str]]:
    rows = rows_of(root, DELAYED_OPERATIONS, "arrival_time", "class")
    return sorted(((row["arrival_time"] - CUT) / timedelta(hours=1), row["class"]) for row in rows)


def test_whatever_is_written_closed_days_stay(lake: Copy, tmp_path: Path) -> None:
    expired(lake(tmp_path), Keep(1, 1, None))
    closed = [(hours, "explained") for hours in (-20, -4, -2.5, -1.5)]
    for new in (operations(-20, -3, 5, 6), operations(5), operations()):
        opened(tmp_path).replace(DELAYED_OPERATIONS, new, stamp="run")
        since = [(hours, "late") for hours in _hours(new) if hours >= 0]
        assert classes(tmp_path) == sorted([*closed, *since])
    opened(tmp_path).empty(DELAYED_OPERATIONS, "run")
    assert classes(tmp_path) == closed
    assert opened(tmp_path).stamp(DELAYED_OPERATIONS) == "run"


def _hours(rows: pa.Table) -> list[float]:
    return [(moment - CUT) / timedelta(hours=1) for moment in rows["arrival_time"].to_pylist()]


def test_days_of_silver_are_never_closed(lake: Copy, tmp_path: Path) -> None:
    expired(lake(tmp_path), Keep(1, 1, None))
    opened(tmp_path).empty(FETCH_REQUESTS, "run")
    assert hours_left(tmp_path, FETCH_REQUESTS) == []


def test_rows_of_files_whose_lines_are_gone_outlive_a_new_grammar(lake: Copy, tmp_path: Path) -> None:
    lake(tmp_path)
    for spec in silver.TABLES:
        if find_version(tmp_path / spec.layer / spec.name) is None:
            create_table(tmp_path / spec.layer / spec.name, spec)
    for file_id in ("old", "new"):
        put(tmp_path, LINE_COUNTS, {"file_id": file_id, "outcome": "typed"}, stamp="batch older")
        put(tmp_path, LEADER_AND_ISR, {"file_id": file_id, "time": at(hours=2)}, stamp="batch older")
    expired(tmp_path, Keep(1, 2, None))
    assert list_dropped_files(opened(tmp_path)) == ["old"]
    assert _empty_outdated(opened(tmp_path), "newer") is True
    assert [row["file_id"] for row in rows_of(tmp_path, LINE_COUNTS, "file_id")] == ["old"]
    assert [row["file_id"] for row in rows_of(tmp_path, LEADER_AND_ISR, "file_id")] == ["old"]
    assert _empty_outdated(opened(tmp_path), "newer") is False


@pytest.mark.parametrize("commits", range(6))
@pytest.mark.parametrize("emptied", [None, TOPICS, LINE_COUNTS])
def test_silver_is_emptied_whole_before_it_is_filled(tmp_path: Path, commits: int, emptied: TableSpec | None) -> None:
    """Cut off anywhere, and whichever table shows that it has to be done."""
    older = "batch older" if emptied is None else "batch newer"
    for spec in silver.TABLES:
        create_table(tmp_path / spec.layer / spec.name, spec)
    for spec in (TOPICS, LEADER_AND_ISR, LINE_COUNTS):
        put(tmp_path, spec, {"file_id": "f"} | ({"outcome": "typed"} if spec is LINE_COUNTS else {}), stamp=older)
    if emptied is not None:
        opened(tmp_path).empty(emptied, upgrade.EMPTIED)
    left = commits

    def fence() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Cut

    try:
        _empty_outdated(Lake(cast(Any, None), tmp_path, fence), "newer")
        cut = False
    except Cut:
        cut = True
    assert cut == (commits < 3)
    if cut:
        assert _empty_outdated(opened(tmp_path), "newer") is True
    for spec in (TOPICS, LEADER_AND_ISR, LINE_COUNTS):
        assert rows_of(tmp_path, spec, "file_id") == []
        assert opened(tmp_path).stamp(spec) == "emptied newer"
    assert _empty_outdated(opened(tmp_path), "newer") is False
