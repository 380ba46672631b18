"""Which versions the tables of a lake had when an audit had made them: read off their logs, without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pipelines.base.errors import InputError
from pipelines.lake.delta_log import actions_of, commits_of
from pipelines.storage.place import Place
from pipelines.storage.store import store_of

#: Every audit writes it, with its id as the commit's stamp.
WRITTEN_BY_ALL = "gold.rule_results"


class Commit(NamedTuple):
    """One commit of a table: when it was made, and by which audit, where it says so."""

    version: int
    time_ms: int
    stamp: str | None


def commits(table: Place) -> tuple[Commit, ...]:
    """The commits that a table's log still has, the oldest first."""
    return tuple(_commit(version, path) for version, path in sorted(commits_of(table / "_delta_log").items()))


def _commit(version: int, path: Place) -> Commit:
    info: dict[str, Any] = next((action["commitInfo"] for action in actions_of(path) if "commitInfo" in action), {})
    return Commit(version, info.get("timestamp") or int(store_of(path).modified_ms(path)), info.get("userMetadata"))


def versions_of_run(root: Place, tables: Mapping[str, Place], run_id: str) -> dict[str, int]:
    """The version of each table at the end of an audit, which is named by the beginning of its id.

    A table that it did not write has the version that it had then.

    Raises:
        InputError: there is no such audit, or several.
    """
    known = {name: commits(path) for name, path in tables.items()}
    stamps = list(dict.fromkeys(_stamps(known.get(WRITTEN_BY_ALL, ()))))
    fitting = [stamp for stamp in stamps if stamp.startswith(run_id)]
    if len(fitting) != 1:
        problem = f"has {len(fitting) or 'no'} audit{'s' if len(fitting) > 1 else ''} whose id begins with {run_id}"
        raise InputError(root, problem, f"name one of {', '.join(stamp[:12] for stamp in stamps) or 'another lake'}")
    of_run = [commit for of_table in known.values() for commit in of_table if commit.stamp == fitting[0]]
    end_ms = max(commit.time_ms for commit in of_run)
    versions = {}
    for name, of_table in known.items():
        written = [commit.version for commit in of_table if commit.stamp == fitting[0]]
        before = [commit.version for commit in of_table if commit.time_ms <= end_ms]
        if written or before:
            versions[name] = max(written or before)
    return versions


def _stamps(of_table: tuple[Commit, ...]) -> Iterator[str]:
    return (commit.stamp for commit in reversed(of_table) if commit.stamp is not None)
