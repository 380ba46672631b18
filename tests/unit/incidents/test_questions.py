"""What the statements give, over tables in memory."""

from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from highwater.pipelines.base.arrow_rows import dicts
from highwater.pipelines.incidents import questions
from highwater.pipelines.incidents.facts import Facts
from highwater.pipelines.incidents.kind import Signature
from highwater.pipelines.incidents.kinds import KINDS
from highwater.pipelines.incidents.kinds.logged import also_logged

START = datetime(2026, 11, 20, 12, tzinfo=UTC)


def line(
    second: float, message: str, broker_id: int | None = 1, level: str = "WARN", logger: str = "kafka.A"
) -> dict[str, Any]:
    time = START + timedelta(seconds=second)
    return {
        "cluster_id": "c",
        "broker_id": broker_id,
        "time": time,
        "level": level,
        "logger": logger,
        "message": message,
    }


LINES = pa.schema(
    {
        "cluster_id": pa.string(),
        "broker_id": pa.int32(),
        "time": pa.timestamp("us", "UTC"),
        "level": pa.string(),
        "logger": pa.string(),
        "message": pa.string(),
        "file_id": pa.string(),
        "byte_offset": pa.int64(),
    }
)
FILES = pa.schema({"cluster_id": pa.string(), "broker_id": pa.int32(), "resolution_us": pa.int64()})


def ask(statement: str, lines: list[dict[str, Any]], resolution_us: int = 1000) -> list[dict[str, Any]]:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    rows = [row | {"file_id": "f", "byte_offset": number * 100} for number, row in enumerate(lines)]
    brokers = {row["broker_id"] for row in lines}
    files = [{"cluster_id": "c", "broker_id": broker, "resolution_us": resolution_us} for broker in brokers]
    connection.register("bronze_log_lines", pa.Table.from_pylist(rows, LINES))
    connection.register("bronze_log_files", pa.Table.from_pylist(files, FILES))
    return dicts(connection.sql(statement).to_arrow_table())


@pytest.mark.parametrize(
    ("path", "text", "is_found"),
    [
        ("d.log#kafka1_1", "deploy_kafka1_1 exited with code 137", True),
        ("d.log#kafka1_1", "kafka1_1 exited with code 137", True),
        ("d.log#kafka1_1", "kafka11_1 exited with code 137", False),
        ("d.log", "kafka.service: Main process exited, code=killed, status=9/KILL", True),
        ("d.log", "Out of memory: Killed process 812 (java) total-vm:1kB", True),
        ("d.log", "Out of memory: Killed process 812 (mysqld) total-vm:1kB", False),
    ],
)
@pytest.mark.parametrize("problem", ["foreign.compose", None])
def test_exits_are_lines_of_other_programs(path: str, text: str, is_found: bool, problem: str | None) -> None:
    """Their instant is the log's line before; a line of Kafka with the same text shows no end."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(
        "CREATE TABLE bronze_log_files AS SELECT 'f' file_id, 'c' cluster_id, 1 broker_id, 'server' kind, "
        f"'{path}' path UNION ALL SELECT 'o', 'c', NULL, 'other', 'd.log#other' "
        "UNION ALL SELECT 'x', 'c', 2, 'server', 'e.log#kafka1_1'"
    )
    connection.execute(
        "CREATE TABLE bronze_log_lines (file_id varchar, byte_offset bigint, time timestamptz, "
        "problem varchar, message varchar)"
    )
    rows = [
        ("f", 0, START, None, "a"),
        ("o", 10, None, problem, text),
        ("f", 20, START + timedelta(seconds=9), None, "b"),
    ]
    connection.executemany("INSERT INTO bronze_log_lines VALUES (?, ?, ?, ?, ?)", rows)
    found = dicts(connection.sql(questions.exits()).to_arrow_table())
    time_us = int(START.timestamp()) * 1_000_000
    of_broker = [(1, time_us, text, "o", 10)] if is_found and problem is not None else []
    assert [
        (row["broker_id"], row["time"], row["text"], row["exit_file_id"], row["byte_offset"]) for row in found
    ] == of_broker


def test_a_silence_lies_between_two_lines() -> None:
    steady = [half / 2 for half in (*range(80), *range(108, 180))]
    (silence,) = ask(questions.silences(), [line(second, "x") for second in steady])
    assert silence["end_time"] - silence["start_time"] == 14_500_000
    assert (silence["share_before"], silence["written_after_us"], silence["moved_before"]) == (1.0, 10_000_000, False)
    moved = line(
        38, "[ReplicaFetcherManager on broker 1] Added fetcher to broker 2", logger="kafka.server.ReplicaFetcherManager"
    )
    (silence,) = ask(questions.silences(), [moved, *(line(second, "x") for second in steady)])
    assert silence["moved_before"]


def test_like_lines_near_each_other_are_an_episode() -> None:
    signature = Signature("gone", ("A",), r"\[x\] (?P<key>\d) lost (?P<partition>\S+)", "", gap_s=10)
    lines = [
        *(line(second, f"[x] 7 lost t-{second}") for second in (0, 1, 5, 40)),
        line(2, "[x] 8 lost t-0"),
        line(2, "[x] 8 lost t-0"),  # the same line in another file
        line(3, "[x] 7 lost t-0", level="INFO"),
        line(3, "[x] 7 lost t-0", logger="kafka.B"),
        line(3, "y [x] 7 lost t-0"),
    ]
    episodes = ask(questions.remarks([signature]), lines)
    assert [(row["key"], row["line_count"], row["partitions"]) for row in episodes] == [
        ("7", 3, ["t-0", "t-1", "t-5"]),
        ("8", 1, ["t-0"]),
        ("7", 1, ["t-40"]),
    ]


def test_what_is_looked_for_in_a_stack_trace_begins_a_line_of_it() -> None:
    signature = Signature("full", (), r"^(?:Caused by: )?java\.io\.\w+: No space", "", is_whole=True)
    lines = [
        line(0, "Error\njava.io.IOException: No space left\n\tat x"),
        line(1, "Error\nz\nCaused by: java.io.IOException: No space left"),
        line(2, "a client says java.io.IOException: No space left"),
    ]
    (episode,) = ask(questions.remarks([signature]), lines)
    assert episode["line_count"] == 2


def test_lines_of_a_text_are_listed_with_their_signature() -> None:
    signature = Signature("gone", ("A",), r"lost .*", "")
    loud = ask(
        questions.loud([signature]),
        [line(0, "lost 1"), line(1, "other 17"), line(2, "other 18"), line(3, "z", level="INFO")],
    )
    assert [(row["signature"], row["template"], row["message"]) for row in loud] == [
        ("gone", "lost #", "lost 1"),
        (None, "other #", "other 17"),
        (None, "other #", "other 18"),
    ]


def test_lines_of_a_frequent_text_are_counted_in_steps() -> None:
    lines = [line(second / 10, f"again {second}", broker_id=second % 2) for second in range(5000)]
    loud = ask(questions.loud([]), lines)
    assert sum(row["line_count"] for row in loud) == 5000
    assert len(loud) <= 2 * (questions.STEPS + 1)
    assert all(row["last_time"] - row["first_time"] <= 5_000_000 for row in loud)


def test_no_line_is_left_out_however_many_texts_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "LOUD_MAX", 4)
    lines = [line(at, "often", level="WARN") for at in range(9)]
    lines += [line(at, f"{chr(97 + at)} text", level="ERROR", broker_id=at % 2) for at in range(8)]
    lines += [line(99, "the end", level="FATAL"), line(98, "lost 1", level="WARN")]
    loud = ask(questions.loud([Signature("gone", ("A",), r"lost .*", "")]), lines)
    assert sum(row["line_count"] for row in loud) == len(lines)
    assert [row["template"] for row in loud if row["template"]] == ["lost #", "the end", "a text", "b text"]
    rare = [(row["level"], row["broker_id"], row["text_count"], row["line_count"]) for row in loud if not row["rank"]]
    assert rare == [("ERROR", 0, 6, 3), ("ERROR", 1, 6, 3), ("WARN", 1, 1, 9)]
    sentences = {found.sentence for found in also_logged.detect(Facts(loud=loud), [])}
    assert (
        "Brokers 0 and 1 logged at ERROR 6 times from 12:00:02 to 12:00:07 (5.0 s): 6 rarer texts, the first: c text"
        in sentences
    )


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_patterns_are_what_duckdb_takes(kind: Any) -> None:
    for signature in kind.signatures:
        assert ask(questions.remarks([signature]), [line(0, "nothing of the kind")]) == []


def timeline(rows: list[tuple[Any, ...]]) -> duckdb.DuckDBPyConnection:
    """Return a connection with rows of gold.partition_timeline.

    Args:
        rows: partition, position, incarnation, state, second, replicas that are added.
    """
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(
        "CREATE TABLE gold_partition_timeline (cluster_id varchar, topic varchar, partition integer, position integer, "
        "incarnation integer, state varchar, begin_by_time timestamptz, replicas integer[], adding_replicas integer[], "
        "removing_replicas integer[], file_id varchar, byte_offset bigint)"
    )
    values = [
        ("c", "orders", *row[:4], START + timedelta(seconds=row[4]), None, row[5], [], "f", row[4]) for row in rows
    ]
    connection.executemany("INSERT INTO gold_partition_timeline VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
    return connection


def test_states_are_those_of_partitions_whose_replicas_were_moved() -> None:
    rows = [(0, 0, 0, "led", 0, []), (0, 1, 0, "led", 10, [4]), (0, 2, 0, "led", 20, []), (1, 0, 0, "led", 5, [])]
    found = dicts(timeline(rows).sql(questions.assignments()).to_arrow_table())
    assert [(row["partition"], row["position"], row["adding_replicas"]) for row in found] == [
        *((0, 0, []), (0, 1, [4]), (0, 2, []))
    ]


def test_last_states_are_those_of_partitions_that_are_led() -> None:
    connection = timeline([(0, 0, 0, "led", 0, []), (0, 1, 0, "led", 10, []), (1, 0, 0, "led", 5, [])])
    connection.execute(
        "INSERT INTO gold_partition_timeline SELECT * REPLACE (1 AS position, 'leaderless' AS state) "
        "FROM gold_partition_timeline WHERE partition = 1"
    )
    connection.execute("ALTER TABLE gold_partition_timeline ADD COLUMN leader integer DEFAULT 3")
    connection.execute("ALTER TABLE gold_partition_timeline ADD COLUMN isr integer[]")
    (row,) = dicts(connection.sql(questions.last_states()).to_arrow_table())
    assert (row["partition"], row["leader"]) == (0, 3)


def test_topics_that_were_created_again_are_those_with_a_line_of_the_deletion() -> None:
    lives = [(0, "led", 0), (0, "deleted", 10), (1, "led", 15), (1, "deleted", 30), (2, "led", 30)]
    rows = [
        (partition, position, incarnation, state, second, None)
        for partition in (0, 1)
        for position, (incarnation, state, second) in enumerate(lives)
    ]
    (row,) = dicts(timeline(rows).sql(questions.topics_created_again()).to_arrow_table())
    assert (row["partitions"], row["byte_offset"], row["created_byte_offset"]) == (2, 10, 15)


def test_a_produce_that_two_files_hold_is_refused_once() -> None:
    refused = [
        {"topic": "orders", "partition": 0, "error_code": 19},
        {"topic": "id:a", "partition": 1, "error_code": 19},
        {"topic": "id:b", "partition": 1, "error_code": 19},
    ]
    rows = [
        ("c", 1, START + timedelta(seconds=number), "p", f"c{number}", number, file, number * 100, refused)
        for file in ("kafka-request.log", "kafka-request.log.1")
        for number in range(3)
    ]
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(
        "CREATE TABLE silver_produce_requests (cluster_id varchar, broker_id integer, completed_time timestamptz, "
        "client_id varchar, connection varchar, correlation_id integer, file_id varchar, byte_offset bigint, "
        "partitions STRUCT(topic varchar, partition integer, error_code integer)[])"
    )
    connection.executemany("INSERT INTO silver_produce_requests VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    # Of another cluster a topic may have any id.
    connection.execute(
        "CREATE TABLE silver_topics AS FROM (VALUES ('c', 'orders', 'a'), ('d', 'pay', 'b')) t"
        "(cluster_id, topic, topic_id)"
    )
    (row,) = dicts(connection.sql(questions.errors(10)).to_arrow_table())
    assert (row["answers"], row["partitions"]) == (3, ["id:b-1", "orders-0", "orders-1"])


def test_locks_that_ran_out_are_added_up_by_group() -> None:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(
        "CREATE TABLE gold_share_operations (cluster_id varchar, broker_id integer, group_id varchar, "
        "completed_time timestamptz, locks_expired STRUCT(member_id varchar, records bigint)[])"
    )
    operations = ((0, 1, [("m", 3)]), (20, 2, [("m", 2), ("n", 1)]), (30, 1, []), (200, 1, [("n", 4)]))
    for second, broker, locks in operations:
        expired = [{"member_id": member, "records": records} for member, records in locks]
        row = ("c", broker, "g", START + timedelta(seconds=second), expired)
        connection.execute("INSERT INTO gold_share_operations VALUES (?, ?, ?, ?, ?)", row)
    first, second = dicts(connection.sql(questions.locks_expired(60)).to_arrow_table())
    assert (first["records"], first["members"], first["broker_ids"]) == (6, 2, [1, 2])
    assert (second["records"], second["members"]) == (4, 1)
    assert second["last_time"] - first["first_time"] == 200_000_000
