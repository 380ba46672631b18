"""The ledgers: what the registers say of a file, beside what is stored of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.bronze.quarantine import custody_of
from highwater.pipelines.quality.ledger import (
    BROKERS,
    DATA,
    KINDS,
    LEDGERS,
    LOGS,
    IngestedDataFile,
    IngestedLogFile,
    build_ledgers,
)
from highwater.pipelines.quality.measure import Measured

FILE = IngestedLogFile(
    "f", "a/server.log", "server", "c", 1, line_count=12, record_count=10, first_us=1_000, last_us=9_000
)
LINES = Measured("bronze.log_lines", "f", 10, line_count=12, first_line=1)
COUNTS = Measured("silver.line_counts", "f", 3, first_us=1_000, last_us=9_000, line_count=10, unparsed=1)


def made(ledger: str, measured: Sequence[Measured], slack_us: int = 0, **given: Any) -> pa.Table:
    logs, data, earlier = (given.get(name, []) for name in ("logs", "data", "earlier"))
    return build_ledgers(logs, data, earlier, measured, slack_us, given.get("shares", {}))[ledger]


def broken(ledger: str, rows: pa.Table) -> list[str]:
    return [item.columns[0] for item in LEDGERS[ledger] if pc.any(item.broken(rows)).as_py()]


def test_a_file_that_is_stored_whole() -> None:
    assert broken(LOGS, made(LOGS, [LINES, COUNTS], 0, logs=[FILE])) == []


def test_a_line_that_is_missing_in_bronze() -> None:
    rows = made(LOGS, [LINES._replace(row_count=9, line_count=11), COUNTS], 0, logs=[FILE])
    assert broken(LOGS, rows) == ["stored_lines", "stored_records", "counted_records"]


def test_a_record_that_silver_counted_twice() -> None:
    assert broken(LOGS, made(LOGS, [LINES, COUNTS._replace(line_count=11)], 0, logs=[FILE])) == ["counted_records"]


def test_a_file_without_any_rows() -> None:
    assert broken(LOGS, made(LOGS, [], 0, logs=[FILE])) == ["stored_lines", "stored_records"]


def test_of_a_log_that_has_grown_only_what_follows_is_stored() -> None:
    lines = LINES._replace(row_count=4, line_count=5, first_line=8)
    assert broken(LOGS, made(LOGS, [lines, COUNTS._replace(line_count=4)], 0, logs=[FILE])) == []
    lines = LINES._replace(row_count=3, line_count=4, first_line=8)
    assert broken(LOGS, made(LOGS, [lines, COUNTS._replace(line_count=3)], 0, logs=[FILE])) == ["stored_lines"]


def test_a_document_that_begins_with_a_line_of_signs_is_whole() -> None:
    assert broken(LOGS, made(LOGS, [LINES._replace(first_line=2), COUNTS], 0, logs=[FILE])) == []
    rows = made(LOGS, [LINES._replace(first_line=3, row_count=9, line_count=11), COUNTS], 0, logs=[FILE])
    assert broken(LOGS, rows) == ["stored_lines", "counted_records"]


def test_facts_outside_the_time_of_their_file() -> None:
    fact = Measured("silver.isr_changes", "f", 1, first_us=500, last_us=9_800)
    assert broken(LOGS, made(LOGS, [LINES, COUNTS, fact], 0, logs=[FILE])) == ["first_fact_us", "last_time_us"]
    assert broken(LOGS, made(LOGS, [LINES, COUNTS, fact], 1_000, logs=[FILE])) == []


def test_a_log_without_records_owes_nothing() -> None:
    assert made(LOGS, [], 0, logs=[FILE._replace(record_count=0)]).num_rows == 0


def test_rows_of_a_file_of_a_data_directory() -> None:
    files = [IngestedDataFile("d", "replication-offset-checkpoint", 2)]
    rows = [Measured("silver.checkpoints", "d", 2)]
    assert broken(DATA, made(DATA, rows, data=files)) == []
    assert broken(DATA, made(DATA, [], data=files)) == ["stored_rows"]


def test_the_share_that_was_understood() -> None:
    rows = made(KINDS, [COUNTS], logs=[FILE], shares={"server": 0.95})
    assert rows["parsed_share"].to_pylist() == [0.9]
    assert broken(KINDS, rows) == ["parsed_share"]
    assert broken(KINDS, made(KINDS, [COUNTS], logs=[FILE], shares={"server": 0.9})) == []
    assert broken(KINDS, made(KINDS, [COUNTS], logs=[FILE])) == []


def test_a_batch_that_is_older_than_what_is_there() -> None:
    earlier = FILE._replace(file_id="e", last_us=10_000)
    assert broken(BROKERS, made(BROKERS, [], logs=[FILE], earlier=[earlier])) == ["newest_time_us"]
    assert broken(BROKERS, made(BROKERS, [], logs=[FILE], earlier=[earlier._replace(broker_id=2)])) == []
    assert broken(BROKERS, made(BROKERS, [], logs=[FILE])) == []


def step(batch_id: str, action: str) -> dict[str, Any]:
    return {"file_id": "f", "path": "p", "batch_id": batch_id, "action": action, "reason": "r"}


def test_a_file_is_kept_until_it_is_released_and_again_when_it_fails_again() -> None:
    first, out, again = step("1", "quarantined"), step("2", "released"), step("2", "quarantined")
    assert custody_of([first]).quarantined.keys() == {"f"}
    assert custody_of([first]).batch_of("f", "1") == "1"
    released = custody_of([out, first])
    assert released.quarantined == {}
    assert released.batch_of("f", "1") == "2"
    assert released.batch_of("other", "1") == "1"
    assert custody_of([again, out, first]).quarantined["f"]["batch_id"] == "2"
