"""Where batches and segments lie in the model's log."""

from __future__ import annotations

import pytest

from tests.unit.replay.model.errors import Error, KafkaError
from tests.unit.replay.model.log import LogOffset, MessageOnlyOffset, ReplicaLog
from tests.unit.replay.model.rules import rules_for


def _log() -> ReplicaLog:
    """Two segments: batches 0 to 2 and 3 to 4 of 30 and 20 bytes, then 5 to 9 of 50."""
    log = ReplicaLog(rules_for("3.9.1"))
    log.append(3, 30, 0)
    log.append(2, 20, 0)
    log.roll()
    log.append(5, 50, 1)
    return log


@pytest.mark.parametrize(
    ("offset", "found"),
    [(0, (0, 0, 0)), (2, (2, 0, 0)), (4, (4, 0, 30)), (5, (5, 5, 0)), (9, (9, 5, 0)), (10, (10, 5, 50))],
)
def test_an_offset_lies_where_its_batch_does(offset, found):
    assert _log().locate(offset) == LogOffset(*found)


@pytest.mark.parametrize(
    ("offset", "bytes_max", "upper", "size"),
    [
        (0, 1_000, 10, 50),  # up to the end of its segment
        (0, 40, 10, 40),
        (0, 10, 10, 30),  # one batch at least
        (4, 1_000, 10, 20),
        (5, 1_000, 10, 50),
        (0, 1_000, 3, 30),  # what lies below the upper bound
        (3, 1_000, 3, 0),
        (10, 1_000, 10, 0),
    ],
)
def test_a_read_ends_with_its_segment_its_size_or_its_bound(offset, bytes_max, upper, size):
    log = _log()
    assert log.read(offset, bytes_max, log.locate(upper), min_one_message=True).size == size


def test_a_read_outside_the_log_is_out_of_range():
    log = _log()
    with pytest.raises(KafkaError) as raised:
        log.read(11, 1, log.end, min_one_message=True)
    assert raised.value.error is Error.OFFSET_OUT_OF_RANGE


def test_a_truncation_takes_batches_epochs_and_high_watermark_along():
    log = _log()
    log.increment_high_watermark(log.end)
    log.truncate_to(3)
    assert (log.end, log.epochs, log.high_watermark.offset) == (LogOffset(3, 0, 30), ((0, 0),), 3)
    log.truncate_to(99)
    assert log.end_offset == 3
    assert log.append(1, 10, 2) == (3, 3)


def test_positions_are_compared_within_a_segment_only():
    with pytest.raises(MessageOnlyOffset):
        LogOffset(3).on_older_segment(LogOffset(4, 0, 10))
    with pytest.raises(MessageOnlyOffset):
        LogOffset(6, 5, 0).position_diff(LogOffset(4, 0, 10))
    assert LogOffset(5, 0, 40).position_diff(LogOffset(4, 0, 10)) == 30
