"""Files of this machine: whatever the kernel has mounted.

What is written, moved or removed is reached without a link: a lake, or a folder of reports, may have been made by
others, and a link in it leads elsewhere. Callers name the folder itself without links
(`pipelines.storage.place.resolved`), so that every link on the way is one within it.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from io import BufferedReader
from pathlib import Path

from highwater.pipelines.base.errors import InputError
from highwater.pipelines.storage.place import Place


class LocalStore:
    """`pipelines.storage.store.Store` for local paths."""

    def names(self, folder: Place) -> list[str]:
        try:
            return os.listdir(folder)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def find_odd_entries(self, folder: Place) -> dict[str, str]:
        try:
            with os.scandir(folder) as entries:
                return {entry.name: kind for entry in entries if (kind := _classify_odd(entry)) is not None}
        except (FileNotFoundError, NotADirectoryError):
            return {}

    def walk(self, folder: Place, failed: Callable[[OSError], None] | None = None) -> Iterator[Place]:
        """Yield all files below a folder. Links are followed, but no folder is entered twice.

        Args:
            failed: receives the error of each folder that cannot be read.
        """
        seen: set[tuple[int, int]] = set()
        for above, below, names in os.walk(folder, followlinks=True, onerror=failed):
            status = os.stat(above)
            if (status.st_dev, status.st_ino) in seen:
                below.clear()
                continue
            seen.add((status.st_dev, status.st_ino))
            below.sort()
            for name in sorted(names):
                yield Path(above, name)

    def is_file(self, place: Place) -> bool:
        return os.path.isfile(place)

    def is_folder(self, place: Place) -> bool:
        return os.path.isdir(place)

    def is_there(self, place: Place) -> bool:
        try:
            os.stat(place)
        except PermissionError:
            return True  # it may exist
        except (OSError, ValueError):
            return False
        return True

    def can_read(self, place: Place) -> bool:
        return os.access(place, os.R_OK)

    def explain_unreadable(self, file: Place) -> str | None:
        if not os.path.isfile(file):
            return "is not a regular file: leave it out" if os.path.exists(file) else "is a link to nothing: remove it"
        if not os.access(file, os.R_OK):
            return "cannot be read (permission denied): make it readable"
        return None

    def size_bytes(self, file: Place) -> int:
        return os.path.getsize(file)

    def modified_ms(self, file: Place) -> float:
        return os.stat(file).st_mtime * 1000

    def open(self, file: Place) -> BufferedReader:
        return open(file, "rb")

    def read(self, file: Place) -> bytes:
        with open(file, "rb") as opened:
            return opened.read()

    def create(self, file: Place, content: bytes) -> bool:
        with tempfile.NamedTemporaryFile("wb", dir=_require_no_links(file.parent), prefix=".") as written:
            written.write(content)
            written.flush()
            os.fsync(written.fileno())
            try:
                os.link(written.name, file)
            except FileExistsError:
                return False
        return True

    def replace(self, file: Place, content: bytes) -> None:
        self.replace_all(file.parent, {file.name: content})

    def replace_all(self, folder: Place, contents: Mapping[str, bytes]) -> None:
        """Write all contents to temporary files in the folder, then rename each."""
        drafts: dict[Path, Place] = {}
        try:
            for name, content in contents.items():
                handle, draft = tempfile.mkstemp(dir=_require_no_links(folder), prefix=f".{name}.")
                drafts[Path(draft)] = folder / name
                with os.fdopen(handle, "wb") as written:
                    written.write(content)
                    written.flush()
                    os.fsync(written.fileno())
            if folders := [str(file) for file in drafts.values() if os.path.isdir(file)]:
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), folders[0])
            for path, file in drafts.items():
                self.take(path, file)
        except BaseException:
            for path in drafts:
                path.unlink(missing_ok=True)
            raise

    def take(self, source: Path, file: Place) -> None:
        _require_no_links(file.parent)
        # mkstemp makes a file that only its owner may read.
        os.chmod(source, 0o666 & ~_read_umask())
        os.replace(source, file)

    def remove(self, file: Place) -> None:
        _require_no_links(file.parent)
        Path(file).unlink(missing_ok=True)

    def remove_tree(self, folder: Place) -> None:
        if os.path.realpath(folder) == os.path.abspath(folder):
            shutil.rmtree(folder, ignore_errors=True)

    def make_folder(self, folder: Place) -> None:
        os.makedirs(_require_no_links(folder), exist_ok=True)

    def try_writing(self, folder: Place) -> None:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass

    def open_arrow_source(self, file: Place) -> str:
        return str(file)

    def open_arrow_sink(self, file: Place) -> str:
        _require_no_links(file.parent)
        return str(file)


def _classify_odd(entry: os.DirEntry[str]) -> str | None:
    """Return the kind of an entry with its article, for example "a link". None for a regular file or folder."""
    if entry.is_symlink():
        return "a link"
    if entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False):
        return None
    mode = entry.stat(follow_symlinks=False).st_mode
    return "a FIFO" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"


def _require_no_links(folder: Place) -> Place:
    """Return the folder unchanged. It may not exist yet.

    Raises:
        InputError: the path contains a link, which may lead anywhere.
    """
    if os.path.realpath(folder) != os.path.abspath(folder):
        remedy = "put a folder in its place: nothing is written or removed through links"
        raise InputError(folder, "is reached through a link", remedy)
    return folder


def _read_umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
