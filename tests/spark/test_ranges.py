"""Files that are read range by range give the tables of files that are read as a whole."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from highwater.pipelines.base.config import load_config
from highwater.pipelines.bronze import log_source as module
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.silver.parse import parse
from highwater.schemas import silver
from highwater.schemas.bronze import LOG_FILES, LOG_LINES
from highwater.schemas.table import TableSpec
from tests.ingests import ingest
from tests.unit.bronze.wrapping import wrapped
from tests.verbs import SLICE

CONFIG = load_config(None).ingest


def plain_logs(folder: Path) -> Path:
    """A broker's logs of the slice, not compressed; its server log twice, so that its clock seems to be set back.

    Its request log is that of a container.
    """
    for path in sorted((SLICE / "broker-1" / "logs").glob("*.gz")):
        content = gzip.decompress(path.read_bytes())
        if path.stem.startswith("kafka-request"):
            content = wrapped(content, "cri")
        (folder / path.stem).write_bytes(content * (2 if path.stem == "server.log" else 1))
    return folder


def test_tables_are_the_same_and_the_tasks_more_than_the_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    files = len(list(plain_logs(logs).iterdir()))
    lakes = []
    for name, range_bytes in (("whole", module.RANGE_BYTES), ("split", 1 << 17)):
        monkeypatch.setattr(module, "RANGE_BYTES", range_bytes)
        lakes.append(Lake(spark, tmp_path / name))
        ingest(spark, lakes[-1], [logs], CONFIG, "r1")
        parse(lakes[-1])
    whole, split = lakes

    # A task writes a file of its own.
    assert len(whole.files(LOG_LINES) or ()) <= files < len(split.files(LOG_LINES) or ())
    layouts = {Path(row["path"]).name: row["layout"] for row in split.read(LOG_FILES).collect()}
    assert layouts["kafka-request.log"] == "frame %d %X{stream} %X{part} %m => [%d] %p %m (%c)"
    for spec in (LOG_FILES, LOG_LINES, *silver.TABLES):
        if spec is not silver.LINE_COUNTS:
            assert counted(whole, spec) == counted(split, spec), spec.full_name
    assert templates(whole) == templates(split)
    (step,) = whole.read(silver.BROKER_LIFECYCLE).where("event = 'clock_set_back'").collect()
    assert step["line_no"] > 1


def counted(lake: Lake, spec: TableSpec) -> Counter[str]:
    """Rows of a table, each with how often it is there."""
    return Counter(map(repr, lake.rows(spec, *spec.column_names).to_pylist()) if lake.has_rows(spec) else ())


def templates(lake: Lake) -> Counter[tuple[str, ...]]:
    """Records by file and template: a row of ``line_counts`` is what one task counted."""
    names = ("file_id", "kind", "logger", "level", "template", "outcome")
    found: Counter[tuple[str, ...]] = Counter()
    for row in lake.rows(silver.LINE_COUNTS, *names, "line_count").to_pylist():
        found[tuple(map(row.get, names))] += row["line_count"]
    return found
