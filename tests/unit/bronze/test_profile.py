"""Profiles and rows of whole files: they are two passes over one file and have to agree."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.bronze.ingest import balance
from highwater.pipelines.bronze.layouts.patterns import KAFKA
from highwater.pipelines.bronze.profile import EXPECTED_LINES, Profile
from highwater.pipelines.bronze.rows import FileChangedError, FileSpan, rows
from highwater.pipelines.bronze.wrappers.order import ORDERS
from highwater.pipelines.kafka.raw_record import FOREIGN
from highwater.schemas.bronze import LOG_LINES
from tests.examples import examples
from tests.reading import profiled

CLUSTER = "W-CQybfSRP-OafW0EWRB0Q"
SERVER = (
    b"[2026-11-20 15:33:21,101] INFO [KafkaServer id=1] starting (kafka.server.KafkaServer)\n"
    b"[2026-11-20 15:33:23,394] INFO Cluster ID = W-CQybfSRP-OafW0EWRB0Q (kafka.server.KafkaServer)\n"
    b"[2026-11-20 15:33:25,226] INFO Kafka version: 3.9.1 (org.apache.kafka.common.utils.AppInfoParser)\n"
    b"[2026-11-20 15:33:26,000] WARN [ReplicaManager broker=1] bad (kafka.server.ReplicaManager)\n"
    b"java.io.IOException: x\n\tat a.B(C.scala:114)\n"
    b"[2026-11-20 15:33:27,000] INFO [Partition t-0 broker=1] Shrinking ISR from 1,2 to 1 (kafka.cluster.Partition)\n"
)


def made(path: Path, content: bytes) -> Profile:
    path.write_bytes(content)
    (found,) = profiled(str(path), "UTC", 1 << 20)
    return found


def read(found: Profile) -> list[dict]:
    reading = FileSpan(found, CLUSTER, 1)
    batches = list(rows([reading], "UTC", 1 << 20))
    assert all(batch.schema.equals(LOG_LINES.arrow_schema) for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()]


def test_profile_and_rows_of_a_server_log(tmp_path: Path) -> None:
    found = made(tmp_path / "server.log", SERVER)
    assert (found.kind, found.layout, found.line_count, found.record_count) == ("server", KAFKA, 7, 5)
    assert (found.first_us, found.last_us) == (1795188801101000, 1795188807000000)
    assert (set(found.hints.brokers), set(found.hints.clusters), found.hints.versions) == ({1}, {CLUSTER}, ["3.9.1"])
    assert (found.problem, found.readable) == (None, True)
    stored = read(found)
    assert [row["line_no"] for row in stored] == [1, 2, 3, 4, 7]
    assert [row["line_count"] for row in stored] == [1, 1, 1, 3, 1]
    assert stored[3]["message"] == "[ReplicaManager broker=1] bad\njava.io.IOException: x\n\tat a.B(C.scala:114)"
    assert stored[3]["time"].isoformat() == "2026-11-20T15:33:26+00:00"
    assert all(SERVER[row["byte_offset"] :].startswith(b"[2026") for row in stored)
    assert {row["problem"] for row in stored} == {None}


def test_what_tells_who_wrote_it_is_found_far_into_the_file(tmp_path: Path) -> None:
    filler = b"[2026-11-20 15:33:20,000] TRACE nothing to see (kafka.server.X)\n"
    config = b"[2026-11-20 15:33:24,894] INFO KafkaConfig values: \n\tbroker.id = 7\n (kafka.server.KafkaConfig)\n"
    for before in (40_000, 49_150, 60_000):
        found = made(tmp_path / "server.log", filler * before + config + filler * 40_000)
        assert set(found.hints.brokers) == {7}
        assert found.record_count == before + 40_001


@pytest.mark.parametrize(
    ("name", "content", "kind", "problem", "readable"),
    [
        ("server.log", b"", "server", "empty file", False),
        ("server.log.gz", gzip.compress(b""), "server", "empty file", False),
        ("server.log", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9, "other", "not text: control characters", False),
        ("server.log", bytes(5000), "other", "not text: control characters", False),
        ("server.log.gz", gzip.compress(SERVER)[:150], "server", "truncated gzip after", True),
        (
            "x.log",
            b"\nNov 20 15:29:54 host kafka: \x1b[31mhello" + b"o" * 200 + b"\n",
            "other",
            'no known log layout: it begins with "Nov 20 15:29:54 host kafka: \\x1b[31mhelloooo',
            True,
        ),
    ],
)
def test_bad_files(tmp_path: Path, name: str, content: bytes, kind: str, problem: str, readable: bool) -> None:
    found = made(tmp_path / name, content)
    assert (found.kind, found.readable) == (kind, readable)
    assert (found.problem or "").startswith(problem)
    if readable:
        stored = read(found)
        assert len(stored) == found.record_count
        assert stored[-1]["problem"] in ("half_line", "layout")
        assert "\n".join(row["message"] for row in stored)


def test_bytes_that_are_no_utf_8(tmp_path: Path) -> None:
    found = made(tmp_path / "server.log", SERVER + SERVER.replace(b"bad", b"\xff\xfe"))
    assert read(found)[8]["message"].startswith("[ReplicaManager broker=1] \xff\xfe\n")


def test_a_log_that_was_read_while_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    cut = SERVER.rindex(b"Shrinking")
    before = made(path, SERVER[:cut])
    assert read(before)[-1]["problem"] == "half_line"
    path.write_bytes(SERVER + SERVER)
    (after,) = profiled(str(path), "UTC", 1 << 20, [(before.content_bytes, before.content_id)])
    assert (after.start_line, after.start_offset) == (7, SERVER.rindex(b"\n", 0, cut) + 1)
    whole = [row["message"] for row in read(made(path, SERVER + SERVER))]
    assert [row["message"] for row in read(before)[:-1]] + [row["message"] for row in read(after)] == whole
    assert len({row["byte_offset"] for row in read(after)}) == len(whole) - 4


def test_growth_after_the_profile_is_left_for_the_next_run(tmp_path: Path) -> None:
    found = made(tmp_path / "server.log", SERVER)
    with (tmp_path / "server.log").open("ab") as file:
        file.write(SERVER)
    assert len(read(found)) == 5


def test_a_file_that_is_another_one_by_now_fails(tmp_path: Path) -> None:
    found = made(tmp_path / "server.log", SERVER)
    (tmp_path / "server.log").write_bytes(SERVER.replace(b"broker=1", b"broker=2"))
    with pytest.raises(FileChangedError, match="server"):
        read(found)
    (tmp_path / "server.log").unlink()
    with pytest.raises(FileChangedError, match="server"):
        read(found)


@examples(150)
@given(content=st.lists(st.one_of(st.binary(max_size=60), st.sampled_from([SERVER, b"\tat x\n", b"\0\0"])), max_size=6))
def test_any_bytes_are_profiled_and_read(tmp_path_factory: pytest.TempPathFactory, content: list[bytes]) -> None:
    found = made(tmp_path_factory.getbasetemp() / "any.log", b"".join(content))
    if found.readable:
        stored = read(found)
        assert len(stored) == found.record_count
        assert sum(row["line_count"] for row in stored) == found.line_count
        places = "byte_offset" if (found.layout or "").startswith(ORDERS) else "line_no"
        stored = [row for row in stored if not (row["problem"] or "").startswith(FOREIGN)]  # they do not wait
        assert [row[places] for row in stored] == sorted({row[places] for row in stored})


@given(st.lists(st.integers(0, 1 << 32), max_size=50), st.integers(1, 8))
def test_balance_plans_everything_once_and_the_largest_first(sizes: list[int], parallelism: int) -> None:
    plan = balance(list(enumerate(sizes)), parallelism)
    assert sorted(number for task in plan for number in task) == list(range(len(sizes)))
    assert all(plan)
    totals = [sum(sizes[number] + 4096 for number in task) for task in plan]
    assert totals == sorted(totals, reverse=True)


def test_a_text_without_records_names_the_error_that_it_shows(tmp_path: Path) -> None:
    thrown = (
        b"java.lang.UnsupportedClassVersionError: kafka/Kafka has been compiled by a more recent version of the Java "
    )
    text = b'kafka-1  | \nkafka-1  | Exception in thread "main" ' + thrown + b"Runtime (class file version 61.0)\n"
    problem = made(tmp_path / "compose.log", text).problem or ""
    assert "and shows UnsupportedClassVersionError: kafka/Kafka" in problem
    assert "Java 17" in problem
    other = made(tmp_path / "other.log", b"kafka-1  | \nkafka-1  | Exception in thread main a.b.OddError: no\n").problem
    assert "and shows" not in (other or "")


def test_kafkas_share_of_a_file_is_told(tmp_path: Path) -> None:
    foreign = b"[2026-11-20 15:33:21,101] INFO started (com.example.Main)\n" * 8
    assert made(tmp_path / "server.log", SERVER).kafka_records == 5
    assert made(tmp_path / "mixed.log", SERVER * 2 + foreign).kafka_records == 10
    app = made(tmp_path / "app.log", foreign)
    assert app.kafka_records == 0
    assert app.problem == (
        "nothing of it is Kafka's (layout [%d] %p %m (%c)): it begins with \"[2026-11-20 15:33:21,101] INFO started "
        f'(com.example.Main)"; {EXPECTED_LINES}'
    )
    shown = (made(tmp_path / "y.log", b"\n" + b"\xff" + b"y" * 300).problem or "").split("; ")[0]
    assert shown == 'no known log layout: it begins with "\\xff' + "y" * 96 + '…"'
    assert made(tmp_path / "x.log", b"hello\n" * 9).kafka_records == 0
    long = b"[2026-11-20 15:33:21,101] INFO " + b"x" * (2 << 20) + b" (kafka.server.X)\n"
    found = made(tmp_path / "long.log", long)
    assert (found.kafka_records, found.problem) == (1, None)


def test_a_record_of_another_time_is_kept_whole_and_has_none(tmp_path: Path) -> None:
    dead, ahead, late = b"[1970-01-01 00:00:07,1", b"[2027-01-02 03:04:05,1", b"[9999-12-31 23:59:59,9"
    line = b"[2026-11-20 15:33:27,0%02d] INFO number %d (kafka.server.X)\n"
    lines = [line % (number, number) for number in range(60)]
    rest = b"00] INFO odd (kafka.server.X)\n"
    content = [dead + rest, *lines[:30], ahead + rest, *lines[30:], late + rest]
    found = made(tmp_path / "server.log", b"".join(content))
    assert (found.first_us, found.last_us) == (1795188807000000, 1795188807059000)
    stored = read(found)
    assert len(stored) == found.record_count == 63
    odd = [row for row in stored if row["problem"] is not None]
    assert [(row["problem"], row["time"], row["message"].encode()) for row in odd] == [
        ("time_out_of_range", None, text.rstrip(b"\n")) for text in (dead + rest, ahead + rest, late + rest)
    ]
