"""The renderings of `tests.renderings`: Kafka's own layout comes out as it went in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.renderings import SECOND_US, Rendering, logs_of, records_of, render_folder, stamp

SLICE = Path(__file__).parents[2] / "data" / "slice"


def test_the_own_layout_is_written_as_it_was() -> None:
    for _, content in logs_of(SLICE):
        lines = content[: 1 << 18].split(b"\n")[:-1]
        while lines and not lines[0].startswith(b"[20"):
            lines.pop(0)
        written = b"\n".join(lines) + b"\n"
        records = [record for record in records_of(written) if record.message]
        assert Rendering().render(("broker-1", record) for record in records[:-1]) in written


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("yyyy-MM-dd HH:mm:ss,SSS", "2026-11-20 15:33:21,101"),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2026-11-20T15:33:21.101Z"),
        ("dd/MMM/yyyy:HH:mm:ss Z", "20/Nov/2026:15:33:21 +0000"),
        ("MMM dd, yyyy h:mm:ss a", "Nov 20, 2026 3:33:21 PM"),
        ("UNIX_MILLIS", "1795188801101"),
    ],
)
def test_times_are_written_as_java_writes_them(form: str, text: str) -> None:
    assert stamp(1795188801101_000, form) == text


def test_all_brokers_stand_in_one_file_in_the_order_of_their_times(tmp_path: Path) -> None:
    render_folder(SLICE, tmp_path, Rendering("kafka-seconds", ("compose-colours",), SECOND_US), in_one_file=True)
    lines = (tmp_path / "console.log").read_bytes().split(b"\n")
    starts = [line.partition(b" [20")[2] for line in lines if b"|\x1b[0m [20" in line]
    assert len({line[:20].strip() for line in lines[1:-1]}) == 3
    assert [start[:17] for start in starts] == sorted(start[:17] for start in starts)
    assert all(start[17:18] == b"]" for start in starts)
