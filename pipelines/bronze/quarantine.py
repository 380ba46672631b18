"""The quarantine on Spark: files that are kept out of silver, and so out of gold, until they are released.

A quarantined file stays in bronze, so no stored line is lost. It is not parsed again, because the same version would
misread it again. Use `release` after a change: another version of the program, or another severity in the
configuration. A release is a separate batch, whose id is the time of the release. The released files are parsed and
checked in it like new ones, and may fail again. A new version does not release files automatically: the user decides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as F

from highwater.pipelines.base.errors import InputError
from highwater.pipelines.base.threads import run_concurrently
from highwater.pipelines.lake.lake import Lake
from highwater.schemas import silver
from highwater.schemas.bronze import LOG_FILES
from highwater.schemas.data_files import DATA_FILES
from highwater.schemas.quality import QUARANTINED_FILES
from highwater.schemas.silver import data_dir

QUARANTINED, RELEASED = "quarantined", "released"
ALL = "all"


class Quarantined(NamedTuple):
    """A file in quarantine."""

    file_id: str
    path: str
    problem: str  #: why, and what to do, in one sentence


class Custody(NamedTuple):
    """Quarantined files, and files that were released from quarantine."""

    quarantined: Mapping[str, Mapping[str, Any]]  #: rows of ``quality.quarantined_files`` in force, by file
    released: Mapping[str, str]  #: the latest release of each file that was ever released

    def batch_of(self, file_id: str, run_id: str) -> str:
        """Return the batch of a file's rows: the run id of its ingest, or of its later release."""
        return max(run_id, self.released.get(file_id, run_id))


def custody(lake: Lake) -> Custody:
    """Return the quarantine state of a lake. It is cheap if no file was ever quarantined."""
    return custody_of(lake.rows(QUARANTINED_FILES, *QUARANTINED_FILES.column_names).to_pylist())


def batches_without(lake: Lake, file_ids: Set[str]) -> set[str]:
    """Return the batches of log files that contain none of these files."""
    state = custody(lake)
    register = lake.rows(LOG_FILES, "file_id", "run_id")
    with_any: set[str] = set()
    batches: set[str] = set()
    for file_id, run_id in zip(*(column.to_pylist() for column in register.columns), strict=True):
        (with_any if file_id in file_ids else batches).add(state.batch_of(file_id, run_id))
    return batches - with_any


def custody_of(rows: Iterable[Mapping[str, Any]]) -> Custody:
    """Return the quarantine state from rows of ``quality.quarantined_files``."""
    steps: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        steps[row["file_id"]].append(row)
    in_quarantine: dict[str, Mapping[str, Any]] = {}
    released: dict[str, str] = {}
    for file_id, of_file in steps.items():
        latest = max(row["batch_id"] for row in of_file)
        for row in of_file:
            if row["action"] == RELEASED:
                released[file_id] = max(row["batch_id"], released.get(file_id, row["batch_id"]))
            elif row["batch_id"] == latest:
                in_quarantine[file_id] = row
    return Custody(in_quarantine, released)


def quarantined(lake: Lake) -> tuple[Quarantined, ...]:
    """Return the files in quarantine, sorted by path."""
    rows = sorted(custody(lake).quarantined.values(), key=lambda row: (row["path"], row["file_id"]))
    return tuple(Quarantined(row["file_id"], row["path"], _problem(row)) for row in rows)


def _problem(row: Mapping[str, Any]) -> str:
    return (
        f"is in quarantine and left out, since it was not read as declared ({row['reason']}): with a version that "
        f"reads it, run `highwater quality --release {row['file_id']}`"
    )


def put(lake: Lake, batch_id: str, files: Sequence[tuple[str, str, Sequence[str], str]]) -> None:
    """Quarantine files of a batch. Safe to repeat.

    Args:
        files: (id, path, ids of failed checks, description of the first) of each file.
    """
    known: set[str] = set()
    if lake.has_rows(QUARANTINED_FILES):
        steps = lake.read(QUARANTINED_FILES).where((F.col("batch_id") == batch_id) & (F.col("action") == QUARANTINED))
        known = {row["file_id"] for row in steps.select("file_id").collect()}
    rows = [_step(QUARANTINED, batch_id, *file) for file in files if file[0] not in known]
    if rows:
        lake.append_once(QUARANTINED_FILES, _rows(rows), f"{QUARANTINED} {batch_id}")


def remove_rows(lake: Lake, file_ids: Sequence[str]) -> None:
    """Remove the rows of files from silver. ``line_counts`` is last: rows there show that the removal is incomplete."""
    if not file_ids:
        return
    tables = [spec for spec in (*silver.TABLES, *data_dir.TABLES) if spec is not silver.LINE_COUNTS]
    run_concurrently([partial(lake.remove, spec, "file_id", file_ids) for spec in tables])
    lake.remove(silver.LINE_COUNTS, "file_id", file_ids)


def release(lake: Lake, which: Sequence[str], batch_id: str) -> tuple[str, ...]:
    """Release files by id, or all files, and return their paths. The next parse or audit reads them again.

    A file of a data directory is removed from its register, so that an audit of the directory reads it again.

    Raises:
        InputError: a file is not in quarantine.
    """
    in_quarantine = custody(lake).quarantined
    chosen = sorted(in_quarantine) if ALL in which else sorted(set(which))
    unknown = [file_id for file_id in chosen if file_id not in in_quarantine]
    if unknown:
        held = ", ".join(sorted(in_quarantine)) or "none is"
        raise InputError(unknown[0], "is not a file in quarantine", f"choose {ALL}, or one of those that are: {held}")
    if not chosen:
        return ()
    remove_rows(lake, chosen)  # the run that quarantined them may have been killed
    lake.remove(DATA_FILES, "file_id", chosen)
    rows = [_step(RELEASED, batch_id, file_id, in_quarantine[file_id]["path"], (), None) for file_id in chosen]
    lake.append_once(QUARANTINED_FILES, _rows(rows), batch_id)
    return tuple(in_quarantine[file_id]["path"] for file_id in chosen)


def _step(
    action: str, batch_id: str, file_id: str, path: str, expectation_ids: Sequence[str], reason: str | None
) -> dict[str, Any]:
    return {
        "file_id": file_id,
        "path": path,
        "batch_id": batch_id,
        "action": action,
        "expectation_ids": list(expectation_ids),
        "reason": reason,
        "time": datetime.now(UTC),
    }


def _rows(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, QUARANTINED_FILES.arrow_schema)
