"""What is told of tables without Spark: their logs, their documentation, their views, their upkeep."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import shutil
import time
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from highwater.jobs import cli
from highwater.jobs.exit_codes import ExitCode
from highwater.jobs.tables import show_tables
from highwater.pipelines.base.answers import format_columns, format_csv, format_json
from highwater.pipelines.base.console import RichConsole
from highwater.pipelines.base.errors import InputError
from highwater.pipelines.base.plain import byte_size
from highwater.pipelines.lake.commits import read_commits, read_stamps
from highwater.pipelines.lake.contents import find_tables
from highwater.pipelines.lake.delta_log import find_version, format_type, open_table, read_log
from highwater.pipelines.lake.duckdb_views import build_duckdb_script
from highwater.pipelines.lake.table_docs import build_tables_markdown
from highwater.pipelines.lake.tables import create_table
from highwater.pipelines.upkeep.maintenance import RETENTION_HOURS_MIN, SMALL_BYTES, SMALL_FILES_MIN, examine
from highwater.schemas import bronze, gold
from highwater.schemas.catalog import TABLES
from highwater.schemas.views import VIEWS, make_alias
from tests.console import CaptureConsole

ROOT = Path(__file__).resolve().parents[3]
CREATED_MS = 1_800_000_000_000


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Two tables as `Lake.create` makes them."""
    for spec in (gold.RUNS, bronze.LOG_FILES):
        create_table(tmp_path / "lake" / spec.layer / spec.name, spec)
    return tmp_path / "lake"


def _add(path: str, rows: int | None = 3, size: int = 100) -> dict[str, Any]:
    stats = {"stats": json.dumps({"numRecords": rows})} if rows is not None else {}
    told = {"partitionValues": {}, "modificationTime": CREATED_MS, "dataChange": True}
    return {"add": {"path": path, "size": size, **told, **stats}}


def _commit(table: Path, version: int, *actions: dict[str, Any], **info: Any) -> None:
    lines = [{"commitInfo": {"timestamp": CREATED_MS + version, **info}}, *actions]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (table / "_delta_log" / f"{version:020}.json").write_text(text, encoding="utf-8")


def test_a_table_is_what_its_commits_add_up_to(lake: Path) -> None:
    runs = lake / "gold" / "runs"
    _commit(runs, 1, _add("a%20b.parquet"), _add("c.parquet", 4), userMetadata="run-1")
    removed = {"remove": {"path": "c.parquet", "deletionTimestamp": 5, "dataChange": True}}
    _commit(runs, 2, removed, _add("d.parquet", 5), operation="OPTIMIZE")
    log, (last, *_) = read_log(runs), read_commits(runs)
    assert (log.version, log.rows, log.size_bytes, last.time_ms, last.stamp) == (2, 8, 200, CREATED_MS + 2, None)
    assert [file.path for file in log.files] == ["a b.parquet", "d.parquet"]
    assert not log.is_clustered


def test_a_table_that_hides_rows_or_renames_columns_is_refused(lake: Path) -> None:
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    for table, protocol, told in (
        ("gold/runs", {"minReaderVersion": 3, "minWriterVersion": 7, **features}, "deletionVectors"),
        ("bronze/log_files", {"minReaderVersion": 2, "minWriterVersion": 5}, "columns with other names"),
    ):
        _commit(lake / table, 1, {"protocol": protocol})
        with pytest.raises(InputError, match=rf"has features that a lake's tables do not have \({told}"):
            read_log(lake / table)


def test_rows_are_not_guessed(lake: Path) -> None:
    _commit(lake / "gold" / "runs", 1, _add("a.parquet"), _add("b.parquet", None))
    assert read_log(lake / "gold" / "runs").rows is None
    console = CaptureConsole()
    assert show_tables(console, lake, None, as_json=False) == ExitCode.CLEAN
    assert console.texts("table")[1].splitlines()[2].split("\t")[:3] == ["gold.runs", "-", "200 B"]
    show_tables(console, lake, None, as_json=True)
    files, runs = json.loads(console.texts("result")[-1])
    assert (files["table"], files["rows"], files["stamp"]) == ("bronze.log_files", 0, None)
    assert (runs["rows"], runs["written_time"]) == (None, "2027-01-15T08:00:00.001Z")


def test_the_list_is_narrow_where_stamps_are_long(lake: Path) -> None:
    _commit(lake / "gold" / "runs", 1, _add("a.parquet"), userMetadata="20261120T153321.101-" + "f" * 400)
    out = io.StringIO()
    show_tables(RichConsole(out, io.StringIO()), lake, None, as_json=False)
    assert max(map(len, out.getvalue().splitlines())) <= 120
    show_tables(RichConsole(out, io.StringIO()), lake, "log_files", as_json=False)
    assert max(map(len, out.getvalue().splitlines()[-20:])) <= 120


def test_a_checkpoint_stands_for_the_commits_before_it(lake: Path) -> None:
    runs = lake / "gold" / "runs"
    _commit(runs, 1, _add("a.parquet", 7))
    open_table(runs).create_checkpoint()
    (runs / "_delta_log" / f"{0:020}.json").unlink()
    _commit(runs, 2, _add("b.parquet", 1), userMetadata="run-2")
    assert (read_log(runs).rows, read_log(runs).version, [*read_stamps(runs)]) == (8, 2, [(2, "run-2")])
    _commit(runs, 4)
    with pytest.raises(InputError, match=r"cannot be read .*restore it, or remove the table"):
        read_log(runs)


def test_what_is_no_table_is_told(lake: Path, tmp_path: Path) -> None:
    (lake / "gold" / "empty" / "_delta_log").mkdir(parents=True)
    assert list(find_tables(lake)) == ["bronze.log_files", "gold.runs"]
    assert find_version(tmp_path) is None
    with pytest.raises(InputError, match="is not a Delta table"):
        read_log(tmp_path)
    with pytest.raises(InputError, match="holds no table or view absent; see `highwater tables`"):
        show_tables(CaptureConsole(), lake, "absent", as_json=False)


@pytest.mark.parametrize("line", ["{", "[]", "7", '{"add": {"path": 5, "size": 1}}', '{"add": "x"}'])
def test_a_log_that_is_none_is_told_in_one_line(lake: Path, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    (lake / "gold" / "runs" / "_delta_log" / f"{1:020}.json").write_text(line + "\n", encoding="utf-8")
    assert cli.run(["tables", "--lake", str(lake)]) == ExitCode.USAGE
    assert "restore it, or remove the table" in capsys.readouterr().err


def test_columns_are_those_of_the_table(lake: Path) -> None:
    console = CaptureConsole()
    show_tables(console, lake, "runs", as_json=False)
    rows = [line.split("\t") for line in console.texts("table")[0].splitlines()]
    assert rows[0] == ["column", "type", "comment"]
    assert [row[0] for row in rows[1:]] == list(gold.RUNS.column_names)
    assert rows[-1][1] == "bigint not null"


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.full_name)
def test_types_are_named_as_spark_does(table: Any) -> None:
    for column in table.columns:
        assert format_type(json.loads(column.dataType.json())) == column.dataType.simpleString()


def test_the_document_is_what_the_declarations_say() -> None:
    assert (ROOT / "docs" / "tables.md").read_text(encoding="utf-8") == build_tables_markdown(TABLES, VIEWS), (
        "run `highwater tables --markdown > docs/tables.md`"
    )


def test_the_document_has_every_column_in_rows_of_four_cells() -> None:
    lines = build_tables_markdown(TABLES, VIEWS).splitlines()
    for table in TABLES:
        start = lines.index(f"## {table.full_name}")
        end = next((at for at in range(start + 1, len(lines)) if lines[at].startswith("## ")), len(lines))
        rows = [line.replace("\\|", "").split("|")[1:-1] for line in lines[start:end] if line.startswith("| ")]
        assert {len(row) for row in rows} == {4}
        names = [row[0].strip() for row in rows[1:]]
        assert [name for name in names if "." not in name] == list(table.column_names)


def test_views_have_names_of_their_own_and_say_what_they_read() -> None:
    aliases = {make_alias(table.full_name) for table in TABLES}
    names = [view.name for view in VIEWS]
    assert len(names) == len(set(names))
    assert not aliases & set(names)
    assert all(view.reads and view.comment.endswith(".") for view in VIEWS)


def test_the_script_for_duckdb_reads_tables_and_quotes_their_folders(tmp_path: Path) -> None:
    lake = tmp_path / "it's"
    tables = {"gold.violations": lake / "gold" / "violations"}
    script = build_duckdb_script(tables)
    assert f"delta_scan('{str(lake.resolve()).replace(chr(39), chr(39) * 2)}/gold/violations')" in script
    assert "VIEW lost_ranges AS" in script
    assert "VIEW findings AS" not in script  # it needs gold.evidence, too
    assert "delta_scan" not in build_duckdb_script(None)
    assert all(f"VIEW {view.name} AS" in build_duckdb_script(None) for view in VIEWS)


def test_an_answer_reads_the_same_in_every_form() -> None:
    when = datetime(2026, 11, 20, 14, 5, tzinfo=UTC)
    rows = pa.table(
        {
            "n": [Decimal(12), None],
            "t": [when, when.replace(microsecond=1500)],
            "s": ["a\x1b[0m,\n", "b"],
            "l": [[1], None],
        }
    )
    assert format_csv(rows).splitlines() == [
        "n,t,s,l",
        '12,2026-11-20T14:05:00.000Z,"a [0m, ",[1]',
        ",2026-11-20T14:05:00.001500Z,b,",
    ]
    assert json.loads(format_json(rows))[0] == {"n": 12, "t": "2026-11-20T14:05:00.000Z", "s": "a\x1b[0m,\n", "l": [1]}
    assert format_columns(rows).splitlines()[0].split() == ["n", "t", "s", "l"]
    assert format_columns(rows).splitlines()[3].startswith("    2026")
    assert format_json(rows.slice(0, 0)) == "[]"
    figures = pa.table({"x": [0.8799217704726853, 24765.147999999997, 5.0, None]})
    assert [line.strip() for line in format_columns(figures).splitlines()[2:]] == ["0.8799", "24765", "5.0"]
    assert "24765.147999999997" in format_csv(figures)


def test_sizes_are_told_in_units() -> None:
    assert [byte_size(value) for value in (0, 1023, 1536, 5 << 20, 3 << 40)] == [
        "0 B",
        "1,023 B",
        "1.5 KiB",
        "5.0 MiB",
        "3.0 TiB",
    ]


def test_few_or_large_files_are_left_alone(lake: Path) -> None:
    runs, now_ms = lake / "gold" / "runs", time.time_ns() // 1_000_000
    few = [_add(f"{number}.parquet") for number in range(SMALL_FILES_MIN - 1)]
    _commit(runs, 1, *few, *(_add(f"large-{number}.parquet", size=SMALL_BYTES) for number in range(20)))
    assert not examine("gold.runs", runs, 168, now_ms).is_due
    _commit(runs, 2, _add("one-more.parquet"))
    assert examine("gold.runs", runs, 168, now_ms).compact


def test_only_what_nobody_can_need_is_removed(lake: Path) -> None:
    runs, now_ms, hour_ms = lake / "gold" / "runs", time.time_ns() // 1_000_000, 3_600_000
    _commit(runs, 1, *(_add(f"{name}.parquet") for name in ("live", "removed", "long-removed")))
    gone = {"removed": now_ms - 30 * hour_ms, "long-removed": now_ms - 50 * hour_ms}
    _commit(
        runs,
        2,
        *(
            {"remove": {"path": f"{name}.parquet", "deletionTimestamp": at, "dataChange": True}}
            for name, at in gone.items()
        ),
    )
    (runs / "_change_data").mkdir()
    for name in ("live", "removed", "long-removed", "killed", "fresh", "_change_data/old"):
        (runs / f"{name}.parquet").write_bytes(b"x")
        aged = now_ms / 1000 - (1 if name == "fresh" else 100 * 3600)
        os.utime(runs / f"{name}.parquet", (aged, aged))

    def unneeded(hours: int) -> set[str]:
        return {file.stem for file in examine("gold.runs", runs, hours, now_ms).unneeded}

    assert unneeded(168) == set()
    assert unneeded(48) == {"long-removed", "killed", "old"}
    assert unneeded(24) == {"removed", "long-removed", "killed", "old"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["sql", "select 1", "--duckdb-views"],
        ["sql", "select 1", "--lake", "absent-lake"],
        ["sql", "--lake", "absent-lake"],
        ["maintain", "--lake", "absent-lake"],
        ["maintain", "--retention-hours", str(RETENTION_HOURS_MIN - 1)],
        ["maintain", "--retention-hours", "-1"],
        ["maintain", "--retention-hours", "721"],
    ],
)
def test_what_cannot_be_done_ends_with_2_before_spark_starts(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(arguments) == ExitCode.USAGE
    assert capsys.readouterr().out == ""


def test_a_lake_in_order_needs_no_spark(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["maintain", "--lake", str(lake)]) == ExitCode.CLEAN
    said = capsys.readouterr()
    assert said.out == ""
    assert "nothing to do: 2 tables are in order" in said.err


def test_a_table_of_an_older_version_is_not_looked_after(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    older = dataclasses.replace(gold.RUNS, columns=gold.RUNS.columns[:-1])
    shutil.rmtree(lake / "gold" / "runs")
    create_table(lake / "gold" / "runs", older)
    assert cli.run(["maintain", "--lake", str(lake)]) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert "gold.runs (columns operations); run `highwater replay` on the lake, which brings it up" in said
    assert "nothing to do: 1 tables are in order" in said


def test_names_for_sql_are_listed_without_spark(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["sql", "--lake", str(lake)]) == ExitCode.CLEAN
    listed = capsys.readouterr().out
    assert "gold_runs" in listed
    assert "lost_ranges" not in listed
    assert cli.run(["sql", "--lake", str(lake), "--duckdb-views"]) == ExitCode.CLEAN
    assert "CREATE OR REPLACE VIEW gold_runs AS" in capsys.readouterr().out
