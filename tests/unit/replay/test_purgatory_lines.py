"""Lines of one partition on one broker, merged from its two logs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.replay.model.rules import Rules
from tests.unit.replay.purgatory import check_lines as c
from tests.unit.replay.purgatory import check_rows
from tests.unit.replay.purgatory.check_lines import CheckedProduce, CheckLine
from tests.unit.replay.purgatory.check_rows import LogRow, checked, log_order, places_of


def placed(byte_offset: int, time_us: int, file_no: int = 1) -> LogRow:
    return LogRow(True, file_no, byte_offset, CheckLine(c.CHECK, time_us, -1, required_offset=byte_offset))


def apart(time_us: int, high_watermark: int | None = None) -> LogRow:
    return LogRow(False, 9, time_us, CheckLine(c.LEADER, time_us, -1, high_watermark=high_watermark))


def test_leadership_goes_before_the_lines_of_its_millisecond():
    lines = list(log_order([apart(1), apart(20), apart(99), placed(5, 10), placed(6, 20), placed(7, 20)]))
    assert [(line.kind, line.time_us) for line in lines] == [
        (c.LEADER, 1),
        (c.CHECK, 10),
        (c.LEADER, 20),
        (c.CHECK, 20),
        (c.CHECK, 20),
        (c.LEADER, 99),
    ]
    assert [line.order for line in lines] == list(range(6))


def test_places_count_not_times():
    """Threads wait for the appender with a time that they took before."""
    lines = list(log_order([apart(20), placed(5, 30), placed(6, 10), placed(0, 5, file_no=2)]))
    assert [line.time_us for line in lines] == [20, 30, 10, 5]


def test_values_come_along():
    row = LogRow(True, 1, 0, CheckLine(c.PROGRESS, 10, -1, required_offset=7, awaited=True))
    first, line = log_order([apart(10, high_watermark=3), row])
    assert first.high_watermark == 3
    assert (line.required_offset, line.awaited) == (7, True)
    assert line.status is None


def test_a_produce_is_known_to_be_alone_by_all_requests_whose_batch_starts_there():
    def request(offset: int, partitions: int) -> LogRow:
        return LogRow(False, None, offset, CheckLine(c.REQUEST, 0, -1, partitions=partitions))

    requests = [request(3, 1), request(5, 2), request(7, 1), request(7, 2)]
    initial = [LogRow(True, 1, at, CheckLine(c.INITIAL, 10, -1, start_offset=at)) for at in (3, 4, 5, 7)]
    assert [line.partitions for line in log_order([*requests, *initial])] == [1, None, None, None]


def test_a_file_within_another_of_its_kind_is_a_copy():
    def file(name: str, first_us: int, last_us: int, kind: str = "server") -> dict[str, Any]:
        of_broker = {"cluster_id": "c", "broker_id": 1, "kind": kind, "record_count": 9}
        return {"file_id": name, "first_time": first_us, "last_time": last_us, **of_broker}

    files = [file("b", 5, 90), file("a", 0, 100), file("c", 100, 100), file("s", 5, 90, "state-change")]
    assert places_of(files) == {"a": (1, True), "s": (2, False), "c": (3, True)}


@pytest.mark.parametrize(
    "rows",
    [
        [placed(5, 10), placed(4, 10)],
        [placed(5, 10, file_no=2), placed(6, 10)],
        [apart(10), apart(9)],
        [placed(5, 10), apart(10)],
    ],
)
def test_rows_in_another_order_are_refused(rows: list[LogRow]):
    with pytest.raises(ValueError, match="out of order"):
        list(log_order(rows))


def test_a_broker_is_held_to_the_version_that_it_ran_then(monkeypatch: pytest.MonkeyPatch):
    seen: list[tuple[str, object]] = []

    class Witness:
        """A checker that records its version and its input."""

        def __init__(self, rules: Rules) -> None:
            self.version = ".".join(map(str, rules.version))

        def observe(self, line: CheckLine) -> list[CheckedProduce]:
            seen.append((self.version, line.order))
            return []

        def finish(self) -> list[CheckedProduce]:
            seen.append((self.version, "end"))
            return []

    monkeypatch.setattr(check_rows, "PurgatoryChecker", Witness)
    lines = [CheckLine(c.CHECK, time_us, order) for order, time_us in enumerate((10, 49, 50, 90))]
    assert list(checked(((0, "3.9.1"), (50, "4.0.0"), (60, "4.1.0")), lines)) == []
    upgrades = [("3.9.1", 0), ("3.9.1", 1), ("3.9.1", "end"), ("4.0.0", 2), ("4.0.0", "end"), ("4.1.0", 3)]
    assert seen == [*upgrades, ("4.1.0", "end")]
