"""Of which cluster a report is, and whether a window may have lines."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from highwater.jobs.lakes import choose_cluster, explain_no_lines
from highwater.pipelines.base.errors import InputError
from highwater.pipelines.lake.lake import Lake
from highwater.schemas.bronze import LOG_FILES

HOUR_US = 3_600_000_000


class Register:
    """A lake of log files: cluster, broker, first and last time in hours of 1970."""

    root = Path("lake")

    def __init__(self, *files: tuple[str, int | None, int, int]) -> None:
        rows = [
            {"cluster_id": cluster, "broker_id": broker, "first_time": first * HOUR_US, "last_time": last * HOUR_US}
            for cluster, broker, first, last in files
        ]
        self.table = pa.Table.from_pylist(rows, LOG_FILES.arrow_schema)

    def rows(self, spec: Any, *columns: str, where: Any = None) -> pa.Table:
        return (self.table if where is None else self.table.filter(where)).select(columns)


def lake(*files: tuple[str, int | None, int, int]) -> Lake:
    return cast(Lake, Register(*files))


BOTH = lake(("demo", 1, 0, 2), ("mine", 1, 4, 6), ("unknown", None, 0, 9))


def test_a_report_is_of_the_cluster_whose_logs_were_given() -> None:
    notes: list[str] = []
    assert choose_cluster(BOTH, {"mine"}, notes.append) == "mine"
    (note,) = notes
    assert "demo" in note
    # There is no other one, or nothing tells whose the logs are.
    assert choose_cluster(BOTH, {"mine", "demo"}, notes.append) is None
    assert choose_cluster(BOTH, set(), notes.append) is None
    assert len(notes) == 1


def test_several_clusters_beside_others_are_not_mixed_with_them() -> None:
    three = lake(("a", 1, 0, 1), ("b", 1, 0, 1), ("c", 1, 0, 1))
    with pytest.raises(InputError, match="holds logs of cluster c and of the given a, b"):
        choose_cluster(three, {"a", "b"}, print)


def at(hour: int) -> datetime:
    return datetime(1970, 1, 1, hour, tzinfo=UTC)


def test_a_window_that_can_have_no_line_says_both_times() -> None:
    assert explain_no_lines(BOTH, at(6), at(7), "mine") is None
    assert explain_no_lines(BOTH, at(9), None, None) is None
    assert explain_no_lines(lake(), at(9), None, None) is None
    after, before = explain_no_lines(BOTH, at(7), None, "mine"), explain_no_lines(BOTH, None, at(4), "mine")
    assert str(after).startswith("--from 1970-01-01T07:00:00.000Z is after the last line, 1970-01-01T06:00:00.000Z")
    assert str(before).startswith("--until 1970-01-01T04:00:00.000Z is before the first line, 1970-01-01T04:00:00.000Z")
