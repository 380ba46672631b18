"""Estimates how much text a run has to read, from the sizes of files, before Spark starts."""

from __future__ import annotations

import re
from collections.abc import Iterable

from highwater.pipelines.bronze.streams import file_of
from highwater.pipelines.lake.stored_tables import StoredTables
from highwater.pipelines.storage.place import Place, place_of
from highwater.pipelines.storage.store import store_of
from highwater.schemas.bronze import LOG_FILES
from highwater.schemas.state import RUNS

#: Compression ratio of broker logs. The corpora have ratios of 11 to 27.
_COMPRESSED_BY = 20
_COMPRESSED = re.compile(r".+\.(?:gz|bz2|xz|zst|lz4|zip|tgz|tbz2?|txz|tzst)", re.IGNORECASE)


def new_bytes(files: Iterable[str], lake: Place, batch_bytes: int = 0) -> int:
    """Return the bytes of text in files that are new to the lake by name and size, limited to one batch."""
    known = {
        (path, row["size_bytes"])
        for row in StoredTables(lake).rows(LOG_FILES, "path", "size_bytes").to_pylist()
        for path in (row["path"], file_of(row["path"]))
    }
    bundles = {path.partition("!/")[0] for path, _ in known if "!/" in path}
    sizes = ((path, size_bytes(path)) for path in files if path not in bundles)
    new = sum(text_size(*file) for file in sizes if file not in known)
    return min(new, batch_bytes) if batch_bytes else new


def waiting_bytes(lake: Place) -> int:
    """Return the bytes of text in the lake's files that no replay has read."""
    replayed = {file_id for row in StoredTables(lake).rows(RUNS, "file_ids").to_pylist() for file_id in row["file_ids"]}
    rows = StoredTables(lake).rows(LOG_FILES, "file_id", "path", "size_bytes").to_pylist()
    return sum(text_size(row["path"], row["size_bytes"]) for row in rows if row["file_id"] not in replayed)


def size_bytes(path: str) -> int:
    """Return the size of a file in bytes. 0 if it is gone since it was listed."""
    try:
        return store_of(path).size_bytes(place_of(path))
    except OSError:
        return 0


def text_size(path: str, stored_bytes: int) -> int:
    """Return the estimated bytes of text in a file, from its stored size and its name."""
    return stored_bytes * _COMPRESSED_BY if _COMPRESSED.fullmatch(path) else stored_bytes
