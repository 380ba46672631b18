"""Checkpoint files, read strictly. Pure.

The format is ``org.apache.kafka.server.common.CheckpointFile``: a line with the version, a line with the number
of entries, then one line per entry. Offset checkpoints (``OffsetCheckpointFile``) have topic, partition and offset;
leader epoch checkpoints (``LeaderEpochCheckpointFile``) an epoch and its start offset.

Kafka rejects a file with any fault. This module returns every readable entry, and each fault with its location: a
damaged checkpoint is still evidence. An empty file is valid: the class creates it before it first writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator

from highwater.pipelines.data_dir.text import (
    INT_MAX,
    LONG_MAX,
    CheckpointEntry,
    TextLine,
    join_problems,
    parse_number,
    split_lines,
)

REPLICATION_OFFSET = "replication-offset-checkpoint"
RECOVERY_POINT_OFFSET = "recovery-point-offset-checkpoint"
LOG_START_OFFSET = "log-start-offset-checkpoint"
CLEANER_OFFSET = "cleaner-offset-checkpoint"
LEADER_EPOCH = "leader-epoch-checkpoint"
OFFSET_CHECKPOINTS = (REPLICATION_OFFSET, RECOVERY_POINT_OFFSET, LOG_START_OFFSET, CLEANER_OFFSET)

#: The only version of either format, 0.8 to 4.x.
VERSION = 0
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def read_offset_checkpoint(blocks: Iterable[bytes]) -> Iterator[CheckpointEntry]:
    """Return the entries of a checkpoint of offsets by partition."""
    return _parse_entries(blocks, _parse_offset_entry)


def read_leader_epoch_checkpoint(blocks: Iterable[bytes]) -> Iterator[CheckpointEntry]:
    """Yield the entries of a ``leader-epoch-checkpoint``.

    Epochs ascend strictly. Start offsets may repeat: up to 2.0 a leader stored its epoch even if it appended nothing.
    """
    return _parse_entries(blocks, _EpochEntries())


def _parse_entries(
    blocks: Iterable[bytes], parse: Callable[[TextLine], tuple[CheckpointEntry, Hashable]]
) -> Iterator[CheckpointEntry]:
    """Yield the entries of a checkpoint file, with problems.

    Args:
        parse: returns the entry of a line, and a key that must be unique.
    """
    header: list[int | None] = []
    seen: dict[Hashable, int] = {}
    count = last_line = end = 0
    torn = False
    for line in split_lines(blocks):
        last_line, torn = line.line_no, not line.whole
        end = line.end
        cut = None if line.whole else "the line is cut: no newline at its end"
        if len(header) < 2:
            number, problem = _parse_header(line, "version" if not header else "number of entries")
            header.append(number)
            if problem or cut:
                yield CheckpointEntry(line.line_no, line.byte_offset, line.text, problem=join_problems([problem, cut]))
            continue
        entry, identity = parse(line)
        count += 1
        twice = None
        if identity in seen:
            twice = f"is there twice, first in line {seen[identity]}"
        elif identity is not None:
            seen[identity] = line.line_no
        yield entry._replace(problem=join_problems([line.problem or entry.problem, twice, cut]))
    if len(header) == 1:
        yield CheckpointEntry(last_line + 1, end, "", problem="the number of entries is missing: the file is cut")
    elif header and header[1] is not None and header[1] != count:
        why = "the file is cut" if count < header[1] or torn else "lines were added"
        problem = f"{header[1]} entries expected and {count} found: {why}"
        yield CheckpointEntry(last_line + 1, end, "", problem=problem)


def _parse_header(line: TextLine, what: str) -> tuple[int | None, str | None]:
    number = parse_number(line.text, INT_MAX)
    if line.problem is not None:
        return None, line.problem
    if number is None or number < 0:
        return None, f"the {what} is not a number: {line.text[:40]!r}"
    if what == "version" and number != VERSION:
        return number, f"version {number} is not known, {VERSION} is"
    return number, None


def _parse_offset_entry(line: TextLine) -> tuple[CheckpointEntry, Hashable]:
    entry = CheckpointEntry(line.line_no, line.byte_offset, line.text)
    words = line.text.split()
    if len(words) != 3:
        return entry._replace(problem=f"{len(words)} words where topic, partition and offset belong"), None
    topic, partition, offset = words[0], parse_number(words[1], INT_MAX), parse_number(words[2], LONG_MAX)
    problem = join_problems(
        [
            None if _TOPIC.fullmatch(topic) and topic not in (".", "..") else f"{topic[:40]!r} is no name of a topic",
            _check_number("partition", words[1], partition),
            _check_number("offset", words[2], offset),
        ]
    )
    identity = (topic, partition) if partition is not None else None
    return entry._replace(topic=topic, partition=partition, offset=offset, problem=problem), identity


class _EpochEntries:
    """Parses leader epochs, which must ascend strictly."""

    def __init__(self) -> None:
        self._epoch = -1
        self._offset = -1

    def __call__(self, line: TextLine) -> tuple[CheckpointEntry, Hashable]:
        entry = CheckpointEntry(line.line_no, line.byte_offset, line.text)
        words = line.text.split()
        if len(words) != 2:
            return entry._replace(problem=f"{len(words)} words where epoch and start offset belong"), None
        epoch, offset = parse_number(words[0], INT_MAX), parse_number(words[1], LONG_MAX)
        problems = [_check_number("epoch", words[0], epoch), _check_number("start offset", words[1], offset)]
        if epoch is not None:
            if epoch < self._epoch:
                problems.append(f"epoch {epoch} comes after {self._epoch}")
            self._epoch = max(epoch, self._epoch)
        if offset is not None and line.whole:
            if offset < self._offset:
                problems.append(f"start offset {offset} comes after {self._offset}")
            self._offset = max(offset, self._offset)
        return entry._replace(leader_epoch=epoch, offset=offset, problem=join_problems(problems)), epoch


def _check_number(what: str, text: str, number: int | None) -> str | None:
    if number is None:
        return f"the {what} is not a number: {text[:40]!r}"
    return f"the {what} is negative" if number < 0 else None
