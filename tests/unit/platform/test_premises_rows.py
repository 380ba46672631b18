"""What tasks make of tables for the premises: few rows of each kind, which the driver puts together."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from highwater.pipelines.base.values import UNKNOWN_CLUSTER
from highwater.pipelines.cluster import premises as p
from highwater.pipelines.cluster import rows as pr
from highwater.pipelines.kafka.strays import FIRST_US
from highwater.schemas import bronze, silver
from highwater.schemas.silver.data_dir import METADATA_RECORDS
from tests.unit.tables import table_rows


def premises(*batches: pa.RecordBatch) -> p.Premises:
    return p.build_premises([row for batch in batches for row in batch.to_pylist()], 0)


def test_a_connection_belongs_to_the_thread_that_its_client_id_names() -> None:
    def fetch(connection: str, client_id: str | None) -> Mapping[str, Any]:
        return {"cluster_id": "c", "broker_id": 1, "connection": connection, "client_id": client_id}

    names = ("cluster_id", "broker_id", "connection", "client_id")
    rows = [
        fetch("a", "broker-2-fetcher-3"),
        fetch("b", "consumer"),
        fetch("a", "broker-2-fetcher-3"),
        fetch("d", None),
    ]
    batch = table_rows(silver.FETCH_REQUESTS, rows).select(names)
    assert pr.find_threads(batch).num_rows == 1
    assert premises(pr.find_threads(batch), pr.find_threads(batch)).threads == {"c": {(1, "a"): 3}}


def test_of_several_batches_the_newest_snapshot_and_the_last_name_count() -> None:
    def newest(*offsets: int) -> pa.RecordBatch:
        rows = [{"cluster_id": "c", "broker_id": 1, "source": "snapshot", "offset": offset} for offset in offsets]
        return pr.find_snapshots(
            table_rows(METADATA_RECORDS, rows).select(["cluster_id", "broker_id", "source", "offset"])
        )

    def named(*names: str) -> pa.RecordBatch:
        rows = [{"cluster_id": "c", "topic_id": "id", "topic": name} for name in names]
        return pr.deduplicate(table_rows(silver.TOPICS, rows).select(["cluster_id", "topic_id", "topic"]), p.NAME)

    assert newest(3, 9, 4).num_rows == named("a", "a").num_rows == 1
    seen = premises(newest(3, 9, 4), newest(5), named("a", "b"), named("a"))
    assert (seen.snapshots, seen.topic_names) == ({("c", 1): 9}, {("c", "id"): "b"})


def test_files_and_what_is_read_of_them() -> None:
    file = {"file_id": "f", "path": "x.log", "kind": "server", "broker_id": 1, "first_time": FIRST_US}
    counts = table_rows(silver.LINE_COUNTS, [{"file_id": "f"}] * 3).select(["file_id"])
    seen = premises(pr.convert_files(table_rows(bronze.LOG_FILES, [file])), pr.deduplicate(counts, p.PARSED))
    assert seen.files == (p.LogFile("f", "x.log", "server", UNKNOWN_CLUSTER, 1, FIRST_US, None, True),)


def test_lives_in_the_order_of_time() -> None:
    place = {"cluster_id": "c", "broker_id": 1, "file_id": "f", "byte_offset": 2, "line_no": 3}
    rows = [{**place, "time": time_us, "event": event} for time_us, event in ((9, p.SHUT_DOWN), (4, p.STARTING))]
    seen = premises(pr.make_rows(table_rows(silver.BROKER_LIFECYCLE, rows), p.LIFE))
    assert [(life.time_us, life.event) for life in seen.lives] == [(4, p.STARTING), (9, p.SHUT_DOWN)]


_OF_REPLICA = ("cluster_id", "broker_id", "topic", "partition")


def test_growths_of_fetches_that_name_no_partition_are_none() -> None:
    assert growths([], topic=None) == growths([(7, 7)], topic=None) == 0


def test_a_follower_that_catches_up_shows_no_growth() -> None:
    assert growths([(5, 90), (40, 90), (80, 90)]) == 0
    assert growths([(80, 90), (90, 90), (95, 90)]) == 1
    assert growths([(5, None), (40, None)]) == 1


def test_a_topic_that_fetches_name_by_its_id_only_grows() -> None:
    assert growths([(80, 90), (90, 90), (95, 90)], topic=None, topic_id="WCK8FkK8RbKFhwge5X0aNA") == 1


def growths(fetches: list[tuple[int, int | None]], topic: str | None = "orders", topic_id: str | None = None) -> int:
    """Return how many stretches of growth fetches show, each an offset and the high watermark of its response."""
    names = (*_OF_REPLICA, "topic_id", "fetch_offset", "response_high_watermark", "time")
    schema = pa.schema([silver.REPLICA_FETCHES.arrow_schema.field(name) for name in names])
    begin = datetime(2026, 11, 20, tzinfo=UTC)
    rows = [
        dict(zip(names, ("c", 1, topic, 0, topic_id, *fetch, begin + timedelta(milliseconds=number)), strict=True))
        for number, fetch in enumerate(fetches)
    ]
    return pr.find_growths(pa.RecordBatch.from_pylist(rows, schema=schema)).num_rows
