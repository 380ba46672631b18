"""Files in which lines of several sources are mixed: each source is a file of its own."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from highwater.pipelines.bronze.passes import HowRead, Unread, profiles
from highwater.pipelines.bronze.register import file_row, identify, of_sources
from highwater.pipelines.bronze.streams import id_of, label, path_of, source_of
from highwater.pipelines.bronze.wrappers.remarks import program_of
from tests.reading import read_folder
from tests.renderings import NAMES_STREAMS, Rendering, Written

HOW = HowRead("UTC", 1 << 20, (), ())
DAY_US = 1_795_188_801_000_000


def started(broker: int, number: int) -> Written:
    text = (f"[KafkaServer id={broker}] started", f"Kafka version: 2.8.{broker}")[number % 2]
    logger = ("kafka.server.KafkaServer", "org.apache.kafka.common.utils.AppInfoParser")[number % 2]
    return Written(DAY_US + number * 1000, "INFO", logger, text, "\n\tat a.b(C.java:1)" if number % 3 == 0 else "")


def mixed(wrapper: str) -> bytes:
    lines = [(f"kafka-{number % 3 + 1}", started(number % 3 + 1, number)) for number in range(30)]
    return Rendering("kafka", (wrapper,)).render(lines)


@pytest.mark.parametrize("wrapper", sorted(NAMES_STREAMS))
def test_each_source_is_told_by_itself_whose_it_is(wrapper: str, tmp_path: Path) -> None:
    (tmp_path / "console.log").write_bytes(mixed(wrapper))
    found = read_folder(tmp_path)
    told = {source_of(path): one.broker_id for path, one in found.identities.items()}
    told.pop("other", None)
    assert sorted(told.values()) == [1, 2, 3]
    assert "" not in told
    of_brokers = Counter(record.broker_id for record in found.records if record.time_us is not None)
    assert of_brokers == {1: 10, 2: 10, 3: 10}
    assert all("id=" not in one.message or f"id={one.broker_id}]" in one.message for one in found.records)


def test_lines_of_a_file_with_one_source_stay_one_file(tmp_path: Path) -> None:
    file = tmp_path / "kafka.log"
    file.write_bytes(Rendering("kafka", ("compose-colours",)).render(("kafka-1", started(1, n)) for n in range(4)))
    assert list(read_folder(tmp_path).files) == [str(file)]


def test_other_programs_are_one_file_and_cost_nothing_if_they_are_known(tmp_path: Path) -> None:
    other = b"postgres-1     | 2026-11-20 15:33:21.101 UTC [1] LOG:  database system is ready\nnobody knows this line\n"
    (tmp_path / "up.log").write_bytes(mixed("compose-colours") + other * 2)
    found = read_folder(tmp_path)
    (rest,) = [path for path in found.files if source_of(path) == "other"]
    problems = Counter(record.problem for record in found.records if record.path == rest)
    assert problems == {"foreign.compose": 1, "foreign.stream": 2, "layout": 2}
    assert found.identities[rest].problem is None


def test_a_known_file_is_known_source_by_source(tmp_path: Path) -> None:
    file = tmp_path / "console.log"
    file.write_bytes(mixed("stern"))
    items = list(profiles(str(file), frozenset(), {}, HOW))
    identities, _ = identify(items, [], [])
    register = [file_row(item, identities[item.path], "run") for item in items]
    assert len({row["file_id"] for row in register}) == len({row["path"] for row in register}) == 3
    (sha,) = {row["sha256"] for row in register}
    (known,) = profiles(str(file), frozenset([sha]), {}, HOW)
    assert isinstance(known, Unread)
    again = list(of_sources([known], register))
    assert [item.path for item in again] == sorted(row["path"] for row in register)
    assert list(of_sources(again, register)) == again
    assert {row["file_id"] for row in register} == {id_of(sha[:32], source_of(item.path)) for item in again}


def test_what_has_come_since_is_read_of_each_source(tmp_path: Path) -> None:
    file = tmp_path / "console.log"
    file.write_bytes(mixed("stern"))
    before = list(profiles(str(file), frozenset(), {}, HOW))
    file.write_bytes(mixed("stern") * 2)
    marks = {str(tmp_path): [(before[0].content_bytes, before[0].sha256[:32])]}
    after = list(profiles(str(file), frozenset(), marks, HOW))
    assert {item.start_offset for item in after} == {before[0].content_bytes}
    assert {item.path for item in after} == {item.path for item in before}


@pytest.mark.parametrize(
    ("source", "name"), [(b"a/b#c", "a:b:c"), (b"7", "stream 7"), (b"", "stream "), (b"other", "stream other")]
)
def test_a_label_is_no_folder_and_no_number(source: bytes, name: str) -> None:
    assert label(source) == name
    assert source_of(path_of("/l/x.log", name)) == name


@pytest.mark.parametrize(
    "line", ["[2026-11-20 15:33:21,101] INFO x (kafka.server.KafkaServer)", "\tat a.b(C.java:1)", "broker.id = 1", ""]
)
def test_what_kafka_writes_is_no_other_programs_line(line: str) -> None:
    assert program_of(line) is None
