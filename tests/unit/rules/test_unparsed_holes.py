"""What tasks and the driver make of records that no grammar reads, and of holes, for the tables."""

from pathlib import Path

import duckdb
import pyarrow as pa

from highwater.pipelines.lake.reader import LakeReader
from highwater.pipelines.lake.table_files import build_table
from highwater.pipelines.rules import holes_stage
from highwater.pipelines.rules.holes import Hole
from highwater.schemas import gold, silver
from highwater.schemas.bronze import LOG_LINES
from tests.unit.tables import table_rows


def test_records_without_facts_come_one_by_one_and_requests_are_counted() -> None:
    same = {"cluster_id": "c", "broker_id": 1, "file_id": "f"}
    rows = [
        {**same, "byte_offset": 9, "time": 0, "template": "x", "reason": "binary"},
        {**same, "byte_offset": 12, "time": 3, "template": "request.completed", "reason": "doubtful"},
        {**same, "byte_offset": 15, "time": 4, "template": "x", "reason": "no_grammar"},
        {**same, "byte_offset": 19, "time": 5, "template": "request.completed", "reason": "bad_json"},
        {**same, "byte_offset": 29, "time": 8, "template": "request.completed", "reason": "bad_json"},
    ]
    reader = LakeReader(Path("lake"), {})
    reader.show(silver.UNPARSED_LINES.full_name, pa.Table.from_batches([table_rows(silver.UNPARSED_LINES, rows)]))
    assert [(row["byte_offset"], row["reason"]) for row in reader.rows(holes_stage.SQL["lost"])] == [
        (9, "binary"),
        (12, "doubtful"),
    ]
    (counted,) = reader.rows(holes_stage.SQL["requests"])
    assert counted == {"cluster_id": "c", "broker_id": 1, "records": 2, "since_us": 5, "until_us": 8}


def test_a_record_without_a_time_lies_between_its_neighbours() -> None:
    lines = [{"file_id": "f", "byte_offset": place, "time": None if place == 9 else place} for place in (1, 5, 9, 12)]
    connection = duckdb.connect()
    connection.register("bronze_log_lines", pa.Table.from_batches([table_rows(LOG_LINES, lines)]))
    connection.register("places", pa.table({"file_id": ["f"], "first": [9], "last": [9]}))
    assert connection.sql(holes_stage.SQL["around"]).fetchall() == [("f", 9, 9, 5, 12)]


def epochs(*rows: tuple[int, str, int, int, int]) -> list[tuple[object, ...]]:
    """Return the leaderships that only followers name; rows are broker, role, leader, leader epoch and time."""
    names = ("broker_id", "role", "leader", "leader_epoch", "time")
    same = {"cluster_id": "c", "topic": "t", "partition": 0, "file_id": "f"}
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    facts = [{**same, **dict(zip(names, row, strict=True))} for row in rows]
    connection.register("silver_leader_and_isr", pa.Table.from_batches([table_rows(silver.LEADER_AND_ISR, facts)]))
    connection.register("bronze_log_files", pa.table({"file_id": ["f"], "kind": ["state-change"]}))
    return connection.sql(holes_stage.SQL["leaderships"]).fetchall()


def test_a_leader_epoch_that_only_a_follower_starts_is_found_with_the_time_of_the_next() -> None:
    first, next_one = (1, "leader_start", 1, 4, 10), (2, "leader_start", 2, 6, 30)
    follower = (3, "follower_start", 1, 5, 20)
    assert epochs(first, follower, next_one) == [("c", 1, "state-change", "t", 0, 5, 20, 30)]
    assert epochs(first, follower, next_one, (1, "leader_start", 1, 5, 21)) == []
    # A cache of metadata, or a request, is no start.
    assert epochs(first, (3, "metadata", 1, 5, 20), (3, "request", 1, 5, 20)) == []


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
    assert build_table(gold.HOLES, [holes_stage._row(hole) for hole in holes]).num_rows == 3
