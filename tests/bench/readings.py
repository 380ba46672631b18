"""Print what the readers make of folders of logs: records, unread ones and a hash of all rows of each file. No Spark.

    python -m tests.bench.readings FOLDERS...

Two trees that print the same have the same rows in ``bronze.log_lines``, and so the same facts from the same grammar.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from highwater.pipelines.base.config import load_config
from highwater.pipelines.bronze.discover import discover
from highwater.pipelines.bronze.passes import HowRead, batches, profiles, span_of
from highwater.pipelines.bronze.profile import Profile
from highwater.pipelines.bronze.register import identify
from highwater.pipelines.bronze.rows import FileSpan

#: Columns that are compared.
COLUMNS = ("byte_offset", "line_no", "broker_id", "kind", "time", "level", "logger", "line_count", "problem", "message")


def readings(folder: Path) -> Iterator[tuple[str, int, int, str]]:
    """Yield each file of a folder with the number of its records, of those with a problem, and a hash of its rows."""
    config = load_config().ingest
    how = HowRead(config.timezone, config.record_bytes_max, tuple(config.include), tuple(config.exclude))
    found = discover([folder], config.include, config.exclude)
    items = [item for path in found.files for item in profiles(path, frozenset(), {}, how)]
    files = {item.path: item for item in items if isinstance(item, Profile)}
    identities, _ = identify(list(files.values()), [], [])
    spans: dict[str, list[FileSpan]] = {}
    for item in files.values():
        if item.readable:
            spans.setdefault(item.bundle or item.path, []).append(span_of(item, identities[item.path]))
    for path, several in sorted(spans.items()):
        table = pa.Table.from_batches(list(batches(several, how))).select(COLUMNS).combine_chunks()
        sink = hashlib.sha256()
        for column in table.columns:
            for piece in column.chunks:
                sink.update(repr(piece.to_pylist()).encode(errors="replace"))
        unread = table.num_rows - table.column("problem").null_count
        yield str(Path(path).relative_to(folder)), table.num_rows, unread, sink.hexdigest()[:16]


def main() -> None:
    """Print a line for each file."""
    for folder in sys.argv[1:]:
        begun = time.process_time()
        for path, records, unread, digest in readings(Path(folder).resolve()):
            print(Path(folder).name, path, records, unread, digest)
        print(f"{Path(folder).name}: {time.process_time() - begun:.1f} s CPU", file=sys.stderr)


if __name__ == "__main__":
    main()
