"""What ``highwater tables state`` shows: the replay's state, read from the lake's files without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.base.errors import InputError
from pipelines.base.values import iso_utc
from pipelines.kafka.seals import Run
from pipelines.lake.delta_log import read_log
from pipelines.storage.place import Place

_FOLDS, _RUNS = "state.folds", "state.runs"


class Carried(NamedTuple):
    """Carried rows of one kind of one broker."""

    cluster_id: str
    broker_id: int
    kind: str
    rows: int
    pending: int  #: operations in them that are not settled
    size_bytes: int  #: as stored in memory, uncompressed
    last: str | None  #: newest event in them, ISO 8601; None where they name none


class Seal(NamedTuple):
    """Where the next run goes on with a broker's log, ISO 8601."""

    cluster_id: str
    broker_id: int
    partitions: str
    fetches: str
    requests: str


def carried_summary(tables: Mapping[str, Place]) -> list[Carried]:
    """What the last replay left, by broker and kind.

    Args:
        tables: folders of the lake's tables by full name.

    Raises:
        InputError: nothing was replayed into the lake yet.
    """
    # Declarations of tables import PySpark's types, which `highwater tables` does without.
    from pipelines.lake.parquet import read_files
    from schemas.state import FOLDS

    path, last = _table(tables, _FOLDS), _last_run(tables)
    files = [path / file.path for file in read_log(path).files]
    of_last = pc.field("run_number") == (last.folds_run if last else 0)
    rows = read_files(FOLDS, files, FOLDS.column_names, of_last)
    sizes = pc.add(pc.fill_null(pc.binary_length(rows["state"]), 0), pc.fill_null(pc.binary_length(rows["row"]), 0))
    rows = rows.append_column("size_bytes", pc.cast(sizes, pa.int64()))
    grouped = rows.group_by(["cluster_id", "broker_id", "kind"]).aggregate(
        [("kind", "count"), ("pending", "sum"), ("size_bytes", "sum"), ("last_time", "max")]
    )
    carried = [
        Carried(
            row["cluster_id"],
            row["broker_id"],
            row["kind"],
            row["kind_count"],
            row["pending_sum"],
            row["size_bytes_sum"],
            None if row["last_time_max"] is None else row["last_time_max"].isoformat(timespec="milliseconds"),
        )
        for row in grouped.to_pylist()
    ]
    return sorted(carried)


def last_seals(tables: Mapping[str, Place]) -> list[Seal]:
    """Up to where the last replay is final, by broker.

    Raises:
        InputError: nothing was replayed into the lake yet.
    """
    last = _last_run(tables)
    return [
        Seal(*broker, iso_utc(seal.sealed_us), iso_utc(seal.sessions_us), iso_utc(seal.waiting_us))
        for broker, seal in (sorted(last.seals.items()) if last else ())
    ]


def _last_run(tables: Mapping[str, Place]) -> Run | None:
    from pipelines.lake.small_tables import SmallTables
    from pipelines.replay.runs import runs_of

    lake = _table(tables, _RUNS).parent.parent
    return next(iter(runs_of(SmallTables(lake))), None)


def _table(tables: Mapping[str, Place], name: str) -> Place:
    path = tables.get(name)
    if path is None:
        raise InputError("the lake", f"holds no table {name}", "run highwater replay first")
    return path
