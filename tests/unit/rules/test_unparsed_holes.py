"""What tasks and the driver make of records that no grammar reads, and of holes, for the tables."""

from pathlib import Path

import duckdb
import pyarrow as pa

from pipelines.lake.reader import LakeReader
from pipelines.lake.table_files import rows_table
from pipelines.rules import holes_stage
from pipelines.rules.holes import Hole
from schemas import gold, silver
from schemas.bronze import LOG_LINES
from tests.unit.tables import table_rows


def test_records_with_nul_come_one_by_one_and_requests_are_counted() -> None:
    same = {"cluster_id": "c", "broker_id": 1, "file_id": "f"}
    rows = [
        {**same, "byte_offset": 9, "time": 0, "template": "x", "reason": "binary"},
        {**same, "byte_offset": 19, "time": 5, "template": "request.completed", "reason": "bad_json"},
        {**same, "byte_offset": 29, "time": 8, "template": "request.completed", "reason": "bad_json"},
    ]
    reader = LakeReader(Path("lake"), {})
    reader.show(silver.UNPARSED_LINES.full_name, pa.Table.from_batches([table_rows(silver.UNPARSED_LINES, rows)]))
    assert reader.rows(holes_stage._NULS) == [{"file_id": "f", "byte_offset": 9, "time": 0}]
    (counted,) = reader.rows(holes_stage._REQUESTS)
    assert counted == {"cluster_id": "c", "broker_id": 1, "records": 2, "since_us": 5, "until_us": 8}


def test_a_record_without_a_time_lies_between_its_neighbours() -> None:
    lines = [{"file_id": "f", "byte_offset": place, "time": None if place == 9 else place} for place in (1, 5, 9, 12)]
    connection = duckdb.connect()
    connection.register("bronze_log_lines", pa.Table.from_batches([table_rows(LOG_LINES, lines)]))
    connection.register("nuls", pa.table({"file_id": ["f"], "byte_offset": [9]}))
    assert connection.sql(holes_stage._AROUND).fetchall() == [("f", 9, 5, 12)]


def test_a_hole_takes_one_record_from_coverage_at_least() -> None:
    holes = [
        Hole("c", None, "server", "not_read", None, 5, None, "m"),
        Hole("c", 1, "kafka-request", "lines_missing", 5, 9, 7, "m"),
        Hole("c", 1, "kafka-request", "not_understood", 5, 9, 7, "m"),
    ]
    missing = holes_stage._missing(holes).to_pylist()
    assert [(row["broker_id"], row["outcome"], row["line_count"]) for row in missing] == [
        (-1, "missing", 1),
        (1, "missing", 7),
    ]
    assert rows_table(gold.HOLES, [holes_stage._row(hole) for hole in holes]).num_rows == 3
