"""meta.properties and partition.metadata."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.data_dir.properties import find_identity, read_meta_properties, read_partition_metadata
from highwater.pipelines.data_dir.text import CheckpointEntry

KRAFT = (
    b"#\n#Fri Nov 20 15:29:33 UTC 2026\nnode.id=1\ndirectory.id=sCTtQZd784vC0epHvaOZNg\nversion=1\n"
    b"cluster.id=yzKbogKtRRGOtdkZZhlFlg\n"
)
METADATA = b"version: 0\ntopic_id: 9Za0zO_TSsWU_Yh-8h27Jw"


def meta(content: bytes) -> list[CheckpointEntry]:
    return list(read_meta_properties([content]))


def problems(entries: list[CheckpointEntry]) -> list[str]:
    return [entry.place() for entry in entries if entry.problem]


def test_kraft() -> None:
    read = meta(KRAFT)
    assert [(entry.line_no, entry.byte_offset, entry.key, entry.value) for entry in read] == [
        (3, 32, "node.id", "1"),
        (4, 42, "directory.id", "sCTtQZd784vC0epHvaOZNg"),
        (5, 78, "version", "1"),
        (6, 88, "cluster.id", "yzKbogKtRRGOtdkZZhlFlg"),
    ]
    assert problems(read) == []
    assert find_identity(read) == (1, "yzKbogKtRRGOtdkZZhlFlg")


def test_the_first_ones_had_no_cluster() -> None:
    read = meta(b"#\nbroker.id=4\nversion=0\n")
    assert (problems(read), find_identity(read)) == ([], (4, None))


def test_torn_at_any_byte() -> None:
    for length in range(len(KRAFT)):
        assert problems(meta(KRAFT[:length])), KRAFT[:length]
    for length in range(len(METADATA)):
        assert problems(list(read_partition_metadata([METADATA[:length]]))), METADATA[:length]
    assert problems(list(read_partition_metadata([METADATA]))) == []
    assert problems(list(read_partition_metadata([METADATA + b"\n"]))) == []


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"broker.id=x\nversion=0\n", "line 1 (byte 0): broker.id is no number from 0: 'x'"),
        (b"broker.id=-1\nversion=0\n", "line 1 (byte 0): broker.id is no number from 0: '-1'"),
        (b"broker.id=1\nversion=2\n", "line 2 (byte 12): version 2 is not known, 0 and 1 are"),
        (b"broker.id=1\nbroker.id=1\nversion=0\n", "line 2 (byte 12): broker.id is there twice, first in line 1"),
        (b"broker.id=1\n", "line 2 (byte 12): version is missing"),
        (b"node.id=1\nversion=1\n", "line 3 (byte 20): cluster.id is missing"),
        (b"version=0\n", "line 2 (byte 10): broker.id is missing"),
        (b"broker.id=1\nversion=0\ndirectory.id=a\n", "line 3 (byte 22): directory.id is no id: 'a'"),
    ],
)
def test_faults(content: bytes, problem: str) -> None:
    assert problems(meta(content)) == [problem]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"version: 0\nversion: 0\ntopic_id: 9Za0zO_TSsWU_Yh-8h27Jw", "line 2 (byte 11): version is there twice"),
        (b"version: 5\ntopic_id: 9Za0zO_TSsWU_Yh-8h27Jw", "line 1 (byte 0): version 5 is not known, 0 is"),
        (
            b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
            "line 2 (byte 11): topic_id is no id: 'AAAAAAAAAAAAAAAAAAAAAA'",
        ),
        (b"version: 0\nnonsense", "line 2 (byte 11): has no colon"),
    ],
)
def test_faults_of_partition_metadata(content: bytes, problem: str) -> None:
    assert problems(list(read_partition_metadata([content])))[0] == problem


@given(st.dictionaries(st.text("ab:= \\.#!", min_size=1), st.text("xy:= \\\t\n")))
def test_escapes_round_trip(written: dict[str, str]) -> None:
    def escaped(text: str) -> str:
        special = {"\t": "\\t", "\n": "\\n"}
        return "".join(special.get(c, f"\\{c}" if c in ":= \\#!" else c) for c in text)

    content = "".join(f"{escaped(key)}={escaped(value)}\n" for key, value in written.items())
    assert {entry.key: entry.value for entry in meta(content.encode()) if entry.key} == written


def test_a_property_over_two_lines() -> None:
    assert [(entry.key, entry.value) for entry in meta(b"broker.id \\\n   : 7\nversion 0\n")] == [
        ("broker.id", "7"),
        ("version", "0"),
    ]
