"""Logs as people post them, in ../shared/wild: read as their ``expected.md`` says, up to the facts of each record."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from highwater.pipelines.bronze.streams import source_of
from tests.reading import ReadFolder, read_folder, reasons

WILD = Path(__file__).parents[4] / "shared" / "wild"
pytestmark = pytest.mark.skipif(not WILD.is_dir(), reason="needs ../shared/wild")

#: Cases whose records are those of 37, in Kafka's own layout, and what they are written in.
_COMPOSE = "frame %X{source} | %m => [%d] %p %m (%c)"
SAME = {
    "04-docker-desktop-prefix": "frame %d %m => [%d] %p %m (%c)",
    "06-compose-colours-all-brokers": f"colours => {_COMPOSE}",
    "07-stern-all-pods": "frame %X{source} %X %m => [%d] %p %m (%c)",
    "08-simple-class-line-no-thread": "%d %-5p %c{1}:%L - %m",
    "10-compose-all-brokers-one-file": _COMPOSE,
    "21-docker-json-without-newline": 'json {"text":"log","stream":"stream"} => [%d] %p %m (%c)',
    "34-compose-up-after-pull": "frame %X | %m => [%d] %p %m (%c)",
}
STRIMZI_4 = "%d{yyyy-MM-dd HH:mm:ss} %-5p [%t] %c{1}:%L - %m"
#: Records, and how many of them are not understood; what those are, expected.md says.
RECORDS = {
    "01-strimzi4-short-logger": (957, 0),
    "02-bracketed-everything": (22, 0),
    "13-power-loss-leader-behind-followers": (41, 0),
    "14-log-truncation-not-allowed": (19, 0),
    "16-last-replica-controlled-shutdown": (43, 1),
    "18-new-leader-without-high-watermark": (23, 0),
    "20-msk-s3-objects": (201, 0),
    "23-wiped-volumes-two-clusters-one-file": (36, 0),
    "26-kraft-331-controller-renounces": (22, 0),
    "27-zk-kraft-migration-stuck": (13, 0),
    "28-cp-image-disk-full": (12, 0),
    "29-embedded-windows-crlf": (8, 0),
    "36-two-clusters-no-ids-in-lines": (10, 0),
}


@cache
def read(case: str) -> ReadFolder:
    return read_folder(WILD / case / "input")


def facts(folder: ReadFolder) -> Counter[tuple[object, ...]]:
    return Counter(
        (record.broker_id, record.time_us, record.level, record.parsed.template, repr(record.parsed.facts))
        for record in folder.records
        if record.time_us is not None
    )


@pytest.mark.parametrize("case", SAME)
def test_records_in_another_form_say_what_they_say_in_kafkas(case: str) -> None:
    found, plain = read(case), read("37-unclean-loss-default-levels")
    assert {file.layout for file in found.files.values()} == {SAME[case]}
    assert facts(found) == facts(plain)
    assert found.brokers == plain.brokers == dict.fromkeys((1, 2, 3), ("2.8.2", "zookeeper"))
    assert reasons(found.records) == Counter()


@pytest.mark.parametrize("case", RECORDS)
def test_all_that_is_a_record_of_kafka_is_understood(case: str) -> None:
    found = read(case)
    assert (len(found.records), reasons(found.records).total()) == RECORDS[case]
    assert [path for path, file in found.files.items() if file.layout is None] == []


def test_strimzi_on_kafka_4() -> None:
    found = read("01-strimzi4-short-logger")
    assert {file.layout for file in found.files.values()} == {STRIMZI_4}
    assert found.brokers == dict.fromkeys(range(1, 7), ("4.0.0", "kraft"))


@pytest.mark.parametrize(
    "case", ["06-compose-colours-all-brokers", "07-stern-all-pods", "10-compose-all-brokers-one-file"]
)
def test_each_source_of_a_mixed_file_is_a_broker(case: str) -> None:
    brokers = {
        source_of(path): identity.broker_id
        for path, identity in read(case).identities.items()
        if source_of(path) != "other"
    }
    assert sorted(brokers.values(), key=str) == [1, 2, 3]
    assert "" not in brokers


def test_lines_of_other_programs_are_shown_as_what_they_are() -> None:
    def foreign(case: str) -> set[str]:
        return {one.parsed.template for one in read(case).records if one.problem and one.problem.startswith("foreign")}

    assert foreign("34-compose-up-after-pull") == {"foreign.compose"}
    assert foreign("28-cp-image-disk-full") == {"foreign.start_script"}
    assert foreign("10-compose-all-brokers-one-file") == {"foreign.compose", "foreign.stream"}


def test_a_date_that_is_missing_is_named() -> None:
    problems = [file.problem or "" for file in read("09-time-of-day-only").files.values()]
    assert len(problems) == 3
    assert all("its times have no date" in problem for problem in problems)


def test_pasted_lines_are_read_and_prose_is_not() -> None:
    found = read("30-forum-paste")
    assert {file.layout for file in found.files.values()} == {
        f"{step} => [%d] %p %m (%c)" for step in ("frame     %m", "frame > %m", "columns 80")
    }
    by_file = Counter(record.path for record in found.records if record.time_us is not None)
    assert set(by_file.values()) == {40}
    # A greeting, a question and the head of a mail. The two fences are lines of another program.
    assert reasons(found.records).total() == 3
    assert len({repr(sorted(map(str, facts_of_file(found, path)))) for path in by_file}) == 1


def facts_of_file(folder: ReadFolder, path: str) -> list[tuple[int, str]]:
    return [(one.time_us, repr(one.parsed)) for one in folder.records if one.path == path and one.time_us is not None]
