"""Data directories of real brokers: all is read, and the metadata log tells what brokers say of their leaderships."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from highwater.pipelines.bronze.data_dir_reader import entries
from highwater.pipelines.bronze.source import Source
from highwater.pipelines.data_dir.discover import DataFile, discover_data
from highwater.pipelines.data_dir.metadata_log import LOG, MetadataChange, MetadataLog
from highwater.pipelines.data_dir.segments import SegmentBatch, SegmentReader

CORPORA = Path(__file__).parents[4] / "shared" / "corpora"

pytestmark = [
    pytest.mark.corpora,
    pytest.mark.skipif(not CORPORA.is_dir(), reason="the large corpora are not beside this checkout"),
]

LEADER = re.compile(
    r"\[Broker id=(\d+)\] Leader (\S+)-(\d+) with topic id Some\((\S+)\) starts at leader epoch (\d+) from offset \d+ "
    r"with partition epoch (\d+), high watermark -?\d+, ISR \[([\d,]*)\], adding replicas \[([\d,]*)\] "
    r"and removing replicas \[([\d,]*)\]"
)
FOLLOWER = re.compile(
    r"Follower (\S+)-(\d+) starts at leader epoch (\d+) from offset \d+ with partition epoch (\d+) "
    r"and high watermark -?\d+\. Current leader is (-?\d+)"
)


def files(corpus: str, *kinds: str) -> list[DataFile]:
    return [file for file in discover_data([CORPORA / corpus]) if not kinds or file.kind in kinds]


def history(file: DataFile) -> list[MetadataChange]:
    log = MetadataLog([file])
    with open(file.path, "rb") as opened:
        reader = SegmentReader(Source(opened).blocks(), with_records=True)
        found = list(log.read(file, reader))
    assert (reader.problem, log.problems) == (None, [])
    return found


def batches(file: DataFile) -> list[SegmentBatch]:
    with open(file.path, "rb") as opened:
        reader = SegmentReader(Source(opened).blocks())
        found = list(reader.batches())
    assert reader.problem is None
    return found


def lines(corpus: str) -> Iterator[str]:
    for path in sorted((CORPORA / corpus).glob("broker-*/logs/state-change.log*.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as log:
            yield from log


def ints(text: str) -> frozenset[int]:
    # Scala prints a set of five or more in an order of its own.
    return frozenset(int(number) for number in text.split(",") if number)


@pytest.mark.parametrize(
    ("corpus", "leaders", "followers"),
    [("kraft39-faults", 72, 217), ("kraft43-faults", 75, 219), ("kraft43-ops", 37, 141)],
)
def test_brokers_log_what_the_metadata_log_says(corpus: str, leaders: int, followers: int) -> None:
    copies = [history(file) for file in files(corpus, "metadata-segment")]
    longest = max(copies, key=len)
    assert all(longest[: len(copy)] == copy for copy in copies)
    assert not any(step.change.problem for step in longest)
    states, led = set(), set()
    for change, now in ((step.change, step.change.registration) for step in longest if step.source == LOG):
        if now is None:
            continue
        sets = tuple(map(frozenset, (now.isr, now.adding_replicas, now.removing_replicas)))
        epochs = (now.leader_epoch, now.partition_epoch)
        states.add((change.topic, change.partition, change.topic_id, now.leader, *epochs, *sets))
        led.add((change.topic, change.partition, now.leader, *epochs))
    seen = [0, 0]
    for line in lines(corpus):
        if match := LEADER.search(line):
            broker, topic, number, topic_id, epoch, partition_epoch, *sets = match.groups()
            told = (topic, int(number), topic_id, int(broker), int(epoch), int(partition_epoch), *map(ints, sets))
            assert told in states, line
            seen[0] += 1
        elif match := FOLLOWER.search(line):
            topic, number, epoch, partition_epoch, leader = match.groups()
            assert (topic, int(number), int(leader), int(epoch), int(partition_epoch)) in led, line
            seen[1] += 1
    assert seen == [leaders, followers]


@pytest.mark.parametrize(
    ("corpus", "found"),
    [("kip101", 709), ("unclean28", 4073)],
)
def test_segments_of_replicas_are_equal(corpus: str, found: int) -> None:
    by_partition: dict[tuple, set] = {}
    for file in files(corpus, "log-segment"):
        read = batches(file)
        assert all(batch.crc_ok and batch.problem is None for batch in read)
        by_partition.setdefault((file.topic, file.partition), set()).add(tuple(read))
    assert all(len(replicas) == 1 for replicas in by_partition.values())
    assert sum(len(replica) for replicas in by_partition.values() for replica in replicas) == found


@pytest.mark.parametrize("corpus", sorted(path.name for path in CORPORA.glob("*/") if path.is_dir()))
def test_checkpoints_are_whole(corpus: str) -> None:
    found = [file for file in files(corpus) if "segment" not in file.kind and "snapshot" not in file.kind]
    assert found
    for file in found:
        with open(file.path, "rb") as opened:
            read = list(entries(file.kind, Source(opened).blocks()))
        assert [entry.place() for entry in read if entry.problem] == [], file.path
