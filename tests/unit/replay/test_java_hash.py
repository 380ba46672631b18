"""Partitions of groups and transactional ids, against what coordinators of real clusters print."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from highwater.pipelines.replay.java_hash import absolute, hash_code, partition_of

CORPORA = Path(__file__).parents[4] / "shared" / "corpora"
_GROUP = re.compile(r"GroupCoordinator[^]]*\]: .*group (\S+) .*\(__consumer_offsets-(\d+)\)")
#: offsets.topic.num.partitions, as the brokers' configuration says.
PARTITIONS = {"kraft37-disk": 4, "kraft39-faults": 4, "m-1.0.2": 3, "m-3.6.2": 3, "net39": 4, "zk25-rolls": 4}


@pytest.mark.parametrize(
    ("key", "partitions", "expected"),
    [
        # -1301112579: its sign bit masked it would be partition 1.
        ("g-rd-2", 4, 3),
        ("g-rd-1", 4, 0),
        ("g1", 4, 2),
        ("", 50, 0),
        # The hash is the least integer, which has no absolute value.
        ("polygenelubricants", 50, 0),
    ],
)
def test_the_partition_is_that_of_the_absolute_hash(key: str, partitions: int, expected: int):
    assert partition_of(key, partitions) == expected


def test_the_least_integer_counts_as_zero():
    assert hash_code("polygenelubricants") == -(2**31)
    assert absolute(-(2**31)) == 0
    with pytest.raises(ValueError, match="0 partitions"):
        partition_of("g", 0)


@pytest.mark.corpora
@pytest.mark.skipif(not CORPORA.is_dir(), reason="the large corpora are not beside this checkout")
@pytest.mark.parametrize("corpus", PARTITIONS)
def test_coordinators_name_the_partition_of_each_group(corpus: str):
    told = set()
    for path in sorted((CORPORA / corpus).glob("broker-*/logs/server*.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            told |= {match.groups() for line in lines if (match := _GROUP.search(line))}
    assert told
    assert {(group, int(partition)) for group, partition in told} == {
        (group, partition_of(group, PARTITIONS[corpus])) for group, _ in told
    }
