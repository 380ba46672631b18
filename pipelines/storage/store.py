"""Operations on files of logs, lakes and reports, on disks and in stores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any, Protocol

from highwater.pipelines.storage.local import LocalStore
from highwater.pipelines.storage.place import HADOOP_SCHEME, Place, Uri, place_of


class Store(Protocol):
    """Access to files at locations of one kind. Failures raise an OSError whose ``strerror`` gives the reason.

    Nothing is written, moved or removed through a link: that raises an InputError.
    """

    def names(self, folder: Place) -> list[str]:
        """Return the names of a folder's entries. Empty without the folder."""

    def find_odd_entries(self, folder: Place) -> dict[str, str]:
        """Return by name the kind of each link, FIFO, socket or device in a folder, for example "a link".

        Object stores have none.
        """

    def walk(self, folder: Place, failed: Callable[[OSError], None] | None = None) -> Iterator[Place]:
        """Yield all files below a folder, in the order of their names.

        Args:
            failed: receives the error of each folder that cannot be read.
        """

    def is_file(self, place: Place) -> bool:
        """Return True for a file or an object."""

    def is_folder(self, place: Place) -> bool:
        """Return True for a folder, or if anything is below it."""

    def is_there(self, place: Place) -> bool:
        """Return True if the place exists."""

    def can_read(self, place: Place) -> bool:
        """Return True if it seems readable, without opening it."""

    def explain_unreadable(self, file: Place) -> str | None:
        """Return why a file cannot be read, with a remedy, without opening it. None if it seems readable."""

    def size_bytes(self, file: Place) -> int:
        """Return the size of a file."""

    def modified_ms(self, file: Place) -> float:
        """Return the last write time of a file, Unix time in milliseconds."""

    def open(self, file: Place) -> BufferedReader:
        """Return a seekable file for reading."""

    def read(self, file: Place) -> bytes:
        """Return the content of a file."""

    def create(self, file: Place, content: bytes) -> bool:
        """Create a file completely or not at all. Return False if the file exists; it stays unchanged."""

    def replace(self, file: Place, content: bytes) -> None:
        """Write a file completely, or leave the existing one unchanged."""

    def replace_all(self, folder: Place, contents: Mapping[str, bytes]) -> None:
        """Write files by name, in order, each completely. On disks all are written before any is replaced."""

    def take(self, source: Path, file: Place) -> None:
        """Move a local file to a location, completely or not at all.

        Args:
            source: local file. If the target is a path, it must be in the same folder.
        """

    def remove(self, file: Place) -> None:
        """Remove a file, if it is there."""

    def remove_tree(self, folder: Place) -> None:
        """Remove a folder with its content, where possible."""

    def make_folder(self, folder: Place) -> None:
        """Make a folder and those above it, if missing; object stores need none."""

    def try_writing(self, folder: Place) -> None:
        """Create a folder and write a temporary file, to check that it is writable.

        Raises:
            OSError: it is not.
        """

    def open_arrow_source(self, file: Place) -> Any:
        """Return a file as input for Arrow's Parquet readers."""

    def open_arrow_sink(self, file: Place) -> Any:
        """Return a file as output for Arrow's Parquet writers. It exists once it is closed."""


_LOCAL = LocalStore()


def store_of(place: str | os.PathLike[str]) -> Store:
    """Return the `Store` for a location.

    Raises:
        InputError: its scheme is not supported.
    """
    place = place_of(place)
    if not isinstance(place, Uri):
        return _LOCAL
    # Importing a library is spared where no URI of its stores is used.
    if place.scheme == HADOOP_SCHEME:
        from highwater.pipelines.storage.hdfs import HDFS

        return HDFS
    from highwater.pipelines.storage.objects import OBJECTS

    return OBJECTS


def open_file(file: str | os.PathLike[str]) -> BufferedReader:
    """Return a file for reading bytes.

    Raises:
        OSError: it cannot be opened.
    """
    place = place_of(file)
    return store_of(place).open(place)
