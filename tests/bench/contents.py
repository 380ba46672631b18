"""Count and hash of each table of a lake: ``python -m tests.bench.contents LAKE [OTHER] [--layer gold]``

One lake: a line per table. Two: only tables that differ, and of each a few rows that one lacks; ends with 1 then.
The hash does not depend on the order of rows or files, so two programs that give the same rows give the same line.
Columns that tell of a run and not of what it read (its clock, its ids) are left out. No Spark.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pyarrow.parquet as pq
from deltalake import DeltaTable

from highwater.schemas.catalog import TABLES
from highwater.schemas.table import TableSpec

#: Columns of a run, by table.
OF_THE_RUN = {
    "gold.runs": ("run_id", "started_time", "ended_time", "code_version", "rules_fingerprint"),
    "bronze.log_files": ("run_id",),
    "bronze.data_files": ("run_id",),
    # Where the logs lay; what they are is told by file_id, and which line it is by its offset.
    "gold.evidence": ("file",),
    "gold.incident_lines": ("file",),
    "quality.results": ("batch_id", "validated_time"),
}
#: Of a row that is shown.
_SHOWN_CHARS = 600
#: Frozen folds and the ledger: what the next run reads, not what anyone is told.
_UNCOMPARED_LAYERS = ("state",)


class Content(NamedTuple):
    """Rows of a table, and the sum of the hashes of all."""

    rows: int
    digest: str


def main(arguments: list[str]) -> int:
    """Print, and give the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lakes", nargs="+", type=Path, metavar="LAKE")
    parser.add_argument("--layer", choices=("bronze", "silver", "quality", "gold"))
    parser.add_argument("--rows", type=int, default=3, help="rows shown of a table that differs")
    given = parser.parse_args(arguments)
    specs = [spec for spec in TABLES if given.layer in (None, spec.layer) and spec.layer not in _UNCOMPARED_LAYERS]
    if len(given.lakes) == 1:
        for spec in specs:
            content = content_of(row_texts(given.lakes[0], spec))
            print(f"{spec.full_name:32} {content.rows:>9} {content.digest}")
        return 0
    first, second = given.lakes
    differing = [spec for spec in specs if _print_difference(spec, first, second, given.rows)]
    print(f"{len(specs) - len(differing)} of {len(specs)} tables are equal")
    return 1 if differing else 0


def row_texts(lake: Path, spec: TableSpec) -> Iterator[bytes]:
    """Each row of a table as JSON with sorted names; none where the table is not there."""
    folder = lake / spec.layer / spec.name
    if not (folder / "_delta_log").is_dir():
        return
    ignored = OF_THE_RUN.get(spec.full_name, ())
    columns = [name for name in spec.column_names if name not in ignored]
    for file in DeltaTable(folder).file_uris():
        for batch in pq.ParquetFile(file).iter_batches(columns=columns):
            for row in batch.to_pylist():
                yield orjson.dumps(row, default=_text, option=orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_DATETIME)


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        # Files of Spark's default type tell no zone; it is UTC.
        return str(value.replace(tzinfo=None))
    return value.hex() if isinstance(value, bytes) else str(value)


def content_of(rows: Iterator[bytes]) -> Content:
    """Count and hash of rows, whatever their order."""
    count = total = 0
    for row in rows:
        count += 1
        total += int.from_bytes(hashlib.blake2b(row, digest_size=8).digest(), "big")
    return Content(count, f"{total % 2**64:016x}")


def _print_difference(spec: TableSpec, first: Path, second: Path, shown: int) -> bool:
    """Whether a table differs; how, is printed."""
    left, right = (content_of(row_texts(lake, spec)) for lake in (first, second))
    if left == right:
        return False
    print(f"{spec.full_name}: {left.rows} rows, {right.rows} rows")
    hashes = [Counter(row_texts(lake, spec)) for lake in (first, second)]
    for mark, here, there in (("-", *hashes), ("+", *reversed(hashes))):
        lacking = here - there
        print(f"  {mark} {lacking.total()} rows")
        for row in sorted(lacking)[:shown]:
            print(f"    {mark} {row.decode()[:_SHOWN_CHARS]}")
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
