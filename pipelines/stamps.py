"""Whose commits a table's log has: a batch, or an audit, leaves its stamp in the commits that it makes."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote

from pipelines.delta_log import actions_of, commits_of
from pipelines.storage.place import Place
from pipelines.storage.store import store_of


def stamps_of(table: Place) -> Iterator[tuple[int, str]]:
    """Stamps of the commits that have one, the newest first, each with its Delta version."""
    for version, commit in sorted(commits_of(table / "_delta_log").items(), reverse=True):
        stamp = _stamp(commit)
        if stamp is not None:
            yield version, stamp


def added_by(table: Place, stamp: str) -> list[tuple[str, int]]:
    """Path in the table and size in bytes of the files that the latest commit added, if it has this stamp.

    None where that is not so, or where it removed any.
    """
    commits = commits_of(table / "_delta_log")
    actions = list(actions_of(commits[max(commits)])) if commits else []
    stamped = any(action.get("commitInfo", {}).get("userMetadata") == stamp for action in actions)
    if not stamped or any("remove" in action for action in actions):
        return []
    added = (action["add"] for action in actions if "add" in action)
    return [(unquote(file["path"]), file["size"]) for file in added]


def is_absent(table: Place, stamp: str) -> bool:
    """Whether the log, which still goes back to its beginning, has no commit with this stamp."""
    commits = commits_of(table / "_delta_log")
    return 0 in commits and not any(_stamp(commit) == stamp for commit in commits.values())


def keeps_files(table: Place, version: int) -> bool:
    """Whether the files that a version added are there."""
    store = store_of(table)
    commit = table / "_delta_log" / f"{version:020}.json"
    if not store.is_file(commit):
        return False
    added = (action["add"]["path"] for action in actions_of(commit) if "add" in action)
    return all(store.is_file(table / unquote(name)) for name in added)


def _stamp(commit: Place) -> str | None:
    """The stamp of a commit, None if it has none."""
    found = (action.get("commitInfo", {}).get("userMetadata") for action in actions_of(commit))
    return next((str(stamp) for stamp in found if stamp is not None), None)
