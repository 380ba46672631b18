"""Records and facts of logs without a lake: those that an audit stores of the same files."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from highwater.pipelines.base.config import load_config
from highwater.pipelines.base.errors import InputError
from highwater.pipelines.bronze.log_source import RECORDS, columns_of, facts_of, how_of, plan, records

SLICE = Path(__file__).resolve().parents[2] / "data" / "slice"
SOURCE = SLICE / "broker-1" / "logs" / "server.log.gz"
CONFIG = load_config().ingest
HOW = how_of(CONFIG)


def text_of(pattern: str) -> bytes:
    return b"".join(gzip.decompress(path.read_bytes()) for path in SLICE.rglob(pattern))


def test_each_line_is_read_once_and_has_its_broker() -> None:
    units = plan([str(SLICE)], CONFIG)
    rows = pa.Table.from_batches([batch for unit in units for batch in records(unit, HOW)])
    assert rows.schema.names == RECORDS.names
    assert pc.sum(rows["line_count"]).as_py() == text_of("*.log.gz").count(b"\n")
    folders = pc.split_pattern(rows["path"], "/")
    brokers = {
        (f"broker-{broker}", path[-3])
        for broker, path in zip(rows["broker_id"].to_pylist(), folders.to_pylist(), strict=True)
    }
    assert all(broker == folder for broker, folder in brokers)
    assert len(brokers) == 3


def test_a_request_log_gives_its_produces() -> None:
    units = plan([str(SLICE)], CONFIG)
    produces = [row for unit in units for batch in facts_of("produce_requests", unit, HOW) for row in batch.to_pylist()]
    assert len(produces) == text_of("kafka-request.log.gz").count(b'"requestApiKeyName":"PRODUCE"')
    assert {row["broker_id"] for row in produces} == {1, 2, 3}


@pytest.mark.parametrize("table", ["leader_and_isr", "replica_fetches", "line_counts"])
def test_facts_are_of_the_declared_columns(table: str) -> None:
    columns = columns_of(table)
    for unit in plan([str(SLICE / "broker-2")], CONFIG):
        for batch in facts_of(table, unit, HOW):
            assert batch.schema.names == columns.names
            assert all(field.nullable for field in batch.schema)


def test_a_copy_is_read_once_and_a_damaged_file_is_named(tmp_path: Path) -> None:
    for name in ("server.log.gz", "server.log.1.gz"):
        (tmp_path / name).write_bytes(SOURCE.read_bytes())
    units = plan([str(tmp_path)], CONFIG)
    assert len(units) == 1
    (tmp_path / "state-change.zip").write_bytes(b"PK\x03\x04 not a zip")
    with pytest.raises(InputError, match=r"state-change\.zip"):
        plan([str(tmp_path)], CONFIG)


def test_a_compressed_file_gives_the_records_of_the_plain_one(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_bytes(gzip.decompress(SOURCE.read_bytes()))
    whole, packed = (
        [batch.to_pylist() for unit in plan([str(path)], CONFIG) for batch in records(unit, HOW)]
        for path in (tmp_path / "server.log", SOURCE)
    )
    assert [row["message"] for batch in whole for row in batch] == [row["message"] for batch in packed for row in batch]


def test_unknown_facts_and_folders_without_logs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected one of appends"):
        columns_of("produces")
    with pytest.raises(InputError, match="no log files"):
        plan([str(tmp_path)], CONFIG)
