"""Checkpoint files, read strictly. Pure.

The format is that of ``org.apache.kafka.server.common.CheckpointFile``: a line with the version, one with the number of
entries, then a line each. Offset checkpoints (``OffsetCheckpointFile``) have topic, partition and offset;
leader epoch checkpoints (``LeaderEpochCheckpointFile``) an epoch and its start offset.

Kafka refuses a file that is not exactly so. Here everything that can be read is given, and each fault with its place: a
checkpoint is a witness, and half a witness still saw something. An empty file is no fault: the class creates it before
it first writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator

from highwater.pipelines.data_dir.text import INT_MAX, LONG_MAX, CheckpointEntry, TextLine, joined, lines, whole_number

REPLICATION_OFFSET = "replication-offset-checkpoint"
RECOVERY_POINT_OFFSET = "recovery-point-offset-checkpoint"
LOG_START_OFFSET = "log-start-offset-checkpoint"
CLEANER_OFFSET = "cleaner-offset-checkpoint"
LEADER_EPOCH = "leader-epoch-checkpoint"
OFFSET_CHECKPOINTS = (REPLICATION_OFFSET, RECOVERY_POINT_OFFSET, LOG_START_OFFSET, CLEANER_OFFSET)

#: The only version of either format, 0.8 to 4.x.
VERSION = 0
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def offset_checkpoint(blocks: Iterable[bytes]) -> Iterator[CheckpointEntry]:
    """Return the entries of a checkpoint of offsets by partition."""
    return _entries(blocks, _offset_entry)


def leader_epoch_checkpoint(blocks: Iterable[bytes]) -> Iterator[CheckpointEntry]:
    """Return the entries of a ``leader-epoch-checkpoint``.

    Epochs ascend strictly. Start offsets may repeat: up to 2.0 a leader noted its epoch even if it appended nothing.
    """
    return _entries(blocks, _EpochEntries())


def _entries(
    blocks: Iterable[bytes], parse: Callable[[TextLine], tuple[CheckpointEntry, Hashable]]
) -> Iterator[CheckpointEntry]:
    """
    Args:
        parse: gives an entry of a line, and what identifies it.
    """
    header: list[int | None] = []
    seen: dict[Hashable, int] = {}
    count = last_line = end = 0
    torn = False
    for line in lines(blocks):
        last_line, torn = line.line_no, not line.whole
        end = line.end
        cut = None if line.whole else "the line is cut: no newline at its end"
        if len(header) < 2:
            number, problem = _header(line, "version" if not header else "number of entries")
            header.append(number)
            if problem or cut:
                yield CheckpointEntry(line.line_no, line.byte_offset, line.text, problem=joined([problem, cut]))
            continue
        entry, identity = parse(line)
        count += 1
        twice = None
        if identity in seen:
            twice = f"is there twice, first in line {seen[identity]}"
        elif identity is not None:
            seen[identity] = line.line_no
        yield entry._replace(problem=joined([line.problem or entry.problem, twice, cut]))
    if len(header) == 1:
        yield CheckpointEntry(last_line + 1, end, "", problem="the number of entries is missing: the file is cut")
    elif header and header[1] is not None and header[1] != count:
        why = "the file is cut" if count < header[1] or torn else "lines were added"
        problem = f"{header[1]} entries expected and {count} found: {why}"
        yield CheckpointEntry(last_line + 1, end, "", problem=problem)


def _header(line: TextLine, what: str) -> tuple[int | None, str | None]:
    number = whole_number(line.text, INT_MAX)
    if line.problem is not None:
        return None, line.problem
    if number is None or number < 0:
        return None, f"the {what} is not a number: {line.text[:40]!r}"
    if what == "version" and number != VERSION:
        return number, f"version {number} is not known, {VERSION} is"
    return number, None


def _offset_entry(line: TextLine) -> tuple[CheckpointEntry, Hashable]:
    entry = CheckpointEntry(line.line_no, line.byte_offset, line.text)
    words = line.text.split()
    if len(words) != 3:
        return entry._replace(problem=f"{len(words)} words where topic, partition and offset belong"), None
    topic, partition, offset = words[0], whole_number(words[1], INT_MAX), whole_number(words[2], LONG_MAX)
    problem = joined(
        [
            None if _TOPIC.fullmatch(topic) and topic not in (".", "..") else f"{topic[:40]!r} is no name of a topic",
            _number_problem("partition", words[1], partition),
            _number_problem("offset", words[2], offset),
        ]
    )
    identity = (topic, partition) if partition is not None else None
    return entry._replace(topic=topic, partition=partition, offset=offset, problem=problem), identity


class _EpochEntries:
    """Parse epochs in order: each must be above the one before."""

    def __init__(self) -> None:
        self._epoch = -1
        self._offset = -1

    def __call__(self, line: TextLine) -> tuple[CheckpointEntry, Hashable]:
        entry = CheckpointEntry(line.line_no, line.byte_offset, line.text)
        words = line.text.split()
        if len(words) != 2:
            return entry._replace(problem=f"{len(words)} words where epoch and start offset belong"), None
        epoch, offset = whole_number(words[0], INT_MAX), whole_number(words[1], LONG_MAX)
        problems = [_number_problem("epoch", words[0], epoch), _number_problem("start offset", words[1], offset)]
        if epoch is not None:
            if epoch < self._epoch:
                problems.append(f"epoch {epoch} comes after {self._epoch}")
            self._epoch = max(epoch, self._epoch)
        if offset is not None and line.whole:
            if offset < self._offset:
                problems.append(f"start offset {offset} comes after {self._offset}")
            self._offset = max(offset, self._offset)
        return entry._replace(leader_epoch=epoch, offset=offset, problem=joined(problems)), epoch


def _number_problem(what: str, text: str, number: int | None) -> str | None:
    if number is None:
        return f"the {what} is not a number: {text[:40]!r}"
    return f"the {what} is negative" if number < 0 else None
