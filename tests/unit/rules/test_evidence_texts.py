"""How entries of files that are no logs read where they are evidence."""

from datetime import UTC, datetime

import pytest

from highwater.pipelines.base.values import micros
from highwater.pipelines.rules.evidence_stage import _batch, _record

BATCH = {"base_offset": 3, "last_offset": 9, "leader_epoch": None, "size_bytes": 71, "crc": 0xBEEF}
RECORD = {"record": "PartitionChangeRecord", "offset": 7, "leader": 2, "leader_epoch": 4, "partition_epoch": 5}


@pytest.mark.parametrize(("microsecond", "written"), [(0, "12:00:00"), (5000, "12:00:00.005"), (120, "12:00:00.00012")])
def test_a_batch(microsecond: int, written: str) -> None:
    time = micros(datetime(2026, 1, 1, 12, microsecond=microsecond, tzinfo=UTC))
    said = _batch(BATCH | {"max_time": time})
    assert said == f"record batch at offsets 3 to 9, leader epoch -, 71 bytes, CRC beef, written 2026-01-01 {written}"
    assert "leader epoch 8," in str(_batch(BATCH | {"max_time": time, "leader_epoch": 8}))
    assert _batch(BATCH | {"max_time": None}) is None


def test_a_record_of_a_partition() -> None:
    expected = "PartitionChangeRecord at offset 7: leader 2, leader epoch 4, partition epoch 5, ISR [1, 2]"
    assert _record(RECORD | {"isr": [1, 2]}) == expected
    assert _record(RECORD | {"isr": None}) is None
