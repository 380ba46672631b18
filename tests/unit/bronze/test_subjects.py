"""Names and numbers of sources whose broker is unknown."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.bronze.subjects import is_subject, subjects, with_names

SECOND_US = 1_000_000


def file(path: str, broker: int | None = None, seconds: tuple[int, int] = (0, 60), **values: Any) -> dict[str, Any]:
    first_us, last_us = (second * SECOND_US for second in seconds)
    row = {"file_id": path, "path": path, "cluster_id": "c", "kind": "server", "layout": "[%d] %p %m (%c)"}
    return row | {"broker_id": broker, "broker_ids": None, "first_time": first_us, "last_time": last_us} | values


def names(*rows: dict[str, Any]) -> list[str | None]:
    found = subjects(rows)
    return [found[row["file_id"]].name if row["file_id"] in found else None for row in rows]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/l/docker-compose.log#kafka_1", "kafka_1"),
        ("/l/kafka-0.log", "kafka-0"),
        ("/l/my-cluster-kafka-2.log.gz", "my-cluster-kafka-2"),
        ("/l/kafka2.txt", "kafka2"),
        ("/l/export.json", "export"),
        ("/l/docker.log.1", "docker"),
        ("/l/kfk03.example.com.log", "kfk03.example.com"),
        ("/l/broker-a/server.log", "broker-a"),
        ("/l/broker-a/kafkaServer.out", "broker-a"),
        ("/l/broker-a/server.log.2026-11-20-14.gz", "broker-a"),
        ("/l/east-server.log", "east"),
        ("/l/Server (3).log", "l"),
        ("/l/logs.tgz!/b1/server.log", "b1"),
        ("/l/logs.tgz!/server.log", "logs.tgz"),
        ("/l/no-extension", "no-extension"),
    ],
)
def test_a_source_is_named_by_its_stream_its_file_or_its_folder(path: str, name: str) -> None:
    assert names(file(path)) == [name]


def test_known_brokers_other_programs_and_shared_files_are_no_subjects() -> None:
    rows = [
        file("/a/server.log", 1),
        file("/b/zookeeper.log", kind="other"),
        file("/c/x.log", layout=None),
        file("/d/y.log", broker_ids=[1, 2]),
    ]
    assert subjects(rows) == {}


def test_logs_of_one_process_are_one_subject() -> None:
    rows = [
        file("/l/b/server.log", seconds=(60, 120)),
        file("/l/b/server.log.1", seconds=(0, 60)),
        file("/l/b/controller.log", kind="controller"),
        file("/l/b/state-change.log", kind="state-change"),
    ]
    assert len({subject.subject_id for subject in subjects(rows).values()}) == 1
    assert names(*rows) == ["b"] * 4


def test_logs_of_one_kind_at_one_time_are_of_several_processes() -> None:
    rows = [file("/l/server.log"), file("/l/Server (3).log")]
    assert len({subject.subject_id for subject in subjects(rows).values()}) == 2
    assert names(*rows) == ["server.log", "Server (3).log"]


def test_equal_names_are_told_apart_by_their_folders() -> None:
    rows = [file("/l/east/kafka/server.log"), file("/l/west/kafka/server.log"), file("/l/east/kafka-0.log")]
    assert names(*rows) == ["east/kafka", "west/kafka", "kafka-0"]
    assert names(file("/l/e/x.log#kafka_1"), file("/l/w/x.log#kafka_1")) == ["e/kafka_1", "w/kafka_1"]


@given(st.lists(st.text("ab/.-_#1(", min_size=1, max_size=9), min_size=1, max_size=6, unique=True))
def test_numbers_are_no_broker_ids_and_depend_on_places_alone(parts: list[str]) -> None:
    rows = [file(f"/{part}") for part in parts]
    together = subjects(rows)
    for subject in together.values():
        assert is_subject(subject.subject_id)
        assert subject.subject_id >= -(2**31)
        assert with_names(f"Broker {subject.subject_id} died", {subject.subject_id: "x"}) == "x died"
    for row in rows:
        (alone,) = subjects([row]).values()
        if together[row["file_id"]].name == alone.name:
            assert together[row["file_id"]].subject_id == alone.subject_id


def test_texts_have_names_in_place_of_numbers() -> None:
    named = {-1234567890: "kafka_1", -1987654321: "kafka_2"}
    assert with_names("Broker -1234567890 died.", named) == "kafka_1 died."
    text = "Look at brokers -1234567890 and 3, and at broker -1987654321: offset -1, -1234567891."
    assert with_names(text, named) == "Look at brokers kafka_1 and 3, and at kafka_2: offset -1, -1234567891."
    assert not is_subject(-1)
    assert not is_subject(2**31 - 1)
