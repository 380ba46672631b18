"""Whose commits a table's log has: a batch, or an audit, leaves its stamp in the commits that it makes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from pipelines.lake.delta_log import actions_of, commits_of, path_within
from pipelines.storage.place import Place

#: Stamp of lines that an older version of the program ingested: it names no batch.
_CONTENTS: Final = re.compile(r"[0-9a-f]{64}")


def stamps_of(table: Place) -> Iterator[tuple[int, str]]:
    """Stamps of the commits that have one, the newest first, each with its Delta version."""
    for version, commit in sorted(commits_of(table / "_delta_log").items(), reverse=True):
        stamp = _stamp(actions_of(commit))
        if stamp is not None:
            yield version, stamp


def added_until(table: Place, settled: Callable[[str], bool]) -> list[tuple[str, int]] | None:
    """Path in the table and size in bytes of the files that commits added since the newest settled one.

    Args:
        settled: says of the batch that a commit's stamp names whether the caller is done with it, and so with all
            commits before it.

    Returns:
        None where the log does not tell: files have been rewritten since, or it no longer goes back so far.
    """
    commits = commits_of(table / "_delta_log")
    added: list[tuple[str, int]] = []
    gathered: set[str] = set()
    is_rewritten = False
    for _, commit in sorted(commits.items(), reverse=True):
        actions = list(actions_of(commit))
        stamp = _stamp(actions)
        if stamp is not None:
            batch_id, *_ = stamp.split(" ")
            if _CONTENTS.fullmatch(batch_id):
                return None
            if settled(batch_id):
                return added
        files = [action["add"] for action in actions if "add" in action and action["add"].get("dataChange", True)]
        removed = [action["remove"] for action in actions if "remove" in action]
        is_rewritten = is_rewritten or any(file.get("dataChange", True) for file in removed)
        # What has been gathered in another file since was added before.
        gathered.update(path_within(file["path"], table) for file in removed)
        if files and (is_rewritten or not gathered.isdisjoint(path_within(file["path"], table) for file in files)):
            return None
        added += [(path_within(file["path"], table), file["size"]) for file in files]
    return added if 0 in commits else None


def added_since(table: Place, version: int) -> list[tuple[str, int]] | None:
    """Path in the table and size in bytes of the files that commits after a version added.

    Returns:
        None where the log does not tell: rows were removed since, files that were added have been rewritten, or it no
        longer goes back so far.
    """
    commits = commits_of(table / "_delta_log")
    later = range(version + 1, max(commits, default=version) + 1)
    added: dict[str, int] = {}
    for number in later:
        if number not in commits:
            return None
        for action in actions_of(commits[number]):
            removed, file = action.get("remove"), action.get("add")
            if removed and (removed.get("dataChange", True) or path_within(removed["path"], table) in added):
                return None
            if file and file.get("dataChange", True):
                added[path_within(file["path"], table)] = file["size"]
    return list(added.items())


def _stamp(actions: Iterable[Mapping[str, Any]]) -> str | None:
    """The stamp of a commit with these actions, None if it has none."""
    stamps = (action.get("commitInfo", {}).get("userMetadata") for action in actions)
    return next((str(stamp) for stamp in stamps if stamp is not None), None)
