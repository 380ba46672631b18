"""What is kept of files is what their rows give, whatever was added, rewritten or taken away between."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from highwater.pipelines.base.blobs import shape
from highwater.pipelines.lake import digests
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.readings import Reading, read_few_rows, read_in_tasks
from highwater.pipelines.lake.table_files import build_table
from highwater.schemas.state import DIGESTS, RUNS
from highwater.schemas.table import INT, STRING, TableSpec, column

VISITS = TableSpec(
    "silver", "visits", "One row per visit", (column("topic", STRING, "Topic"), column("n", INT, "n")), keys=("n",)
)
SHAPE = shape({"topic": "string", "least": "int"})


def least(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    groups = pa.table(rows).group_by(["topic"]).aggregate([("n", "min")])
    yield from groups.rename_columns(["topic", "least"]).to_batches()


READING = Reading(VISITS, ("topic", "n"), least, pc.field("n") != 3, digest="least visits")


@pytest.fixture
def audited(lake: Lake) -> Lake:
    """A lake that an audit has left its ledger in."""
    ran = {"run_number": 1, "run_id": "run", "replayed_time": datetime(2026, 11, 20, tzinfo=UTC), "components": "c"}
    ran |= {"file_ids": []}
    lake.append_once(RUNS, build_table(RUNS, [tuple(map(ran.get, RUNS.column_names))]), "ran")
    return lake


def add(lake: Lake, *visits: tuple[str, int]) -> None:
    lake.append_once(VISITS, build_table(VISITS, visits), f"{visits}")


def asked(lake: Lake) -> list[tuple[str, int]]:
    rows = read_in_tasks(lake, [READING], SHAPE)
    assert rows is not None
    in_tasks = sorted((row["topic"], row["least"]) for row in rows.toArrow().to_pylist())
    here = sorted((row["topic"], row["least"]) for row in read_few_rows(lake, READING, SHAPE).to_pylist())
    assert in_tasks == here
    return in_tasks


def digest_count(lake: Lake) -> int:
    return lake.rows(DIGESTS, "file").num_rows


def test_old_files_are_not_read_again(audited: Lake):
    add(audited, ("a", 2), ("a", 1), ("b", 3))
    assert asked(audited) == [("a", 1)]
    (first,) = audited.files(VISITS) or ()
    # Whoever opens it fails.
    Path(str(first.place)).write_bytes(b"")
    add(audited, ("a", 5), ("b", 4))
    assert asked(audited) == [("a", 1), ("a", 5), ("b", 4)]
    assert digest_count(audited) == 2


def test_nothing_is_kept_of_a_lake_that_is_audited_for_the_first_time(lake: Lake):
    add(lake, ("a", 2))
    assert asked(lake) == [("a", 2)]
    assert not lake.exists(DIGESTS)


def test_files_that_are_gone_count_no_more(audited: Lake):
    add(audited, ("a", 1))
    asked(audited)
    audited.replace(VISITS, build_table(VISITS, [("a", 7)]))
    assert asked(audited) == [("a", 7)]
    audited.empty(VISITS)
    assert read_few_rows(audited, READING, SHAPE).num_rows == 0


def test_another_condition_or_code_reads_the_files(audited: Lake, monkeypatch: pytest.MonkeyPatch):
    add(audited, ("a", 1), ("b", 3))
    asked(audited)
    others = READING._replace(where=pc.field("n") > 1)
    assert read_few_rows(audited, others, SHAPE).to_pylist() == [{"topic": "b", "least": 3}]
    monkeypatch.setattr(digests, "rules_fingerprint", lambda: "of other code")
    assert asked(audited) == [("a", 1)]
    assert digest_count(audited) == 3


def test_the_table_is_written_anew_where_most_of_it_is_outdated(audited: Lake):
    for visit in range(10, 13):
        add(audited, ("a", visit))
        asked(audited)
    digests.drop_outdated(audited, [VISITS])
    assert (len(audited.files(DIGESTS) or ()), digest_count(audited)) == (3, 3)
    audited.replace(VISITS, build_table(VISITS, [("a", 7)]))
    asked(audited)
    digests.drop_outdated(audited, [VISITS])
    assert (len(audited.files(DIGESTS) or ()), digest_count(audited)) == (1, 1)
    assert asked(audited) == [("a", 7)]
