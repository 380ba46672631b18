"""What the configuration says of folders of logs: the cluster that they are of, and its brokers' time zone. Pure.

A name that somebody gives a folder is the cluster's name wherever the lake names it, from the first hour on: brokers
log the cluster's id at their start only, so files that tell it come hours after files that do not. The id that lines
tell is kept beside it (``bronze.log_files.logged_cluster_id``), and has to be one id for one name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import NamedTuple

from highwater.pipelines.base.errors import InputError
from highwater.pipelines.storage.place import absolute, place_of

_REMEDY = "give each cluster a name of its own in ingest.clusters"


@dataclass(frozen=True)
class Folder:
    """What is said of a folder."""

    cluster: str = ""  #: the cluster's name; empty where only its zone is said
    timezone: str | None = None  #: IANA name; None where it is that of all


NOTHING_SAID = Folder()


@dataclass(frozen=True)
class Folders:
    """What is said of folders."""

    #: the parts of a folder's path, each of which may be a shell pattern, and what is said of it
    said: tuple[tuple[tuple[str, ...], Folder], ...] = ()

    def of(self, path: str) -> Folder:
        """Return the settings of the innermost folder of a file; of two patterns, the longer one counts."""
        parts = [part.removesuffix("!") for part in PurePath(path).parent.parts] if self.said else []
        fitting = [
            (len(patterns), sum(map(len, patterns)), number)
            for number, (patterns, _) in enumerate(self.said)
            if len(patterns) <= len(parts) and all(map(fnmatchcase, parts, patterns))
        ]
        return self.said[max(fitting)[2]][1] if fitting else NOTHING_SAID


def folders_of(said: Mapping[str, Folder]) -> Folders:
    """Return settings of folders by path or URI; a relative path is in the working directory, a bundle is a folder.

    Raises:
        InputError: one is a URI that is not supported.
    """
    return Folders(tuple((PurePath(absolute(place_of(text))).parts, folder) for text, folder in said.items()))


NO_FOLDERS = Folders()


class ClusterFile(NamedTuple):
    """A file of the lake, or one that is about to be."""

    path: str
    cluster_id: str  #: the cluster that it is stored under
    logged_cluster_id: str | None  #: the id that its lines tell, if they do


def require_one_name(folders: Folders, files: Iterable[ClusterFile]) -> None:
    """See that what is said of folders is what the lake has them under, and that a name stands for one id.

    Raises:
        InputError: names the file, or two that contradict each other.
    """
    named = []
    names: dict[str, str] = {}
    for file in files:
        parent = str(PurePath(file.path).parent)
        if parent not in names:
            names[parent] = folders.of(file.path).cluster
        name = names[parent]
        if name not in ("", file.cluster_id):
            problem = f"is of cluster {file.cluster_id} in this lake, and ingest.clusters names its folder {name}"
            raise InputError(file.path, problem, "leave its name as it was, or ingest its logs into a new lake")
        if file.logged_cluster_id is not None:
            named.append((file.path, file.cluster_id, file.logged_cluster_id))
    _require_one_id(named)


def _require_one_id(named: Iterable[tuple[str, str, str]]) -> None:
    by_cluster: dict[str, tuple[str, str]] = {}
    by_id: dict[str, tuple[str, str]] = {}
    for path, cluster_id, logged in sorted(named):
        other, other_id = by_cluster.setdefault(cluster_id, (path, logged))
        if other_id != logged:
            problem = (
                f"is of cluster {logged}, and {other} of cluster {other_id}, but both folders are named {cluster_id}"
            )
            raise InputError(path, problem, _REMEDY)
        other, other_cluster = by_id.setdefault(logged, (path, cluster_id))
        if other_cluster != cluster_id:
            problem = (
                f"is of cluster {logged}, named {cluster_id}, but {other} of the same cluster is {other_cluster} here"
            )
            raise InputError(path, problem, "name all its folders alike, or ingest them into a new lake")
