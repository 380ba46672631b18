"""Objects of S3, Google Cloud Storage and Azure, and of servers that speak S3.

The library (`obstore`) is the one that Delta's own readers without Spark are built on: credentials come from the
environment, as the clouds set it, and an object is put in place whole, with a condition if one is wanted.
"""

from __future__ import annotations

import errno
import io
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import ObjectStore as Client
from obstore.store import from_url

from pipelines.storage.place import Place, Uri

#: One request reads so much of a file that is read from its beginning to its end.
_READ_AHEAD_BYTES = 8 << 20
#: Of a Parquet file of more bytes, columns and row groups are read by requests of their own.
_WHOLE_BYTES_MAX = 16 << 20
_COLUMN_BYTES = 1 << 20
_DENIED = (PermissionDeniedError, UnauthenticatedError)
_WORDS_MAX = 300
#: What a store itself says.
_ANSWER = re.compile(r"<Code>([^<]+)</Code>\s*<Message>([^<]+)</Message>")


def endpoint() -> str | None:
    """The S3-compatible server that the environment names; None for AWS itself."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")


def client_settings(scheme: str) -> dict[str, str]:
    """Settings of the library that the environment implies and does not state, in Delta's names for them."""
    url = endpoint() if scheme == "s3a" else None
    if url is None:
        return {}
    return {"aws_endpoint_url": url} | ({"aws_allow_http": "true"} if url.startswith("http:") else {})


@cache
def _client(scheme: str, container: str) -> Client:
    settings = client_settings(scheme)
    return from_url(
        f"{scheme}://{container}",
        config={"endpoint": settings["aws_endpoint_url"]} if settings else None,
        client_options={"allow_http": "aws_allow_http" in settings},
        retry_config={"max_retries": 5, "retry_timeout": timedelta(seconds=60)},
    )


@contextmanager
def _as_os_errors(uri: Uri) -> Iterator[None]:
    """What the library raises as OSErrors in one line, as a file system has them."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(errno.ENOENT, "no such object, or no such bucket", str(uri)) from error
    except _DENIED as error:
        raise PermissionError(errno.EACCES, f"permission denied by the store: {_words(error)}", str(uri)) from error
    except PreconditionError as error:
        raise OSError(errno.ESTALE, "changed while it was read", str(uri)) from error
    except BaseError as error:
        raise OSError(errno.EIO, _words(error), str(uri)) from error


def _words(error: Exception) -> str:
    text = str(error).partition("Debug source:")[0]
    if answer := _ANSWER.search(text):
        return f"{answer[1]}: {answer[2]}"
    return " ".join(text.split())[:_WORDS_MAX]


class ObjectStore:
    """`pipelines.storage.store.Store` of URIs."""

    def __init__(self) -> None:
        # What a listing has told, so that nobody asks again of each of thousands of files.
        self._listed: dict[Uri, tuple[int, float]] = {}

    def names(self, folder: Place) -> list[str]:
        with _as_os_errors(uri := _uri(folder)):
            there = obstore.list_with_delimiter(_of(uri), prefix=uri.key or None)
        paths = [*there["common_prefixes"], *(entry["path"] for entry in there["objects"])]
        return sorted(path.rstrip("/").rpartition("/")[2] for path in paths)

    def walk(self, folder: Place, failed: Callable[[OSError], None] | None = None) -> Iterator[Place]:
        uri = _uri(folder)
        entries: list[Any] = []
        try:
            with _as_os_errors(uri):
                for page in obstore.list(_of(uri), prefix=uri.key or None):
                    entries += page
        except OSError as error:
            if failed is None:
                raise
            failed(error)
        for entry in sorted(entries, key=lambda entry: entry["path"]):
            file = Uri(uri.scheme, uri.container, entry["path"])
            self._listed[file] = (entry["size"], entry["last_modified"].timestamp() * 1000)
            yield file

    def is_file(self, place: Place) -> bool:
        uri = _uri(place)
        if not uri.key:
            return False
        try:
            self._look(uri)
        except FileNotFoundError:
            return False
        return True

    def is_folder(self, place: Place) -> bool:
        with _as_os_errors(uri := _uri(place)):
            return any(len(page) > 0 for page in obstore.list(_of(uri), prefix=uri.key or None, chunk_size=1))

    def is_there(self, place: Place) -> bool:
        return self.is_folder(place) or self.is_file(place)

    def may_read(self, place: Place) -> bool:
        return True

    def why_unreadable(self, file: Place) -> str | None:
        return None

    def size_bytes(self, file: Place) -> int:
        uri = _uri(file)
        return (self._listed.get(uri) or self._look(uri))[0]

    def modified_ms(self, file: Place) -> float:
        uri = _uri(file)
        return (self._listed.get(uri) or self._look(uri))[1]

    def _look(self, uri: Uri) -> tuple[int, float]:
        with _as_os_errors(uri):
            entry = obstore.head(_of(uri), uri.key)
        return entry["size"], entry["last_modified"].timestamp() * 1000

    def open(self, file: Place) -> io.BufferedReader:
        return _opened(_uri(file), _READ_AHEAD_BYTES)

    def read(self, file: Place) -> bytes:
        with _as_os_errors(uri := _uri(file)):
            return bytes(obstore.get(_of(uri), uri.key).bytes())

    def create(self, file: Place, content: bytes) -> bool:
        uri = _uri(file)
        try:
            with _as_os_errors(uri):
                obstore.put(_of(uri), uri.key, content, mode="create", use_multipart=False)
        except OSError as error:
            if not isinstance(error.__cause__, (AlreadyExistsError, PreconditionError)):
                raise
            # The library repeats a request whose answer was lost: what is there may be what it has just put there.
            return self.read(uri) == content
        return True

    def replace(self, file: Place, content: bytes) -> None:
        with _as_os_errors(uri := _uri(file)):
            obstore.put(_of(uri), uri.key, content)

    def take(self, source: Path, file: Place) -> None:
        with _as_os_errors(uri := _uri(file)):
            obstore.put(_of(uri), uri.key, source)
        source.unlink()

    def copy(self, file: Place, target: Place) -> None:
        with _as_os_errors(uri := _uri(file)):
            obstore.copy(_of(uri), uri.key, _uri(target).key)

    def remove(self, file: Place) -> None:
        with suppress(FileNotFoundError), _as_os_errors(uri := _uri(file)):
            obstore.delete(_of(uri), uri.key)

    def remove_tree(self, folder: Place) -> None:
        uri = _uri(folder)
        with suppress(OSError), _as_os_errors(uri):
            for page in obstore.list(_of(uri), prefix=uri.key or None):
                obstore.delete(_of(uri), [entry["path"] for entry in page])

    def make_folder(self, folder: Place) -> None:
        pass

    def try_writing(self, folder: Place) -> None:
        probe = _uri(folder) / f".probe-{uuid4()}"
        self.replace(probe, b"")
        self.remove(probe)

    def arrow_source(self, file: Place) -> Any:
        import pyarrow as pa

        uri = _uri(file)
        if self.size_bytes(uri) <= _WHOLE_BYTES_MAX:
            return pa.BufferReader(self.read(uri))
        return pa.PythonFile(_opened(uri, _COLUMN_BYTES), "r")

    def arrow_sink(self, file: Place) -> Any:
        import pyarrow as pa

        with _as_os_errors(uri := _uri(file)):
            return pa.PythonFile(_Sink(uri, obstore.open_writer(_of(uri), uri.key)), "w")


OBJECTS = ObjectStore()


def _uri(place: Place) -> Uri:
    assert isinstance(place, Uri), place
    return place


def _of(uri: Uri) -> Client:
    return _client(uri.scheme, uri.container)


def _opened(uri: Uri, ahead_bytes: int) -> io.BufferedReader:
    with _as_os_errors(uri):
        entry = obstore.head(_of(uri), uri.key)
    return io.BufferedReader(_Ranges(uri, entry["size"], entry["e_tag"]), ahead_bytes)


class _Ranges(io.RawIOBase):
    """An object, read by ranges of the version that it had when it was opened."""

    def __init__(self, uri: Uri, size_bytes: int, version: str | None) -> None:
        self._uri = uri
        self._size_bytes = size_bytes
        self._version = version
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = max(0, offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size_bytes}[whence])
        return self._at

    def readinto(self, buffer: Any) -> int:
        end = min(self._at + len(buffer), self._size_bytes)
        if end <= self._at:
            return 0
        options: Any = {"range": (self._at, end)} | ({"if_match": self._version} if self._version else {})
        with _as_os_errors(self._uri):
            content = obstore.get(_of(self._uri), self._uri.key, options=options).bytes()
        buffer[: len(content)] = memoryview(content)
        self._at += len(content)
        return len(content)


class _Sink(io.RawIOBase):
    """An object that is written from its beginning to its end; it is there when this is closed."""

    def __init__(self, uri: Uri, writer: Any) -> None:
        self._uri = uri
        self._writer = writer
        self._at = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def write(self, content: Any) -> int:
        with _as_os_errors(self._uri):
            self._writer.write(bytes(content))
        self._at += len(content)
        return len(content)

    def close(self) -> None:
        if not self.closed:
            super().close()
            with _as_os_errors(self._uri):
                self._writer.close()
