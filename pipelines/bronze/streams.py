"""Files that mix lines of several sources: pods, services, hosts and their programs, as wrappers name them.

Each source with records of Kafka is a separate file, ``compose.log#kafka1_1``, with its own layout and identity. All
other lines in the file, from other programs or the wrapper's tool, are ``#other``. A file with lines of one source
stays one file. Pure.
"""

from __future__ import annotations

from hashlib import sha256

from highwater.pipelines.bronze.source import CONTENT_ID_DIGITS

MARK = "#"
OTHER_LINES = "other"
_LABEL_MAX = 120


def label(source: bytes) -> str:
    """Return the name of a source in paths, without control characters and characters that separate folders."""
    text = source.decode(errors="backslashreplace").replace("/", ":").replace(MARK, ":")[:_LABEL_MAX]
    plain = "".join(sign if sign.isprintable() else f"\\x{ord(sign):02x}" for sign in text).strip()
    # Members of a bundle that have one name are numbered behind the same mark.
    return f"stream {plain}" if not plain or plain.isdigit() or plain == OTHER_LINES else plain


def path_of(file: str, source: str) -> str:
    """Return the path for lines of one source in a file."""
    return f"{file}{MARK}{source}"


def source_of(path: str) -> str:
    """Return the source in a path. Empty if the path names a whole file."""
    name = path.rpartition("/")[2].partition(MARK)[2]
    return "" if name.isdigit() else name


def file_of(path: str) -> str:
    """Return the path of the file in a path that may name a source."""
    source = source_of(path)
    return path.removesuffix(f"{MARK}{source}") if source else path


def id_of(content_id: str, source: str) -> str:
    """Return the content id of one source's lines within a content."""
    return sha256(f"{content_id}{MARK}{source}".encode()).hexdigest()[:CONTENT_ID_DIGITS]
