"""Tables and views as people ask: by any of their names, in 80 columns, by DuckDB at once, and never written."""

import csv
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from highwater.jobs import cli
from highwater.jobs.exit_codes import ExitCode
from highwater.jobs.tables import show_tables
from highwater.pipelines.base.answers import format_csv
from highwater.pipelines.base.console import RichConsole
from highwater.schemas.views import VIEWS, list_views

LAKE = Path(__file__).resolve().parents[3] / "tests" / "data" / "lake"
TABLES = [f"{path.parent.name}.{path.name}" for path in LAKE.glob("*/*")]
THERE = list_views(TABLES)
LOST = 'select topic, "partition", offset_start from lost_ranges order by topic'


def _asked(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.run([*arguments, "--lake", str(LAKE)]) == ExitCode.CLEAN, capsys.readouterr().err
    return capsys.readouterr().out


class _Narrow(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_views_come_first_and_all_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    out = _Narrow()
    show_tables(RichConsole(out, io.StringIO()), LAKE, None, as_json=False)
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    first = [line.split()[0] for line in lines if line.strip()]
    assert first.index("lost_ranges") < first.index("gold.violations")
    # Names stay whole: they are there to be copied.
    assert {*TABLES, *(view.name for view in THERE)} <= set(first)


@pytest.mark.parametrize("name", ["gold.violations", "gold_violations", "violations"])
def test_a_table_goes_by_any_of_its_names(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "offset_start" in _asked(capsys, "tables", name)


@pytest.mark.parametrize("view", THERE, ids=lambda view: view.name)
def test_a_view_has_columns_and_is_answered(view: object, capsys: pytest.CaptureFixture[str]) -> None:
    name = next(known.name for known in VIEWS if known == view)
    described = json.loads(_asked(capsys, "tables", name, "--json"))
    header = _asked(capsys, "sql", f"select * from {name} limit 1", "--format", "csv").splitlines()[0]
    assert [column["column"] for column in described["columns"]] == header.split(",")


def test_a_name_that_is_none_is_told_with_those_that_are_near(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["tables", "gold_violation", "--lake", str(LAKE)]) == ExitCode.USAGE
    assert "did you mean gold_violations or" in capsys.readouterr().err


def test_rows_in_every_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"topic": "ledger", "partition": 0, "offset_start": 118},
        {"topic": "sessions", "partition": 1, "offset_start": 115},
    ]
    assert json.loads(_asked(capsys, "sql", LOST, "--format", "json")) == rows
    assert _asked(capsys, "sql", LOST, "--format", "csv").splitlines()[1] == "ledger,0,118"
    assert _asked(capsys, "sql", LOST).splitlines()[2].split() == ["ledger", "0", "118"]
    file = tmp_path / "rows.parquet"
    assert _asked(capsys, "sql", LOST, "--format", "parquet", "--out", str(file)) == ""
    assert pq.read_table(file).to_pylist() == rows


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["delete from gold_violations"], "only SELECT is"),
        (["select 1); drop view gold_violations; select (1"], "only SELECT is"),
        (["select * from nosuch"], "nosuch does not exist"),
        (["select 1", "--format", "parquet"], "name a file with --out"),
        (["select 1", "--master", "local[2]"], "--master is for --spark"),
    ],
)
def test_what_is_no_query_is_one_sentence(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["sql", *arguments, "--lake", str(LAKE)]) == ExitCode.USAGE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err


#: Statements that lead out of the lake: ``{file}`` is a file of the machine, ``{data}`` one of another table.
OUTWARD = (
    "select * from '{file}'",
    "select * from '{file}x.xlsx'",
    "select * from 'a.xlsx'",
    "select * from 'https://localhost/a.parquet'",
    "select * from 's3://bucket/a.parquet'",
    "select * from read_text('{file}')",
    "select * from read_csv('{file}')",
    "select * from read_blob('{file}')",
    "select * from read_parquet('{data}')",
    "select * from parquet_metadata('{data}')",
    "select * from glob('/etc/*')",
    "select * from sqlite_scan('{file}', 't')",
    "select * from postgres_scan('host=localhost', 'public', 't')",
    "select * from iceberg_scan('{file}')",
    "select * from excel_text(1, 'x')",
    "select * from tables",
    "select * from statement",
    "select getenv('HOME')",
    "select load_extension('{file}')",
    "select * from pragma_table_info('{file}')",
    "select * from duckdb_secrets()",
    "select 1); set enable_external_access = true; select * from read_text('{file}'",
    "select 1); install httpfs; select (1",
    "select 1); load httpfs; select (1",
    "select 1); attach '{file}' as other; select (1",
    "select 1); copy (select 1) to '{file}'; select (1",
)


@pytest.mark.parametrize("statement", OUTWARD)
def test_a_query_reaches_nothing_but_the_lake(
    statement: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # where DuckDB puts extensions
    file = tmp_path / "secret.csv"
    file.write_text("word\nprecious\n", encoding="utf-8")
    data = next(LAKE.rglob("*.parquet"))
    before = sorted(tmp_path.rglob("*"))
    code = cli.run(["sql", statement.format(file=file, data=data), "--lake", str(LAKE)])
    said = capsys.readouterr()
    assert (code, said.out) == (ExitCode.USAGE, ""), said
    assert "precious" not in said.err
    assert len(said.err.splitlines()) == 1
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        *((text, f"'{text}") for text in ("=HYPERLINK(1)", "+1+1", "-1+cmd", "@SUM(1)", "=1", " =1")),
        *((text, text) for text in ("-5", "+5.25", "a=b", "-", "orders-4")),
    ],
)
def test_a_formula_is_text_in_csv(text: str, cell: str) -> None:
    lines = format_csv(pa.table({text: [text, "x"]})).splitlines()
    assert list(csv.reader(lines)) == [[cell], [cell], ["x"]]
