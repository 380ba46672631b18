"""Bundles of logs (tar, compressed tar, zip), read as they are: members are streamed, and nothing is unpacked to disk.

A member's address is ``bundle!/member``. A member of a tar within a bundle is ``bundle!/inner.tgz!/member``. Names are
labels and are never opened as paths, so ``..`` in a name has no effect. Links are not followed. A link that is named as
a log is reported if its target was not read. Devices and sparse files are skipped. The cost of a member is limited:
compression by `pipelines.bronze.decompress`, names and headers here.
"""

from __future__ import annotations

import posixpath
import re
import stat
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import PurePosixPath
from typing import Any, BinaryIO, NamedTuple

from highwater.pipelines.bronze.decompress import (
    BLOWN_UP_TEXT,
    COMPRESSED_BLOCK_BYTES,
    CORRUPT,
    RATIO_ASKED_BYTES,
    RATIO_MAX,
    TRUNCATED,
    BlockFile,
    DamagedError,
    Growth,
    codec_of,
    inflate_all,
)
from highwater.pipelines.bronze.file_types import HEAD_BYTES, beginning, bundle_form, is_log_content, type_of
from highwater.pipelines.bronze.source import BLOCK_BYTES, ZIP_MAGIC, Readable
from highwater.pipelines.bronze.source import DEPTH_MAX as CODECS_MAX
from highwater.pipelines.data_dir.discover import recognise

MEMBER = "!/"
#: Bundles within bundles are opened so deep.
DEPTH_MAX = 3
MEMBERS_MAX = 100_000
#: A zip within a bundle is held in memory.
_INNER_ZIP_BYTES_MAX = 1 << 26
#: Names longer than a path can be, and other headers that tarfile would hold in memory.
_HEADER_BYTES_MAX = 1 << 16
#: Reads behind the end of an archive.
_EMPTY_READS_MAX = 100
#: What is lost before damage, at most: a read that fails gives nothing.
_PIECE_BYTES = 1 << 14
_HELD = (
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
)
_NAME = re.compile(r".+\.(?:tar(?:\.(?:gz|bz2|xz|zst|lz4))?|tgz|tbz2?|txz|tzst|zip)", re.IGNORECASE)
#: What tarfile, zipfile and the compressions raise where bytes are not what they should be.
_DAMAGE = (DamagedError, tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, ValueError, RecursionError)


class Member(NamedTuple):
    """A file of a bundle, or a problem of the bundle."""

    path: str  #: its address
    stream: Readable | None  #: to be read before the next member is asked for; None with a problem
    problem: str | None = None  #: what is wrong, and what to do
    target: str | None = None  #: address of what a link names
    foreign: str | None = None  #: type of a file that is not a log (`pipelines.bronze.file_types`)
    head: bytes = b""  #: beginning of the stream, as stored


def is_bundle(name: str) -> bool:
    """Return True if a file name belongs to a bundle: tar, compressed tar or zip."""
    return _NAME.fullmatch(name) is not None


def members(
    path: str, file: BinaryIO, is_log: Callable[[str], bool], is_asked: Callable[[str], bool] = lambda _: False
) -> Iterator[Member]:
    """Yield the logs of a bundle (tar or zip), in their order within it.

    Data directories in a bundle come last, each as a problem: they are not read.

    Args:
        path: path of the bundle.
        file: the bundle, opened for reading bytes.
        is_log: returns True to read a member, given the last part of its name.
        is_asked: returns True to read another member if its content is a log, given its full path.
    """
    is_zip = file.read(len(ZIP_MAGIC)) == ZIP_MAGIC
    file.seek(0)
    walk = _Walk(is_log, is_asked)
    yield from walk.logs(path, _zip_members(path, file) if is_zip else _tar_members(path, file), 1)
    yield from (link for link in walk.links if link.target not in walk.names)
    for folder, count in sorted(walk.data_dirs.items()):
        problem = f"a data directory in a bundle is not read ({count} files): unpack it, and name its folder"
        yield Member(folder if MEMBER in folder else path, None, problem)


class _Walk:
    """A walk through a bundle and the bundles within it."""

    def __init__(self, is_log: Callable[[str], bool], is_asked: Callable[[str], bool]) -> None:
        self._is_log = is_log
        self._is_asked = is_asked
        self.data_dirs: Counter[str] = Counter()
        self.names: Counter[str] = Counter()
        self.links: list[Member] = []

    def logs(self, path: str, members: Iterator[Member], depth: int) -> Iterator[Member]:
        """Yield the logs among members of a bundle."""
        for member in members:
            name = PurePosixPath(member.path).name
            is_log = is_bundle(name) or self._is_log(name)
            if member.path == path:
                yield member  # the bundle's own problem
            elif member.target is not None:
                self.links += [member] if is_log else []
            elif (data_file := recognise(member.path)) is not None:
                self.data_dirs[data_file.data_dir] += 1
            elif member.stream is None:
                yield from [member] if is_log else []
            elif is_log or self._is_asked(member.path):
                stream = _Ahead(member.stream)
                if bundle_form(name, stream.head) is not None:
                    yield from self._inner(member.path, stream, depth)
                elif self._is_log(name) or is_log_content([content := beginning(stream.head)]):
                    self.names[member.path] += 1
                    again = self.names[member.path]
                    address = member.path if again == 1 else f"{member.path}#{again}"
                    yield member._replace(path=address, stream=stream, head=stream.head)
                else:
                    yield Member(member.path, None, foreign=type_of(content))

    def _inner(self, path: str, stream: _Ahead, depth: int) -> Iterator[Member]:
        """Yield the logs of a bundle within a bundle."""
        if depth == DEPTH_MAX:
            yield Member(path, None, f"a bundle that is {DEPTH_MAX} deep, which is not opened: unpack it first")
        elif not stream.head.startswith(ZIP_MAGIC):
            yield from self.logs(path, _tar_members(path, stream), depth + 1)
        elif len(content := stream.read(_INNER_ZIP_BYTES_MAX + 1)) <= _INNER_ZIP_BYTES_MAX:
            # The directory of a zip is at its end.
            yield from self.logs(path, _zip_members(path, BytesIO(content)), depth + 1)
        else:
            limit = _INNER_ZIP_BYTES_MAX >> 20
            problem = f"a zip of more than {limit} MiB within a bundle, which is not opened: unpack it first"
            yield Member(path, None, problem)


class _Ahead:
    """A stream whose beginning was already read."""

    def __init__(self, stream: Readable) -> None:
        self._stream = stream
        self.head = stream.read(HEAD_BYTES)
        self._left = memoryview(self.head)

    @property
    def problem(self) -> str | None:
        """Return the problem of the stream after it was read. None if there is none."""
        problem: str | None = getattr(self._stream, "problem", None)
        return problem

    def read(self, size: int, /) -> bytes:
        """Return the next bytes."""
        data, self._left = self._left[:size].tobytes(), self._left[size:]
        return data + self._stream.read(size - len(data)) if len(data) < size else data


class _MemberStream:
    """A bundle member's stream. Damage ends it, with a problem as for a truncated file.

    Args:
        stored_bytes: compressed size of the member. None if the whole bundle is compressed.
    """

    def __init__(self, file: Any, stored_bytes: int | None = None) -> None:
        self._file = file
        self._stored_bytes = stored_bytes
        self._growth = Growth()
        self.problem: str | None = None

    def read(self, size: int, /) -> bytes:
        pieces = []
        while size > 0 and self.problem is None:
            try:
                piece = self._file.read(min(size, _PIECE_BYTES))
                if self._stored_bytes is not None:
                    self._growth.check(piece, self._stored_bytes)
            except _DAMAGE as damage:
                self.problem = _problem_of(damage)
                break
            if not piece:
                break
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)


def _problem_of(damage: Exception) -> str:
    if isinstance(damage, tarfile.ReadError) and "unexpected end" in str(damage):
        damage = DamagedError(TRUNCATED)
    if not isinstance(damage, DamagedError):
        return f"{CORRUPT} bundle ({damage}): copy the file again"
    if damage.what in (TRUNCATED, CORRUPT):
        return f"{damage.what} bundle: copy the file again"
    return f"a bundle {BLOWN_UP_TEXT}: not read to its end"


def _label(path: str, name: str) -> str:
    """Return the path of a member, without control characters and parts that lead out of the bundle."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    plain = "/".join(parts).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return path + MEMBER + "".join(sign if sign.isprintable() else f"\\x{ord(sign):02x}" for sign in plain)


class _ArchiveFile(BlockFile):
    """The content of an archive. tarfile reads past the end if a member's header claims too many bytes."""

    _empty_reads = 0

    def read(self, size: int) -> bytes:
        data = super().read(size)
        self._empty_reads = 0 if data else self._empty_reads + 1
        if self._empty_reads > _EMPTY_READS_MAX:
            raise DamagedError(TRUNCATED)
        return data


def _inflated(file: Readable) -> BlockFile:
    """Return the content of a file, decompressed if necessary."""
    ahead = [file.read(COMPRESSED_BLOCK_BYTES)]
    codec = codec_of(ahead[0])

    def read(size: int) -> bytes:
        return ahead.pop() if ahead else file.read(size)

    return _ArchiveFile(
        inflate_all(codec, read, BLOCK_BYTES, CODECS_MAX) if codec else iter(lambda: read(BLOCK_BYTES), b"")
    )


class _Header(tarfile.TarInfo):
    """A tar header that is checked, because tarfile silently ends an archive at an invalid header.

    Attributes:
        has_ended: True if the previous header was the block of zeros that ends an archive. Another archive may follow.
    """

    has_ended = False

    @classmethod
    def frombuf(cls, buf: Any, encoding: str, errors: str) -> Any:
        try:
            header = super().frombuf(buf, encoding, errors)
            cls.has_ended = False
            return header
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            cls.has_ended = True
            raise
        except tarfile.EmptyHeaderError:  # type: ignore[attr-defined]
            if cls.has_ended:
                raise
            raise DamagedError(TRUNCATED) from None
        except tarfile.HeaderError as error:
            raise DamagedError(TRUNCATED if len(buf) < tarfile.BLOCKSIZE else CORRUPT) from error

    def _proc_member(self, archive: Any) -> Any:
        """Return a header of a member. Overrides a method of `tarfile`.

        A header that would need too much memory is refused.
        """
        if self.type == tarfile.GNUTYPE_SPARSE:
            self._sparse()
        if self.type in _HELD and self.size > _HEADER_BYTES_MAX:
            raise tarfile.ReadError(f"a header of {self.size} bytes")
        return super()._proc_member(archive)  # type: ignore[misc]

    def _sparse(self, *_: Any) -> None:
        raise tarfile.ReadError(f"a sparse file, {self.name!r}: pack it without --sparse")

    _proc_gnusparse_00 = _proc_gnusparse_01 = _proc_gnusparse_10 = _sparse


def _tar_members(path: str, file: Readable) -> Iterator[Member]:
    try:
        with tarfile.open(
            fileobj=_inflated(file),  # type: ignore[call-overload]
            mode="r|",
            bufsize=tarfile.RECORDSIZE,
            tarinfo=type("_OwnHeader", (_Header,), {}),  # one class for each archive, since it holds state
            ignore_zeros=True,  # archives that follow it are read, too
            errors="surrogateescape",
        ) as archive:
            for number, info in enumerate(archive):
                if number == MEMBERS_MAX:
                    raise tarfile.ReadError(f"more than {MEMBERS_MAX} members")
                archive.members = []  # it would keep them all
                if info.isreg() and not info.issparse():
                    yield Member(_label(path, info.name), _MemberStream(archive.extractfile(info)))
                elif info.issym() or info.islnk():
                    # A symbolic link is named from its folder, a hard one from the top of the archive.
                    folder = PurePosixPath(info.name).parent if info.issym() else PurePosixPath()
                    yield _link(path, info.name, str(folder / info.linkname))
    except _DAMAGE as damage:
        yield Member(path, None, _problem_of(damage))


def _link(path: str, name: str, target: str) -> Member:
    """Return the member for a link, with the address of its target within the bundle. Links are not followed."""
    problem = "is a link, which is not followed in a bundle: pack the file itself"
    return Member(_label(path, name), None, problem, _label(path, posixpath.normpath(target)))


def _zip_members(path: str, file: BinaryIO) -> Iterator[Member]:
    try:
        with zipfile.ZipFile(file) as archive:
            infos = archive.infolist()
            size = file.seek(0, 2)
            # Members that share their bytes are how a small archive becomes an endless one.
            if len(infos) > MEMBERS_MAX or sum(info.compress_size for info in infos) > size:
                raise zipfile.BadZipFile("members overlap, or are too many")
            if before := min((info.header_offset for info in infos), default=0):
                problem = f"has {before} bytes before its first member, perhaps another archive: unpack it first"
                yield Member(path, None, problem)
            for info in infos:
                if info.is_dir():
                    continue
                if stat.S_ISLNK(info.external_attr >> 16):
                    yield _link(path, info.filename, "")
                    continue
                label = _label(path, info.filename)
                why = _unreadable(info)
                yield (
                    Member(label, None, why)
                    if why
                    else Member(label, _MemberStream(archive.open(info), info.compress_size))
                )
    except _DAMAGE as damage:
        yield Member(path, None, _problem_of(damage))


def _unreadable(info: zipfile.ZipInfo) -> str | None:
    if info.flag_bits & 1:
        return "is encrypted: unpack it first"
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return f"is compressed in a way that is not read in a zip ({info.compress_type}): unpack it first"
    if info.file_size > RATIO_ASKED_BYTES and info.file_size > RATIO_MAX * info.compress_size:
        return f"{BLOWN_UP_TEXT}: leave it out"
    return None
