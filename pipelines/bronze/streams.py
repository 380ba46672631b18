"""Files in which lines of several sources are mixed: pods, services, hosts and their programs, as wrappers name them.

Each source that Kafka's records are of is a file of its own, ``compose.log#kafka1_1``, read by itself and told by
itself whose it is. All else that stands in the file, lines of other programs and remarks of whoever wrote it, is
``#other``. A file with lines of one source stays one file. Pure.
"""

from __future__ import annotations

from hashlib import sha256

from highwater.pipelines.bronze.source import CONTENT_ID_DIGITS

MARK = "#"
OTHER_LINES = "other"
_LABEL_MAX = 120


def label(source: bytes) -> str:
    """Return the name of a source in paths, without signs that a terminal obeys or that name a folder."""
    text = source.decode(errors="backslashreplace").replace("/", ":").replace(MARK, ":")[:_LABEL_MAX]
    plain = "".join(sign if sign.isprintable() else f"\\x{ord(sign):02x}" for sign in text).strip()
    # Members of a bundle that have one name are numbered behind the same mark.
    return f"stream {plain}" if not plain or plain.isdigit() or plain == OTHER_LINES else plain


def path_of(file: str, source: str) -> str:
    """Return the path of a source's lines."""
    return f"{file}{MARK}{source}"


def source_of(path: str) -> str:
    """Return the source that a path ends with; empty if it is a whole file's."""
    name = path.rpartition("/")[2].partition(MARK)[2]
    return "" if name.isdigit() else name


def file_of(path: str) -> str:
    """Return the path of the file with the lines of a path."""
    source = source_of(path)
    return path.removesuffix(f"{MARK}{source}") if source else path


def id_of(content_id: str, source: str) -> str:
    """Return the content id of a source's lines in a content."""
    return sha256(f"{content_id}{MARK}{source}".encode()).hexdigest()[:CONTENT_ID_DIGITS]
