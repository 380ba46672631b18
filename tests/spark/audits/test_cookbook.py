"""docs/query_cookbook.md: every question, answered by Spark, by DuckDB and, where it says how, by Python."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import orjson
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from highwater.pipelines.base.answers import list_plain_rows
from highwater.pipelines.lake.contents import find_tables
from highwater.pipelines.lake.duckdb_views import build_duckdb_script
from highwater.pipelines.lake.views import register, run_query
from highwater.schemas.catalog import BY_FULL_NAME
from highwater.schemas.views import VIEWS
from tests.bench.cookbook import DOCUMENT, answered, questions, shown
from tests.spark.audits.conftest import Verb
from tests.verbs import ROOT, Ended

DOCUMENTED = DOCUMENT.read_text(encoding="utf-8")
QUESTIONS = questions(DOCUMENTED)
IN_PYTHON = [question for question in QUESTIONS if question.python]


@pytest.fixture(scope="module")
def lake(audited_slice: tuple[Path, Ended], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The audited slice under the name that the documents give it."""
    named = tmp_path_factory.mktemp("cookbook") / "highwater-lake"
    named.symlink_to(audited_slice[0] / "lake")
    return named


@pytest.fixture(scope="module")
def registered(spark: SparkSession, lake: Path) -> SparkSession:
    """The session, in which the lake's tables and views have their names."""
    register(spark, lake)
    return spark


@pytest.fixture(scope="module")
def duck(lake: Path) -> Any:
    """DuckDB over the same lake; its own ``delta`` extension would have to be downloaded."""
    connection = duckdb.connect()
    for name, path in find_tables(lake).items():
        connection.register(name.replace(".", "_"), deltalake.DeltaTable(path).to_pyarrow_dataset())
    connection.execute(build_duckdb_script(None))
    return connection


def test_there_are_questions_for_each_of_its_readers() -> None:
    titles = [question.title for question in QUESTIONS]
    assert len(titles) == len(set(titles)) >= 18
    assert len(IN_PYTHON) >= 3
    for part in ("# On call", "# Auditor", "# Data engineer", "# Scheduler"):
        assert DOCUMENTED.count(f"\n{part}\n") == 1


def test_spark_answers_as_the_document_says(registered: SparkSession) -> None:
    answers = [shown(run_query(registered, question.sql)) for question in QUESTIONS]
    assert answered(DOCUMENTED, answers) == DOCUMENTED, (
        "if the answers are right, run `python -m tests.bench.cookbook LAKE` on a lake of tests/data/slice"
    )


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.title)
def test_duckdb_gives_the_same_answer(question: Any, duck: Any) -> None:
    assert shown(duck.sql(question.sql).to_arrow_table()) == question.answer


@pytest.mark.parametrize("question", IN_PYTHON, ids=lambda question: question.title)
def test_deltalake_alone_gives_the_same_answer(question: Any, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(lake.parent)
    made: dict[str, Any] = {}
    exec(question.python, made)
    assert shown(pa.Table.from_pandas(made["answer"], preserve_index=False)) == question.answer


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_a_view_has_the_same_rows_in_both_engines(view: Any, duck: Any, registered: SparkSession) -> None:
    theirs = list_plain_rows(duck.sql(f"select * from {view.name}").to_arrow_table())
    ours = list_plain_rows(run_query(registered, f"select * from {view.name}"))
    assert sorted(map(_comparable, ours)) == sorted(map(_comparable, theirs))


def _comparable(row: dict[str, Any]) -> bytes:
    """Sums of fractions depend on the order in which they are added."""
    return orjson.dumps({name: round(value, 6) if isinstance(value, float) else value for name, value in row.items()})


def test_every_table_can_be_read_without_spark(lake: Path) -> None:
    for name, path in find_tables(lake).items():
        protocol = deltalake.DeltaTable(path).protocol()
        assert (protocol.min_reader_version, protocol.reader_features) == (1, None), name
        rows = deltalake.DeltaTable(path).to_pyarrow_table()
        assert rows.column_names == list(BY_FULL_NAME[name].column_names)


def test_the_change_feed_is_read_as_the_document_says(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", document, re.DOTALL)
    (example,) = [block for block in blocks if "load_cdf" in block]
    monkeypatch.chdir(lake.parent)
    made: dict[str, Any] = {}
    exec(example, made)
    changes = pa.table(made["changes"]).to_pandas()
    table = deltalake.DeltaTable(lake / "gold" / "violations").to_pandas()
    net = changes["_change_type"].map({"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1})
    assert net.sum() == len(table) > 0
    assert set(table["finding_id"]) <= set(changes["finding_id"])


def test_tables_are_listed_for_programs_without_spark(lake: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "highwater.jobs.cli", "tables", "--json", "--lake", str(lake)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/nowhere", "JAVA_HOME": "/nowhere"},
    )
    # There is no Java to start.
    assert ended.returncode == 0, ended.stderr
    tables = {table["table"]: table for table in orjson.loads(ended.stdout)}
    assert tables.keys() == BY_FULL_NAME.keys()
    runs = deltalake.DeltaTable(lake / "gold" / "runs")
    told = tables["gold.runs"]
    assert (told["rows"], told["version"]) == (len(runs.to_pandas()), runs.version())
    assert told["stamp"] == runs.to_pandas()["run_id"].iloc[-1]
    assert told["size_bytes"] > 0


def test_a_query_is_answered_on_stdout(audited_slice: tuple[Path, Ended], verb: Verb) -> None:
    ended = verb(
        audited_slice[0],
        "sql",
        "select closing_replica, operations from broker_blame order by 1 limit 1",
        "--format=json",
    )
    assert (ended.code, orjson.loads(ended.out)) == (0, [{"closing_replica": -1, "operations": 3}]), ended.err
