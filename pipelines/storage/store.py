"""What is done with files of logs, lakes and reports, wherever they lie."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any, Protocol

from pipelines.storage.local import LocalStore
from pipelines.storage.place import HADOOP_SCHEME, Place, Uri, place_of


class Store(Protocol):
    """Files below places of one kind. What cannot be done raises an OSError whose ``strerror`` says why.

    Nothing is written, moved or removed through a link: it is refused as an InputError.
    """

    def names(self, folder: Place) -> list[str]:
        """Names of what lies directly in a folder; none where there is no folder."""

    def odd_entries(self, folder: Place) -> dict[str, str]:
        """Return what is neither a regular file nor a folder, by name: links, FIFOs, sockets, devices.

        Stores have none. A value is the kind with its article: "a link".
        """

    def walk(self, folder: Place, failed: Callable[[OSError], None] | None = None) -> Iterator[Place]:
        """All files below a folder, in the order of their names.

        Args:
            failed: told of folders that cannot be read.
        """

    def is_file(self, place: Place) -> bool:
        """Whether it is a file, or an object."""

    def is_folder(self, place: Place) -> bool:
        """Whether it is a folder, or anything is below it."""

    def is_there(self, place: Place) -> bool:
        """Whether there is anything."""

    def may_read(self, place: Place) -> bool:
        """Whether what is there may be read, as far as that shows without opening it."""

    def why_unreadable(self, file: Place) -> str | None:
        """What keeps a file that was listed from being read, with a remedy, as far as that shows without opening it."""

    def size_bytes(self, file: Place) -> int:
        """Size of a file."""

    def modified_ms(self, file: Place) -> float:
        """When a file was last written, Unix time in milliseconds."""

    def open(self, file: Place) -> BufferedReader:
        """A file for reading, from its beginning; it can be sought in."""

    def read(self, file: Place) -> bytes:
        """All of a file."""

    def create(self, file: Place, content: bytes) -> bool:
        """Put a file in place, whole, unless there is one: False then, and that one stays as it is."""

    def replace(self, file: Place, content: bytes) -> None:
        """Put a file in place, whole, or leave the one that is there."""

    def replace_all(self, folder: Place, contents: Mapping[str, bytes]) -> None:
        """Put files in place, by name, each whole, in this order; for paths none is replaced before all are written."""

    def take(self, source: Path, file: Place) -> None:
        """Put a file of this machine in place, whole, or leave the one that is there; it is gone where it was.

        Args:
            source: for a path, beside it.
        """

    def remove(self, file: Place) -> None:
        """Remove a file, if it is there."""

    def remove_tree(self, folder: Place) -> None:
        """Remove a folder with all that is in it, as far as that can be done."""

    def make_folder(self, folder: Place) -> None:
        """Make a folder and those above it, if they are not there; object stores need none."""

    def try_writing(self, folder: Place) -> None:
        """Make a folder and write something that is gone at once: an OSError tells why it cannot be written."""

    def arrow_source(self, file: Place) -> Any:
        """What Arrow's readers of Parquet take for a file."""

    def arrow_sink(self, file: Place) -> Any:
        """What Arrow's writers of Parquet take for a file; it is there when they are done and it was closed."""


_LOCAL = LocalStore()


def store_of(place: str | os.PathLike[str]) -> Store:
    """The store of a place.

    Raises:
        InputError: its scheme is not supported.
    """
    place = place_of(place)
    if not isinstance(place, Uri):
        return _LOCAL
    # Importing a library is spared where no URI of its stores is used.
    if place.scheme == HADOOP_SCHEME:
        from pipelines.storage.hdfs import HDFS

        return HDFS
    from pipelines.storage.objects import OBJECTS

    return OBJECTS


def open_file(file: str | os.PathLike[str]) -> BufferedReader:
    """A file for reading bytes.

    Raises:
        OSError: it cannot be opened.
    """
    place = place_of(file)
    return store_of(place).open(place)
