"""Which run a lake had before its last one, read off its log without Spark."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from highwater.pipelines.base.recurrence import fingerprint
from highwater.pipelines.lake.delta_log import read_log
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.report.collect import _read_last_run
from highwater.schemas.audit import RULE_RESULTS, VIOLATIONS
from highwater.schemas.incidents import INCIDENTS
from highwater.schemas.table import TableSpec
from tests.unit.report.rows import Row, found, happened, result


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """An audit's tables, empty."""
    made = Lake(None, tmp_path)  # type: ignore[arg-type]
    made.create([VIOLATIONS, RULE_RESULTS, INCIDENTS])
    return made


def audit(lake: Lake, stamp: str, *findings: Row, **changes: Any) -> None:
    def write(spec: TableSpec, rows: list[Row]) -> None:
        lake.replace(spec, pa.Table.from_pylist(rows, spec.arrow_schema), stamp=stamp)

    write(VIOLATIONS, list(findings))
    write(RULE_RESULTS, [result(**changes)])
    write(INCIDENTS, [happened(stamp)])


def test_the_first_audit_has_none_before_it(lake: Lake) -> None:
    assert _read_last_run(lake, None) is None
    audit(lake, "audit-1", found(12))
    assert _read_last_run(lake, None) is None
    # Repeated, or gone on with after a crash, it is the same one.
    audit(lake, "audit-1", found(12))
    assert _read_last_run(lake, None) is None


def test_the_run_before_is_the_last_of_another_stamp(lake: Lake) -> None:
    audit(lake, "audit-1", found(1))
    audit(lake, "audit-2", found(12), found(13), verdict="violated", cases=2)
    audit(lake, "audit-3", found(12, message="more of it"), verdict="clean")
    audit(lake, "audit-3", found(12, message="more of it"), verdict="clean")
    before = _read_last_run(lake, None)
    assert before is not None
    assert before.run_id == "audit-2"
    assert [fingerprint(found(number), None) in before.fingerprints for number in (1, 12, 13)] == [False, True, True]
    assert before.verdicts == {result()["rule_id"]: "violated"}
    assert before.incident_ids == {"audit-2"}


def test_an_audit_that_was_cut_off_is_none(lake: Lake) -> None:
    audit(lake, "audit-1", found(1))
    lake.replace(VIOLATIONS, pa.Table.from_pylist([found(2)], VIOLATIONS.arrow_schema), stamp="audit-2")
    lake.replace(VIOLATIONS, pa.Table.from_pylist([found(3)], VIOLATIONS.arrow_schema), stamp="audit-3")
    assert _read_last_run(lake, None) is None


def test_once_its_files_are_gone_nothing_is_told(lake: Lake) -> None:
    audit(lake, "audit-1", found(1))
    audit(lake, "audit-2", found(2))
    assert _read_last_run(lake, None) is not None
    live = {file.place for file in lake.files(VIOLATIONS) or []}
    for path in lake.path(VIOLATIONS).rglob("*.parquet"):
        if path not in live:
            path.unlink()
    assert _read_last_run(lake, None) is None


def test_a_table_is_rebuilt_as_it_was_at_a_version(lake: Lake) -> None:
    for number in range(3):
        audit(lake, f"audit-{number}", *(found(row) for row in range(number)))
    rows = [read_log(lake.path(VIOLATIONS), version).rows for version in range(4)]
    assert rows == [0, 0, 1, 2]
