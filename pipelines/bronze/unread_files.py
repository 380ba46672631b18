"""Problems of an input which mean that some of its lines are not in the lake. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from pathlib import PurePath
from typing import Any, Final

from highwater.pipelines.base.values import instant
from highwater.pipelines.bronze.bundles import MEMBER
from highwater.pipelines.bronze.inventory import stat

#: Files that were read up to some place, or not at all: see `pipelines.bronze.decompress`, `pipelines.bronze.bundles`,
#: `pipelines.bronze.discover` and `pipelines.bronze.source`.
_LOST: Final = re.compile(
    r"\btruncated\b|\bchanged while\b|\bcorrupt\b|\bcannot be read\b|\bis encrypted\b|\bis compressed in a way\b"
    r"|\bwhich no log is\b"
    r"|\bis not opened\b|\bcompression within\b|^not text: (?:control characters|\w+ within compression)"
    r"|^no known log layout\b|^no record of it is whole\b"
)


def is_lost(problem: str) -> bool:
    """Return True if a problem of an input means that lines of a log were not read.

    Empty files and files of other programs lose no lines.
    """
    return _LOST.search(problem) is not None


def lost_files(
    before: Sequence[Mapping[str, Any]], cannot: Iterable[tuple[str, str]], looked_at: Iterable[str], run_id: str
) -> list[Mapping[str, Any]]:
    """Return the rows of ``bronze.unread_files`` after a run.

    Args:
        before: rows before the run.
        cannot: (path, problem) of files that the run could not read.
        looked_at: all files and folders that the run found.
    """
    paths = set(looked_at)
    # A folder that can be read now is above what was found in it.
    paths |= {str(parent) for path in looked_at for parent in PurePath(path).parents}
    rows = [row for row in before if row["path"].partition(MEMBER)[0] not in paths]
    since = {(row["path"], row["problem"]): row["run_id"] for row in before}
    for path, problem in sorted(dict(cannot).items()):
        if is_lost(problem):
            stats = stat(path.partition(MEMBER)[0])
            modified = None if stats is None else instant(stats.modified_us)
            first = since.get((path, problem), run_id)
            rows.append({"path": path, "problem": problem, "modified_time": modified, "run_id": first})
    return sorted(rows, key=itemgetter("path"))
