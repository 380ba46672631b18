"""Checkpoint files: what is written is read, and whatever is not so is said with its place."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.data_dir.checkpoints import read_leader_epoch_checkpoint, read_offset_checkpoint
from highwater.pipelines.data_dir.text import CheckpointEntry

TOPIC = st.text(string.ascii_letters + string.digits + "_-", min_size=1, max_size=20)
OFFSETS = st.dictionaries(st.tuples(TOPIC, st.integers(0, 10**6)), st.integers(0, 2**63 - 1), max_size=8)


def offsets_file(offsets: dict[tuple[str, int], int]) -> bytes:
    lines = ["0", str(len(offsets)), *(f"{topic} {number} {offset}" for (topic, number), offset in offsets.items())]
    return "".join(f"{line}\n" for line in lines).encode()


def offsets(content: bytes) -> list[CheckpointEntry]:
    return list(read_offset_checkpoint([content]))


def epochs(content: bytes) -> list[CheckpointEntry]:
    return list(read_leader_epoch_checkpoint([content]))


def problems(entries: list[CheckpointEntry]) -> list[str]:
    return [entry.place() for entry in entries if entry.problem]


@given(OFFSETS)
def test_offsets_round_trip(written: dict[tuple[str, int], int]) -> None:
    content = offsets_file(written)
    read = offsets(content)
    assert {(entry.topic, entry.partition): entry.offset for entry in read} == written
    assert problems(read) == []
    for entry in read:
        assert content[entry.byte_offset :].startswith(f"{entry.text}\n".encode())
        assert content[: entry.byte_offset].count(b"\n") + 1 == entry.line_no


@given(OFFSETS, st.integers(1, 7))
def test_blocks_do_not_matter(written: dict[tuple[str, int], int], size: int) -> None:
    content = offsets_file(written)
    pieces = [content[start : start + size] for start in range(0, len(content), size)]
    assert list(read_offset_checkpoint(pieces)) == offsets(content)


@pytest.mark.parametrize(
    ("content", "read"), [(b"0\n2\norders 0 14\norders 1 15\n", offsets), (b"0\n3\n1 0\n3 246\n4 436\n", epochs)]
)
def test_a_file_torn_at_any_byte_says_so(content: bytes, read) -> None:
    whole = read(content)
    for length in range(1, len(content)):
        torn = read(content[:length])
        assert problems(torn), content[:length]
        kept = [entry._replace(problem=None) for entry in torn if not entry.problem]
        assert all(entry in whole for entry in kept)
    assert problems(whole) == []
    # Kafka creates the file before it first writes to it.
    assert read(b"") == []


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"7\n0\n", "line 1 (byte 0): version 7 is not known, 0 is"),
        (b"x\n0\n", "line 1 (byte 0): the version is not a number: 'x'"),
        (b"0\n1\nt 0 5\nt 1 6\n", "line 5 (byte 16): 1 entries expected and 2 found: lines were added"),
        (b"0\n2\nt 0 5\nt 0 6\n", "line 4 (byte 10): is there twice, first in line 3"),
        (b"0\n1\nt 0 -5\n", "line 3 (byte 4): the offset is negative"),
        (b"0\n1\nt -1 5\n", "line 3 (byte 4): the partition is negative"),
        (b"0\n1\nt 0 9223372036854775808\n", "line 3 (byte 4): the offset is not a number: '9223372036854775808'"),
        (b"0\n1\nt 0\n", "line 3 (byte 4): 2 words where topic, partition and offset belong"),
        (b"0\n1\na/b 0 1\n", "line 3 (byte 4): 'a/b' is no name of a topic"),
        (b"0\n1\n\0\0\0\0\n", "line 3 (byte 4): NUL bytes: the file was not written to the disk"),
        (b"0\n1\n\xff 0 1\n", "line 3 (byte 4): is not UTF-8"),
    ],
)
def test_faults_in_offsets(content: bytes, problem: str) -> None:
    assert problems(offsets(content)) == [problem]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"0\n2\n3 5\n1 9\n", "line 4 (byte 8): epoch 1 comes after 3"),
        (b"0\n2\n1 5\n1 9\n", "line 4 (byte 8): is there twice, first in line 3"),
        (b"0\n2\n1 5\n2 4\n", "line 4 (byte 8): start offset 4 comes after 5"),
        (b"0\n1\n-1 5\n", "line 3 (byte 4): the epoch is negative"),
        (b"0\n1\n1 5 6\n", "line 3 (byte 4): 3 words where epoch and start offset belong"),
    ],
)
def test_faults_in_epochs(content: bytes, problem: str) -> None:
    assert problems(epochs(content)) == [problem]


def test_what_can_be_read_is_given() -> None:
    read = offsets(b"0\n3\nt 0 5\nnonsense\nt 1 6")
    assert [(entry.topic, entry.partition, entry.offset) for entry in read[:3]] == [
        ("t", 0, 5),
        (None, None, None),
        ("t", 1, 6),
    ]
    assert problems(read)[-1] == "line 5 (byte 19): the line is cut: no newline at its end"


def test_the_end_of_a_file_counts_its_bytes() -> None:
    entry = offsets(b"0\r\n3\r\n\xff 0 1\r\n")[-1]
    assert entry.place() == "line 4 (byte 13): 3 entries expected and 1 found: the file is cut"


def test_epochs_may_share_a_start_offset() -> None:
    assert problems(epochs(b"0\n2\n1 5\n2 5\n")) == []
