"""Locations of logs, lakes and reports: a path of this machine, or a URI in a store. Pure.

A folder of an object store is the part of keys before a ``/``; it is there as long as an object is below it. HDFS has
folders as a disk has.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from highwater.pipelines.base.errors import InputError

#: Schemes of stores, each with the one that Spark's file systems know; AWS itself says ``s3``.
SCHEMES = {"s3": "s3a", "s3a": "s3a", "gs": "gs", "abfs": "abfss", "abfss": "abfss", "hdfs": "hdfs"}
#: Scheme of Hadoop itself. Its URIs may leave out the name node: Hadoop's configuration names it then.
HADOOP_SCHEME = "hdfs"
#: Folder of a lake for what lasts as long as a run.
STAGING = "_staging"
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")


@dataclass(frozen=True, order=True)
class Uri:
    """A file of a store, or a folder."""

    scheme: str  #: as Spark's file systems know it
    #: the bucket; of Azure, the container with its account's host; of HDFS, the name node or the name service, or
    #: nothing
    container: str
    key: str = ""  #: without a ``/`` at either end; empty for the whole container. Nothing in it is escaped

    def __truediv__(self, name: str) -> Uri:
        return Uri(self.scheme, self.container, f"{self.key}/{name}" if self.key else name)

    def __str__(self) -> str:
        # Hadoop knows no URI that ends with its two slashes.
        return f"{self.scheme}://{self.container}" + (f"/{self.key}" if self.key or not self.container else "")

    def __fspath__(self) -> str:
        """Return the URI as text, for errors. It is not a local path: open it with `pipelines.storage.store`."""
        return str(self)

    @property
    def name(self) -> str:
        """Return the last part of the key."""
        return self.key.rpartition("/")[2]

    @property
    def parent(self) -> Uri:
        """Return the folder above. The parent of a container is itself."""
        return Uri(self.scheme, self.container, self.key.rpartition("/")[0])


Place = Path | Uri


def place_of(text: str | os.PathLike[str]) -> Place:
    """Return the location in a text: a local path or a URI.

    Raises:
        InputError: the URI names an unsupported store, or a file of another machine.
    """
    if isinstance(text, Uri):
        return text
    text = os.fspath(text)
    scheme = _URI.match(text)
    if scheme is None:
        return Path(text)
    name = scheme.group(1).lower()
    if name == "file":
        return _parse_file_uri(text)
    if name not in SCHEMES:
        supported = ", ".join(sorted(SCHEMES))
        raise InputError(text, f"{name} is not supported", f"give a local path, or a URI of one of {supported}")
    # Not urlsplit: a key may hold `?` and `#`, and is not escaped.
    rest = text[scheme.end() - 1 :]
    if name == HADOOP_SCHEME and not rest.startswith("//"):
        container, key = "", rest
    else:
        container, _, key = rest.removeprefix("/").removeprefix("/").partition("/")
    if not container and name != HADOOP_SCHEME:
        raise InputError(text, "names no bucket", f"write {name}://BUCKET/FOLDER")
    parts = [part for part in key.split("/") if part]
    if {".", ".."} & set(parts):
        raise InputError(text, "has a part that only paths have", "leave out . and ..")
    return Uri(SCHEMES[name], container, "/".join(parts))


def _parse_file_uri(text: str) -> Path:
    parts = urlsplit(text)
    if parts.netloc not in ("", "localhost"):
        raise InputError(text, f"names a file of the host {parts.netloc}", "write file:///path for a file of this one")
    return Path(unquote(parts.path))


def absolute(place: Place) -> Place:
    """Return the absolute location, without resolving links."""
    return Path(os.path.abspath(place)) if isinstance(place, Path) else place


def resolved(place: Place) -> Place:
    """Return the location with links resolved."""
    return place.resolve() if isinstance(place, Path) else place


def relative(place: Place, folder: Place) -> str:
    """Return the path of a location relative to a folder, separated by ``/``."""
    if isinstance(place, Path):
        return place.relative_to(str(folder)).as_posix()
    return place.key.removeprefix(f"{folder.key}/" if isinstance(folder, Uri) and folder.key else "")
