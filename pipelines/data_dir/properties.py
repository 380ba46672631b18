"""``meta.properties`` and ``partition.metadata``, read strictly. Pure.

``meta.properties`` is a file of Java properties (``org.apache.kafka.metadata.properties.MetaProperties``): version 0
has ``broker.id``, version 1 ``node.id`` and ``cluster.id``, later also ``directory.id``. ``partition.metadata``
(``PartitionMetadataFile``) has a version and a topic id, and no newline at its end.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator

from highwater.pipelines.data_dir.text import (
    INT_MAX,
    CheckpointEntry,
    TextLine,
    join_problems,
    parse_number,
    split_lines,
)

META_PROPERTIES = "meta.properties"
PARTITION_METADATA = "partition.metadata"

_UUID = re.compile(r"[A-Za-z0-9_-]{22}")
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
#: A key ends at the first separator that is not escaped. The value begins after the separator's white space.
_PROPERTY = re.compile(r"((?:\\.|[^\\=:\s])*)\s*(?:[=:]\s*)?(.*)", re.DOTALL)


def read_meta_properties(blocks: Iterable[bytes]) -> Iterator[CheckpointEntry]:
    """Yield the properties of ``meta.properties``, and problems with them."""
    seen: dict[str, CheckpointEntry] = {}
    last: TextLine | None = None
    held = ""
    start: TextLine | None = None
    for line in split_lines(blocks):
        last = line
        text = line.text.lstrip()
        if start is None and (not text or text[0] in "#!"):
            if line.problem:
                yield CheckpointEntry(line.line_no, line.byte_offset, line.text, problem=line.problem)
            continue
        start = start or line
        held += text
        if (len(held) - len(held.rstrip("\\"))) % 2 and line.whole:
            held = held[:-1]
            continue
        entry = _parse_property(start, held, seen)
        start, held = None, ""
        cut = None if line.whole else "the line is cut: no newline at its end"
        yield entry._replace(problem=join_problems([line.problem, entry.problem, cut]))
    place = (last.line_no + 1, last.end) if last else (1, 0)
    for problem in _list_missing(seen):
        yield CheckpointEntry(*place, "", problem=problem)


def _parse_property(line: TextLine, text: str, seen: dict[str, CheckpointEntry]) -> CheckpointEntry:
    match = _PROPERTY.fullmatch(text)
    key, value = (_unescape(part) for part in match.groups()) if match else (text, "")
    entry = CheckpointEntry(line.line_no, line.byte_offset, line.text, key=key, value=value)
    problem = None
    if key in seen:
        problem = f"{key} is there twice, first in line {seen[key].line_no}"
    elif key in ("version", "broker.id", "node.id"):
        number = parse_number(value, INT_MAX)
        if number is None or number < 0:
            problem = f"{key} is no number from 0: {value[:40]!r}"
        elif key == "version" and number > 1:
            problem = f"version {number} is not known, 0 and 1 are"
    elif key == "directory.id" and not _is_uuid(value):
        problem = f"directory.id is no id: {value[:40]!r}"
    elif key == "cluster.id" and not value:
        problem = "cluster.id is empty"
    seen.setdefault(key, entry)
    return entry._replace(problem=problem)


def _list_missing(seen: dict[str, CheckpointEntry]) -> Iterator[str]:
    """Yield a message for each property missing for the file's version. Up to 0.10 there was no ``cluster.id``."""
    if "version" not in seen:
        yield "version is missing"
    version = seen["version"].value if "version" in seen else None
    if version == "1":
        yield from (f"{key} is missing" for key in ("node.id", "cluster.id") if key not in seen)
    elif not {"broker.id", "node.id"} & seen.keys():
        yield "broker.id is missing"


def _unescape(text: str) -> str:
    def value(match: re.Match[str]) -> str:
        return chr(int(match[1], 16)) if match[1] else _CONTROL.get(match[2], match[2])

    return _ESCAPED.sub(value, text)


def find_identity(entries: Iterable[CheckpointEntry]) -> tuple[int | None, str | None]:
    """Return the broker (node) id and the cluster id. None for a missing one."""
    values = {entry.key: entry.value or "" for entry in entries if entry.key and not entry.problem}
    number = parse_number(values.get("node.id", values.get("broker.id", "")), INT_MAX)
    return number, values.get("cluster.id")


def read_partition_metadata(blocks: Iterable[bytes]) -> Iterator[CheckpointEntry]:
    """Yield the properties of ``partition.metadata``, and problems with them."""
    seen: set[str] = set()
    end = (1, 0)
    for line in split_lines(blocks):
        end = (line.line_no + 1, line.end)
        key, colon, value = (part.strip() for part in line.text.partition(":"))
        entry = CheckpointEntry(line.line_no, line.byte_offset, line.text, key=key, value=value)
        problem = line.problem
        if not colon:
            problem = problem or "has no colon"
        elif key in seen:
            problem = problem or f"{key} is there twice"
        elif key == "version" and value not in ("0", "1"):
            problem = problem or f"version {value[:40]} is not known, 0 is"
        elif key == "topic_id" and not _is_uuid(value):
            problem = problem or f"topic_id is no id: {value[:40]!r}"
        if colon:
            seen.add(key)
        yield entry._replace(problem=problem)
    for key in ("version", "topic_id"):
        if key not in seen:
            yield CheckpointEntry(*end, "", problem=f"{key} is missing")


def _is_uuid(text: str) -> bool:
    """Return True for an id as ``org.apache.kafka.common.Uuid`` prints it: 16 bytes, not all zero."""
    if not _UUID.fullmatch(text):
        return False
    try:
        return any(base64.urlsafe_b64decode(text + "=="))
    except (binascii.Error, ValueError):
        return False
