"""Subjects of logs of unknown brokers: each source has a name, and a negative number in place of a broker id. Pure.

Files of one source (a container, a host, a folder with the logs of one process) have one number, which depends on their
place alone. So an incident has the same subject in each run. No broker has such a number.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import PurePath
from typing import Any, Final, NamedTuple
from zlib import crc32

from highwater.pipelines.base.values import UNKNOWN_CLUSTER
from highwater.pipelines.bronze.identity import OTHER
from highwater.pipelines.bronze.neighbours import OVERLAP_MAX_US
from highwater.pipelines.bronze.streams import MARK, source_of

#: Numbers of subjects have ten digits: -1000000000 to -1999999999.
_FIRST: Final = 10**9
_NUMBER: Final = re.compile(r"(?:\b[Bb]roker )?(?<!\w)(-1\d{9})\b")
#: What follows the name of a source, or of a kind of log, in the name of a file.
_SUFFIX: Final = re.compile(r"\.(?:log|out|txt|json|csv|gz|bz2|xz|zst|lz4|\d)|\(\d+\)|(?<!\d)\d{4}-\d\d", re.IGNORECASE)
#: Names of logs as Kafka ships them, behind the name of a source.
_KIND: Final = re.compile(
    r"(?P<source>.*?)(?:server|state-change|controller|(?:kafka-)?request|log-cleaner|kafka(?:-?server)?)",
    re.IGNORECASE,
)


class Subject(NamedTuple):
    """A source of logs whose broker is unknown."""

    subject_id: int  #: negative, in place of a broker id
    name: str  #: for people: ``kafka_1``, ``kafka-0``, the name of a folder


def subjects(files: Iterable[Mapping[str, Any]]) -> dict[str, Subject]:
    """Return the source of files whose broker is unknown, by file id.

    Args:
        files: rows of ``bronze.log_files``, times in us.
    """
    by_place: dict[tuple[str, str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in files:
        if row["broker_id"] is None and not row["broker_ids"] and row["layout"] is not None and row["kind"] != OTHER:
            path = row["path"]
            by_place[row["cluster_id"] or UNKNOWN_CLUSTER, str(PurePath(path).parent), _name_of(path)].append(row)
    named: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for (cluster_id, folder, name), rows in by_place.items():
        if _are_several(rows):
            named |= {(cluster_id, folder, PurePath(row["path"]).name): [row] for row in rows}
        else:
            named[cluster_id, folder, name] = rows
    titles: dict[tuple[str, str], set[str]] = defaultdict(set)
    for cluster_id, folder, name in named:
        titles[cluster_id, _title(folder, name)].add(folder)
    found: dict[str, Subject] = {}
    for (cluster_id, folder, name), rows in named.items():
        title = _title(folder, name)
        if len(titles[cluster_id, title]) > 1:
            title = f"{PurePath(folder).parent.name if not name else PurePath(folder).name}/{title}"
        number = -_FIRST - crc32(f"{folder}\0{name}".encode(errors="replace")) % _FIRST
        found |= {row["file_id"]: Subject(number, title) for row in rows}
    return found


def is_subject(broker_id: int) -> bool:
    """Return True if a number identifies a source without a known broker."""
    return broker_id <= -_FIRST


def with_names(text: str, names: Mapping[int, str]) -> str:
    """Replace the numbers of unknown brokers in a text by names: ``broker -1234567890`` becomes ``kafka_1``."""
    return _NUMBER.sub(lambda match: names.get(int(match[1]), match[0]), text) if names else text


def _name_of(path: str) -> str:
    """Return the part of a file's name that identifies its source. Empty if the folder is the source."""
    if source := source_of(path):
        return source
    name = PurePath(path).name.partition(MARK)[0]
    suffix = _SUFFIX.search(name)
    stem = (name[: suffix.start()].strip("-_. ") if suffix else "") or name
    match = _KIND.fullmatch(stem)
    return (match["source"] if match else stem).strip("-_. ")


def _title(folder: str, name: str) -> str:
    return name or PurePath(folder).name.removesuffix("!") or folder


def _are_several(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Return True if several processes wrote the files, since each writes one log of a kind at a time."""
    by_kind: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in rows:
        if row["first_time"] is not None and row["last_time"] is not None:
            by_kind[row["kind"]].append((row["first_time"], row["last_time"]))
    return any(
        last_us - after_us > OVERLAP_MAX_US
        for spans in by_kind.values()
        for (_, last_us), (after_us, _) in pairwise(sorted(spans))
    )
