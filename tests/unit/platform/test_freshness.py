"""The newest line of each broker, and which brokers are stale."""

from typing import Any, cast

import pyarrow as pa

from highwater.jobs.freshness import GONE_US, HOUR_US, Newest, describe_freshness, describe_stale, find_newest_lines
from highwater.pipelines.lake.lake import Lake
from highwater.schemas.bronze import LOG_FILES
from highwater.schemas.silver import BROKER_LIFECYCLE

NOW_US = 1_000 * HOUR_US


def broker(broker_id: int, age_hours: float, stopped: bool = False, cluster_id: str = "c") -> Newest:
    return Newest(cluster_id, broker_id, NOW_US - round(age_hours * HOUR_US), stopped)


def stale(*newest: Newest) -> list[str]:
    return [line.split(" is newer")[0] for line in describe_stale(newest, NOW_US, 2 * HOUR_US)]


def test_a_cluster_of_which_nothing_arrives_is_stale() -> None:
    assert stale(broker(1, 1.9), broker(2, 2)) == []
    assert stale(broker(1, 2.1), broker(2, 3)) == ["no line of cluster c"]
    assert stale(broker(1, 2.1, stopped=True)) == ["no line of cluster c"]
    assert stale(broker(1, 3), broker(1, 0, cluster_id="d")) == ["no line of cluster c"]
    # An interval of the past, of which the lake has what came later.
    assert stale(broker(1, -500)) == []


def test_a_broker_among_others_is_stale_unless_it_was_shut_down_or_is_gone() -> None:
    assert stale(broker(1, 0), broker(2, 3)) == ["no line of broker 2 of cluster c"]
    assert stale(broker(1, 0), broker(2, 3, stopped=True)) == []
    assert stale(broker(1, 0), broker(2, GONE_US / HOUR_US + 1)) == []


def test_a_sentence_says_both_times_the_age_and_the_limit() -> None:
    assert describe_stale([broker(1, 3)], NOW_US, 2 * HOUR_US) == [
        "no line of cluster c is newer than 1970-02-11T13:00:00.000Z, 3.0 h before 1970-02-11T16:00:00.000Z "
        "(limit 2.0 h): see whether its logs still arrive"
    ]


class Tables:
    """A lake of rows."""

    def __init__(self, **rows: list[dict[str, Any]]) -> None:
        self.tables = {
            spec.name: pa.Table.from_pylist(rows[spec.name], spec.arrow_schema)
            for spec in (LOG_FILES, BROKER_LIFECYCLE)
        }

    def rows(self, spec: Any, *columns: str, where: Any = None) -> pa.Table:
        table = self.tables[spec.name]
        return table.filter(where).select(columns)


def test_the_newest_line_is_of_all_files_of_kafka_and_a_broker_that_stopped_is_known() -> None:
    def file(broker_id: int | None, last_us: int, kind: str = "server", cluster_id: str = "c") -> dict[str, Any]:
        return {"cluster_id": cluster_id, "broker_id": broker_id, "kind": kind, "last_time": last_us}

    def stop(broker_id: int, time_us: int, event: str = "shut_down") -> dict[str, Any]:
        return {"cluster_id": "c", "broker_id": broker_id, "time": time_us, "event": event}

    files = [file(1, 5), file(1, 9), file(1, 99, "other"), file(None, 99), file(2, HOUR_US), file(3, HOUR_US)]
    stops = [stop(1, 9, "starting"), stop(2, 7), stop(3, HOUR_US - 1)]
    lake = cast(Lake, Tables(log_files=[*files, file(4, 1, cluster_id="d")], broker_lifecycle=stops))
    expected = [Newest("c", 1, 9), Newest("c", 2, HOUR_US), Newest("c", 3, HOUR_US, True), Newest("d", 4, 1)]
    assert find_newest_lines(lake, None) == expected
    assert find_newest_lines(lake, "d") == expected[-1:]


def test_the_line_names_each_broker_or_the_oldest_of_many() -> None:
    assert describe_freshness([broker(1, 0), broker(2, 1)]) == (
        "newest line: broker 1 1970-02-11T16:00:00.000Z, broker 2 1970-02-11T15:00:00.000Z"
    )
    many = describe_freshness([broker(number, number) for number in range(20)])
    assert many.startswith("newest line: broker 19 ")
    assert many.endswith(", and 8 brokers with newer ones")
    assert describe_freshness([]) == "newest line: none of a known broker"
