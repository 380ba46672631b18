"""Base of all stores of URIs: files are read by ranges and written whole."""

from __future__ import annotations

import io
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple
from uuid import uuid4

from highwater.pipelines.storage.place import Place, Uri
from highwater.pipelines.storage.store import Store

#: One request reads so much of a file that is read from its beginning to its end.
_READ_AHEAD_BYTES = 8 << 20
#: Of a Parquet file of more bytes, columns and row groups are read by requests of their own.
_WHOLE_BYTES_MAX = 16 << 20
_COLUMN_BYTES = 1 << 20
WORDS_MAX = 300


class Opened(NamedTuple):
    """A file as it was when it was opened."""

    size_bytes: int
    read: Callable[[int, int], bytes]  #: its bytes from an offset to another one, both within it


class RemoteStore(Store):
    """Common part of `pipelines.storage.store.Store` for URIs."""

    def __init__(self) -> None:
        # Results of a listing, so that no call asks again for each of thousands of files.
        self._listed: dict[Uri, tuple[int, float]] = {}

    @abstractmethod
    def translate_errors(self, uri: Uri) -> AbstractContextManager[None]:
        """Convert errors of the client library to OSErrors with one line of text."""

    def replace_all(self, folder: Place, contents: Mapping[str, bytes]) -> None:
        """Write files in a folder by name, one after the other, each completely or not at all."""
        for name, content in contents.items():
            self.replace(folder / name, content)

    @abstractmethod
    def _look(self, uri: Uri) -> tuple[int, float]:
        """Return (size in bytes, last write time in ms since the epoch) of a file."""

    @abstractmethod
    def _open_uri(self, uri: Uri) -> Opened:
        """Return a file for reading."""

    @abstractmethod
    def _open_writer(self, uri: Uri) -> Any:
        """Return an object with ``write`` and ``close``. The file exists once it is closed."""

    def find_odd_entries(self, folder: Place) -> dict[str, str]:
        return {}

    def is_file(self, place: Place) -> bool:
        uri = require_uri(place)
        if not uri.key:
            return False
        try:
            self._look(uri)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return False
        return True

    def is_there(self, place: Place) -> bool:
        return self.is_folder(place) or self.is_file(place)

    def can_read(self, place: Place) -> bool:
        return True

    def explain_unreadable(self, file: Place) -> str | None:
        return None

    def size_bytes(self, file: Place) -> int:
        uri = require_uri(file)
        return (self._listed.get(uri) or self._look(uri))[0]

    def modified_ms(self, file: Place) -> float:
        uri = require_uri(file)
        return (self._listed.get(uri) or self._look(uri))[1]

    def open(self, file: Place) -> io.BufferedReader:
        return self._open_buffered(require_uri(file), _READ_AHEAD_BYTES)

    def try_writing(self, folder: Place) -> None:
        probe = require_uri(folder) / f".probe-{uuid4()}"
        self.replace(probe, b"")
        self.remove(probe)

    def open_arrow_source(self, file: Place) -> Any:
        import pyarrow as pa

        if self.size_bytes(file) <= _WHOLE_BYTES_MAX:
            return pa.BufferReader(self.read(file))
        return pa.PythonFile(self._open_buffered(require_uri(file), _COLUMN_BYTES), "r")

    def open_arrow_sink(self, file: Place) -> Any:
        import pyarrow as pa

        uri = require_uri(file)
        with self.translate_errors(uri):
            return pa.PythonFile(_Sink(self, uri, self._open_writer(uri)), "w")

    def _open_buffered(self, uri: Uri, ahead_bytes: int) -> io.BufferedReader:
        with self.translate_errors(uri):
            return io.BufferedReader(_Ranges(self, uri, self._open_uri(uri)), ahead_bytes)


def require_uri(place: Place) -> Uri:
    """Return the location as `Uri`. The caller guarantees that it is one."""
    assert isinstance(place, Uri), place
    return place


class _Ranges(io.RawIOBase):
    """A file opened for reading, by byte ranges. Later versions of the file are not read."""

    def __init__(self, store: RemoteStore, uri: Uri, opened: Opened) -> None:
        self._store = store
        self._uri = uri
        self._opened = opened
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._opened.size_bytes}[whence]
        self._at = max(0, offset + begin)
        return self._at

    def readinto(self, buffer: Any) -> int:
        end = min(self._at + len(buffer), self._opened.size_bytes)
        if end <= self._at:
            return 0
        with self._store.translate_errors(self._uri):
            content = self._opened.read(self._at, end)
        buffer[: len(content)] = memoryview(content)
        self._at += len(content)
        return len(content)


class _Sink(io.RawIOBase):
    """A file opened for sequential writing. It exists once this is closed."""

    def __init__(self, store: RemoteStore, uri: Uri, writer: Any) -> None:
        self._store = store
        self._uri = uri
        self._writer = writer
        self._at = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def write(self, content: Any) -> int:
        with self._store.translate_errors(self._uri):
            self._writer.write(bytes(content))
        self._at += len(content)
        return len(content)

    def close(self) -> None:
        if not self.closed:
            super().close()
            with self._store.translate_errors(self._uri):
                self._writer.close()
