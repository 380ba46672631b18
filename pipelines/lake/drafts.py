"""What Delta's own writer does to a table of a store, committed by the driver.

Delta's writer for S3 keeps two processes from one number of a log within one JVM only. So it never writes the log of a
table there: it works on a *draft*, a table in the run's own folder whose first version names the files of the real one
where they lie. What its commits then added and removed becomes one version of the real table, put if absent and behind
the fence as every other (`pipelines.lake.delta_commits`); the store itself copies or moves the files that it
wrote to where they belong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, unquote
from uuid import uuid4

from pipelines.lake.delta_commits import Fence, commit_actions, lines_of
from pipelines.lake.delta_log import actions_of, commits_of, live_actions
from pipelines.storage.place import STAGING, Place, Uri
from pipelines.storage.store import store_of

#: Characters of a path that are no different in a URI.
_PLAIN = "/:@"
#: Actions of files that are written, those of Delta's change feed among them.
_WRITTEN = ("add", "cdc")


@contextmanager
def through_delta(root: Place, table: Place, fence: Fence) -> Iterator[Place]:
    """Give the folder that Delta itself writes: the table on a local disk, a draft of it in a store.

    Raises:
        LeaseLost: this process may not write the lake any more.
    """
    if isinstance(table, Uri):
        with drafted(root, table, fence) as draft:
            yield draft
    else:
        fence()
        yield table


@contextmanager
def drafted(root: Place, table: Place, fence: Fence) -> Iterator[Place]:
    """Give the folder of a draft of a table; what is written to it is committed to the table when the block ends.

    Args:
        root: the lake.

    Raises:
        LeaseLost: this process may not write the lake any more.
        LakeError: somebody else has written the table meanwhile.
    """
    store = store_of(root)
    draft = root / STAGING / str(uuid4())
    version, live = live_actions(table)
    # A path may be escaped in several ways: files are known by what it says.
    paths = [action["add"]["path"] for action in live if "add" in action]
    real = {unquote(_uri(table / unquote(path))): path for path in paths}
    first = [_renamed(action, lambda path: _uri(table / unquote(path))) for action in live]
    store.make_folder(draft / "_delta_log")
    store.create(draft / "_delta_log" / f"{0:020}.json", lines_of(first))
    try:
        yield draft
        commits = commits_of(draft / "_delta_log")
        done = _folded([action for number in sorted(commits) if number for action in actions_of(commits[number])])
        if not done:
            return
        for path in (unquote(action[kind]["path"]) for action in done for kind in _WRITTEN if kind in action):
            store.make_folder((table / path).parent)
            store.move(draft / path, table / path)
        # What is removed is a file of the real table; what was written has its name already.
        done = [_renamed(action, lambda path: real[unquote(path)]) if "remove" in action else action for action in done]
        commit_actions(table, version + 1, done, fence)
    finally:
        store.remove_tree(draft)


def _uri(place: Place) -> str:
    """A place as Delta has it in a log, whatever table the log is of."""
    return quote(str(place), safe=_PLAIN) if isinstance(place, Uri) else place.as_uri()


def _renamed(action: dict[str, Any], name: Callable[[str], str]) -> dict[str, Any]:
    """An action whose file is named as another table names it."""
    ((kind, content),) = action.items()
    return {kind: {**content, "path": name(content["path"])}} if "path" in content else action


def _folded(actions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Actions of several commits as those of one: what a later one removed again was never added."""
    removed = {action["remove"]["path"] for action in actions if "remove" in action}
    added = {action["add"]["path"] for action in actions if "add" in action}
    passing = removed & added
    infos = [action for action in actions if "commitInfo" in action][-1:]
    others = [
        action
        for action in actions
        if "commitInfo" not in action
        and not any(kind in action and action[kind]["path"] in passing for kind in ("add", "remove"))
    ]
    return [*infos, *others]
