"""Processes of this machine do what tasks do: in order, with errors that arrive, and no process that stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from pipelines.base.errors import EnvironmentProblem
from pipelines.lake.table_files import ConstraintBroken
from pipelines.spark.local_tasks import LocalTasks, of_batches

_SCHEMA = pa.schema([("number", pa.int64())])
_ROOT = Path(__file__).resolve().parents[2]


def _batch(*numbers: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(numbers, pa.int64())], schema=_SCHEMA)


def _numbers(tasks: LocalTasks) -> list[int]:
    return [number for batch in tasks.batches() for number in batch.column(0).to_pylist()]


def _doubled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield _batch(*[2 * number for number in batch.column(0).to_pylist()])


def test_batches_come_in_the_order_of_their_tasks():
    tasks = LocalTasks(2, [3, 1, 2], lambda part: (_batch(part, number) for number in range(part)))
    assert _numbers(tasks) == [3, 0, 3, 1, 3, 2, 1, 0, 2, 0, 2, 1]
    assert _numbers(tasks.map(_doubled)) == [2 * number for number in _numbers(tasks)]


def test_of_a_slice_only_its_rows_are_sent():
    rows = _batch(*range(100_000))
    tasks = of_batches(2, [[rows.slice(5, 3)], [], [rows.slice(0, 1), rows.slice(99_999, 1)]])
    assert _numbers(tasks) == [5, 6, 7, 0, 99_999]
    assert all(part is None or part.size < 2_000 for part in tasks._parts)


class _Unsendable(Exception):
    def __init__(self, what: str, where: str) -> None:
        super().__init__(f"{what} at {where}")


def _broken(part: str) -> Iterator[pa.RecordBatch]:
    raise ConstraintBroken(part) if part == "constraint" else _Unsendable(part, "home")


def test_an_error_arrives_as_what_it_is_or_with_its_text():
    with pytest.raises(ConstraintBroken, match=r"^constraint$"):
        LocalTasks(2, ["constraint"], _broken).batches()
    with pytest.raises(RuntimeError, match="_Unsendable: lost at home"):
        LocalTasks(2, ["lost"], _broken).batches()


def _killed(_: int) -> Iterator[pa.RecordBatch]:
    os.kill(os.getpid(), signal.SIGKILL)
    return iter(())


def test_a_process_that_is_killed_is_told_and_others_take_its_place():
    with pytest.raises(EnvironmentProblem, match="killed"):
        LocalTasks(2, [1], _killed).batches()
    assert _numbers(LocalTasks(2, [4], lambda part: [_batch(part)])) == [4]


_DRIVER = """
import os, sys, time
import pyarrow as pa
from pipelines.spark.local_tasks import LocalTasks
def work(part):
    print(os.getpid(), flush=True)
    time.sleep(60)
    yield from ()
if __name__ == "__main__":
    LocalTasks(2, [1, 2], work).batches()
"""


def test_processes_end_with_a_driver_that_is_killed(tmp_path: Path):
    script = tmp_path / "driver.py"
    script.write_text(_DRIVER)
    driver = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(_ROOT)}
    )
    assert driver.stdout is not None
    pids = [int(driver.stdout.readline()) for _ in range(2)]
    driver.kill()
    driver.wait()
    until = time.monotonic() + 20
    while any(_runs(pid) for pid in pids):
        assert time.monotonic() < until, "they outlived their driver"
        time.sleep(0.1)


def _runs(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
