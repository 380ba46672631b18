"""Settings of log folders: the cluster and the time zone of the brokers whose logs they contain. Pure.

The configured name of a folder is the cluster's name everywhere in the lake. A broker logs its cluster id only when it
starts, so most files do not show the id. The logged id is stored in ``bronze.log_files.logged_cluster_id``. A name must
have exactly one logged id.
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
    """Settings of a folder of logs."""

    cluster: str = ""  #: the cluster's name; empty where only its zone is said
    timezone: str | None = None  #: IANA name; None for the general setting


NOTHING_SAID = Folder()


@dataclass(frozen=True)
class Folders:
    """Settings of all configured folders."""

    #: the parts of a folder's path (each may be a shell pattern), and the folder's settings
    said: tuple[tuple[tuple[str, ...], Folder], ...] = ()

    def of(self, path: str) -> Folder:
        """Return the settings of the innermost configured folder that contains a file. Of two, the longer applies."""
        parts = [part.removesuffix("!") for part in PurePath(path).parent.parts] if self.said else []
        fitting = [
            (len(patterns), sum(map(len, patterns)), number)
            for number, (patterns, _) in enumerate(self.said)
            if len(patterns) <= len(parts) and all(map(fnmatchcase, parts, patterns))
        ]
        return self.said[max(fitting)[2]][1] if fitting else NOTHING_SAID


def folders_of(said: Mapping[str, Folder]) -> Folders:
    """Return the settings of folders by path or URI.

    A relative path starts in the working directory. A bundle is a folder.

    Raises:
        InputError: a URI is not supported.
    """
    return Folders(tuple((PurePath(absolute(place_of(text))).parts, folder) for text, folder in said.items()))


NO_FOLDERS = Folders()


class ClusterFile(NamedTuple):
    """A file that the lake has or that is about to be ingested."""

    path: str
    cluster_id: str  #: the cluster that it is stored under
    logged_cluster_id: str | None  #: cluster id that its lines show; None if none


def require_one_name(folders: Folders, files: Iterable[ClusterFile]) -> None:
    """Check that folders have the cluster names that the lake has, and that a name has only one logged cluster id.

    Raises:
        InputError: a file, or a pair of files, contradicts the configuration.
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
