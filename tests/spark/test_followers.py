"""The follower side on Spark: from silver rows to the tables."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from highwater.pipelines.cluster.premises import Premises
from highwater.pipelines.kafka.context import Contexts
from highwater.pipelines.lake.folds import collect_tables, fold
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.replay.followers_stage import follower_fold
from highwater.schemas import replicas as r
from highwater.schemas import silver
from highwater.schemas.table import TableSpec

pytestmark = pytest.mark.spark


def fact(spec: TableSpec, second: int, line_no: int, **values: Any) -> dict[str, Any]:
    row = dict.fromkeys(spec.column_names)
    place = {"cluster_id": "c", "broker_id": 3, "file_id": "f", "byte_offset": line_no, "line_no": line_no}
    at = {"time": datetime.fromtimestamp(second, UTC), "topic": "ledger", "partition": 0}
    return row | place | at | {"fact_no": 0} | values


def test_up_to_2_5_trace_lines_tell_the_high_watermark(spark: SparkSession, lake: Lake):
    """A follower of 0.10.2 that truncates to its own high watermark, below what it has (KIP-101)."""
    states, marks, cuts = silver.LEADER_AND_ISR, silver.HIGH_WATERMARKS, silver.TRUNCATIONS
    rows = [
        (states, fact(states, 1, 1, role="request", leader=1, leader_epoch=0)),
        (states, fact(states, 9, 4, role="request", leader=2, leader_epoch=1)),
        (marks, fact(marks, 8, 2, source="follower", log_end_offset=119, leader_high_watermark=118)),
        (marks, fact(marks, 8, 3, source="follower", high_watermark=118)),
        (cuts, fact(cuts, 9, 5, source="log", offset=118)),
    ]
    for spec in (states, marks, cuts):
        lake.create([spec])
        values = [tuple(row[name] for name in spec.column_names) for of, row in rows if of is spec]
        lake.append_once(spec, spark.createDataFrame(values, spec.schema), "run")
    tables = collect_tables(fold(lake, follower_fold(lake, Premises(Contexts({("c", 3): "0.10.2.2"})))))
    first, lost = sorted(tables[r.REPLICA_TRUNCATIONS.name], key=lambda row: row["sequence"])
    assert not tables[r.FETCHER_TIMELINE.name]
    assert (first["class"], first["missing"]) == ("unobservable", "own_high_watermark")
    assert (lost["rule"], lost["log_end_offset"], lost["predicted_offset"]) == ("to_high_watermark", 119, 118)
    assert (lost["class"], lost["records_removed"], lost["known_bug"]) == ("agrees", 1, "KIP-101")
    assert lost["started_time"].timestamp() == 9


def test_an_empty_lake(spark: SparkSession, lake: Lake):
    assert fold(lake, follower_fold(lake, Premises())) is None
