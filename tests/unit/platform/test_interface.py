"""The interface from Python, as far as it needs no JVM."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import highwater
from highwater.pipelines.base.errors import HighwaterError, InputError

LAKE = Path(__file__).resolve().parents[2] / "data" / "lake"


def test_the_import_is_lazy() -> None:
    heavy = ("pyspark", "pyarrow", "pydantic", "duckdb", "pipelines")
    program = f"import sys, highwater; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = highwater.nothing


def test_tables_and_views_of_a_lake_need_no_jvm() -> None:
    audit = highwater.open(LAKE)
    rows = audit.table("gold.violations")
    assert rows.num_rows
    assert rows == audit.table("gold_violations")
    assert list(rows.to_pandas().columns) == rows.schema.names
    assert {"gold_violations", "lost_ranges"} <= set(audit.tables)
    assert audit.table("lost_ranges").num_rows == audit.sql("select count(*) as n from lost_ranges")["n"][0].as_py()
    assert str(LAKE) in repr(audit)


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a lake"):
        highwater.open(tmp_path)
    audit = highwater.open(LAKE)
    for name in ("gold.nothing", "violations; drop", "nothing"):
        with pytest.raises(InputError, match="has no table or view"):
            audit.table(name)
    with pytest.raises(HighwaterError, match="unknown"):
        highwater.open(LAKE, settings={"ingest.timezones": "UTC"})
    with pytest.raises(ValueError, match="yesterday"):
        highwater.open(LAKE, time_from="yesterday")
