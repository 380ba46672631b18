"""Asset events read Delta's log themselves; what they say has to be what Spark counts."""

from typing import Any

import pyarrow.compute as pc
from delta.tables import DeltaTable

from airflow_dags.highwater_lake import read_state
from highwater.pipelines.lake.lake import Lake
from highwater.schemas.audit import VIOLATIONS
from tests.unit.report.rows import found


def rows(lake: Lake, *numbers: int, topic: str = "orders") -> Any:
    values = [found(number, topic=topic, finding_id=f"{topic}{number}") for number in numbers]
    return lake.spark.createDataFrame(
        [tuple(row[name] for name in VIOLATIONS.column_names) for row in values], VIOLATIONS.worker_schema
    )


def replace_orders(lake: Lake, *numbers: int, stamp: str) -> None:
    lake.replace_part(
        VIOLATIONS, lake.write_rows(VIOLATIONS, rows(lake, *numbers)), pc.field("topic") == "orders", stamp
    )


def test_rows_version_and_run_are_those_of_the_table(lake: Lake) -> None:
    def check(run_id: str | None) -> None:
        state = read_state(lake.path(VIOLATIONS))
        assert state.rows == lake.read(VIOLATIONS).count()
        assert state.version == lake.versions()["gold.violations"]
        assert state.run_id == run_id

    lake.create([VIOLATIONS])
    check(None)
    lake.append_once(VIOLATIONS, rows(lake, 1, 2), "first")
    lake.append_once(VIOLATIONS, rows(lake, 3, topic="other"), "second")
    check("second")
    replace_orders(lake, 7, 8, 9, stamp="third")
    check("third")
    table = DeltaTable.forPath(lake.spark, str(lake.path(VIOLATIONS)))
    table.delete("partition = 0 AND offset_start = 8")
    check("third")
    table.optimize().executeCompaction()
    check("third")
    lake.replace(VIOLATIONS, rows(lake, 1), stamp="fourth")
    check("fourth")
    lake.append_once(VIOLATIONS, rows(lake, 2, 3, topic="other"), "fifth")
    check("fifth")
    DeltaTable.forPath(lake.spark, str(lake.path(VIOLATIONS))).delete("topic = 'orders'")
    # A commit that Delta has cleaned up: then the checksum tells that Delta leaves with its own.
    version = lake.versions()["gold.violations"]
    (lake.path(VIOLATIONS) / "_delta_log" / f"{version - 1:020}.json").unlink()
    assert read_state(lake.path(VIOLATIONS)).rows == 2
