"""Files of HDFS.

The client (`hdfs-native`) uses the protocols of name nodes and data nodes: it needs neither a JVM nor a library of
Hadoop's. Addresses and credentials come from the files of ``HADOOP_CONF_DIR``, or of ``etc/hadoop`` in ``HADOOP_HOME``.

A file appears whole: it is written under a temporary name and renamed, which a name node does or refuses at once.
"""

from __future__ import annotations

import errno
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from hdfs_native import Client, FileStatus

from highwater.pipelines.storage.place import Place, Uri
from highwater.pipelines.storage.remote import WORDS_MAX, Opened, RemoteStore, require_uri

#: How the library prints what it has no exception for: ``RPCError("class", "message\\n\\tat ...")``.
_PRINTED = re.compile(r'\w+\((?:"[\w.$]*?(?P<java>\w+)", )?"(?P<words>.*)"\)', re.DOTALL)
_STACK = re.compile(r"(\n\t|\\n\\t)at .*", re.DOTALL)
_DENIED = "AccessControlException"
#: End of messages about a path below a file. Exceptions of several classes have it, also the one of a denial.
_BELOW_FILE = "(is not a directory)"
_CLEARER = {
    "No NameNode hosts found": "no name node is known for it: give the port, or name its hosts in hdfs-site.xml",
    "URL must contain a host": "names no host, and fs.defaultFS of core-site.xml names none of its scheme",
}
_PIECE_BYTES = 1 << 20


@cache
def _open_client(scheme: str, container: str) -> Client:
    return Client(f"{scheme}://{container}")


class HdfsStore(RemoteStore):
    """`pipelines.storage.store.Store` for HDFS URIs."""

    @contextmanager
    def translate_errors(self, uri: Uri) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise FileNotFoundError(errno.ENOENT, "no such file or folder", str(uri)) from error
        except FileExistsError as error:
            raise FileExistsError(errno.EEXIST, "is there already", str(uri)) from error
        except IsADirectoryError as error:
            raise IsADirectoryError(errno.EISDIR, "is a folder", str(uri)) from error
        except (OSError, RuntimeError) as error:
            number, words = _number_and_words(error)
            raise OSError(number, words, str(uri)) from error

    def names(self, folder: Place) -> list[str]:
        return [_name(entry) for entry in self._list_entries(require_uri(folder))]

    def walk(self, folder: Place, failed: Callable[[OSError], None] | None = None) -> Iterator[Place]:
        uri = require_uri(folder)
        try:
            entries = self._list_entries(uri)
        except OSError as error:
            if failed is None:
                raise
            failed(error)
            return
        for entry in entries:
            place = uri / _name(entry)
            if entry.isdir:
                yield from self.walk(place, failed)
            else:
                self._listed[place] = (entry.length, float(entry.modification_time))
                yield place

    def _list_entries(self, uri: Uri) -> list[FileStatus]:
        """Return the entries of a folder. Empty without the folder."""
        try:
            with self.translate_errors(uri):
                entries = list(_find_client(uri).list_status(_format_path(uri)))
        except (FileNotFoundError, NotADirectoryError):
            return []
        if len(entries) == 1 and entries[0].path == _format_path(uri):
            return []  # listing a file returns the file itself
        return sorted(entries, key=lambda entry: _name(entry) + "/" * entry.isdir)

    def is_folder(self, place: Place) -> bool:
        try:
            return self._read_status(require_uri(place)).isdir
        except (FileNotFoundError, NotADirectoryError):
            return False

    def _read_status(self, uri: Uri) -> FileStatus:
        with self.translate_errors(uri):
            return _find_client(uri).get_file_info(_format_path(uri))

    def _look(self, uri: Uri) -> tuple[int, float]:
        status = self._read_status(uri)
        if status.isdir:
            raise IsADirectoryError(errno.EISDIR, "is a folder", str(uri))
        return status.length, float(status.modification_time)

    def _open_uri(self, uri: Uri) -> Opened:
        reader = _find_client(uri).read(_format_path(uri))
        return Opened(len(reader), lambda begin, end: reader.read_range(begin, end - begin))

    def _open_writer(self, uri: Uri) -> Any:
        return _Beside(uri)

    def read(self, file: Place) -> bytes:
        with self.translate_errors(uri := require_uri(file)):
            return _find_client(uri).read(_format_path(uri)).read()

    def create(self, file: Place, content: bytes) -> bool:
        uri = require_uri(file)
        try:
            with self.translate_errors(uri), _Beside(uri, overwrite=False) as written:
                written.write(content)
        except (FileExistsError, FileNotFoundError):
            # The library repeats a request whose answer was lost: what is there may be what it has just put there.
            return self.read(uri) == content
        return True

    def replace(self, file: Place, content: bytes) -> None:
        with self.translate_errors(uri := require_uri(file)), _Beside(uri) as written:
            written.write(content)

    def take(self, source: Path, file: Place) -> None:
        uri = require_uri(file)
        with open(source, "rb") as opened, self.translate_errors(uri), _Beside(uri) as written:
            shutil.copyfileobj(opened, written, _PIECE_BYTES)
        source.unlink()

    def remove(self, file: Place) -> None:
        with suppress(FileNotFoundError), self.translate_errors(uri := require_uri(file)):
            _find_client(uri).delete(_format_path(uri))

    def remove_tree(self, folder: Place) -> None:
        with suppress(OSError), self.translate_errors(uri := require_uri(folder)):
            _find_client(uri).delete(_format_path(uri), recursive=True)

    def make_folder(self, folder: Place) -> None:
        with self.translate_errors(uri := require_uri(folder)):
            _find_client(uri).mkdirs(_format_path(uri), create_parent=True)


HDFS = HdfsStore()


class _Beside:
    """A file that is written under a temporary name, and renamed when it is closed.

    Args:
        overwrite: True replaces an existing file.
    """

    def __init__(self, uri: Uri, overwrite: bool = True) -> None:
        self._client = _find_client(uri)
        self._path = _format_path(uri)
        self._beside = _format_path(uri.parent / f".{uri.name}.{uuid4().hex}")
        self._overwrite = overwrite
        self._writer = self._client.create(self._beside)

    def write(self, content: bytes) -> int:
        return self._writer.write(content)

    def close(self) -> None:
        try:
            self._writer.close()
            self._client.rename(self._beside, self._path, self._overwrite)
        except BaseException:
            self._remove()
            raise

    def _remove(self) -> None:
        with suppress(OSError, RuntimeError):
            self._client.delete(self._beside)

    def __enter__(self) -> _Beside:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._remove()


def _find_client(uri: Uri) -> Client:
    return _open_client(uri.scheme, uri.container)


def _format_path(uri: Uri) -> str:
    return f"/{uri.key}"


def _name(entry: FileStatus) -> str:
    return entry.path.rpartition("/")[2]


def _number_and_words(error: Exception) -> tuple[int, str]:
    """Return (errno, message) of the library's error, without Java's stack trace."""
    text, java = str(error), None
    if printed := _PRINTED.fullmatch(text):
        text, java = printed["words"].replace('\\"', '"'), printed["java"]
    words = " ".join(_STACK.sub("", text).split())[:WORDS_MAX]
    if words.endswith(_BELOW_FILE):
        return errno.ENOTDIR, words
    return errno.EACCES if java == _DENIED else errno.EIO, _CLEARER.get(words, words)
