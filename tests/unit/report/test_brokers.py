"""Brokers in the report: a file that was read as it grew, and under other names, is one."""

from __future__ import annotations

from highwater.pipelines.base.config import load_config
from highwater.pipelines.report.assemble import assemble
from highwater.pipelines.report.model import RunInfo
from tests.unit.report.rows import Row, collected, log_file

RUN = RunInfo(run_id="r", code_version="1", config_hash="c", rules_fingerprint="f")


def read(path: str, second: int | None, lines: int, kind: str = "server") -> Row:
    times = dict.fromkeys(("first_time", "last_time"), None if second is None else second * 1_000_000)
    return log_file(path, 1, line_count=lines, kind=kind, kafka_version=None, mode=None, problem=None, **times)


def test_a_file_that_grew_and_was_rotated_counts_once() -> None:
    files = [
        read("b1/server.log", 10, 5),
        read("b1/server.log", 10, 8),
        read("b1/server.log.1", 10, 9),
        read("b1/server.log", 20, 2),
        read("b1/controller.log", 10, 3, "controller"),
        read("old/server.log", 10, 1),
        read("b1/server.log.2", None, 4),
    ]
    (broker,) = assemble(collected(files=files), load_config(), RUN).brokers
    assert (broker.files, broker.lines) == (5, 9 + 2 + 3 + 1 + 4)
