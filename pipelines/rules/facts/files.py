"""Facts of files: checkpoints, leader epochs, the KRaft metadata log and segments of topics. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import is_in, look_up, micros, when
from highwater.pipelines.data_dir.checkpoints import (
    LEADER_EPOCH,
    LOG_START_OFFSET,
    RECOVERY_POINT_OFFSET,
    REPLICATION_OFFSET,
)
from highwater.pipelines.rules.facts.columns import fact, valid
from highwater.schemas import audit_facts as a
from highwater.schemas.data_files import CURRENT

#: Checkpoints whose offsets are compared.
_OFFSETS = (REPLICATION_OFFSET, RECOVERY_POINT_OFFSET, LOG_START_OFFSET)
#: Columns of `bronze.data_files` that identify the partition folder of a file.
FOLDER: Final = ("cluster_id", "broker_id", "directory", "topic", "partition", "replica_state")
#: Topic id of the file's folder, or None, by the latest id of each file.
TopicIds = Mapping[str, str | None]


def topic_ids(files: Iterable[Mapping[str, Any]], values: Iterable[tuple[str, str]]) -> dict[str, str | None]:
    """Return by file id the topic id in the file's partition folder. None without a topic id.

    Only the latest version of each file is considered.

    Args:
        files: rows of `bronze.data_files`: ``file_id``, ``name``, ``run_id`` and `FOLDER`.
        values: (file id, topic id) of each ``partition.metadata``.
    """
    last: dict[tuple[Any, ...], str] = {}
    rows = list(files)
    for file in rows:
        last[_get_place(file)] = max(last.get(_get_place(file), ""), file["run_id"])
    folders = {file["file_id"]: _get_folder(file) for file in rows if file["run_id"] == last[_get_place(file)]}
    ids = {folders[file_id]: topic_id for file_id, topic_id in sorted(values) if file_id in folders}
    return {file_id: ids.get(folder) if None not in folder else None for file_id, folder in folders.items()}


def _get_place(file: Mapping[str, Any]) -> tuple[Any, ...]:
    return file["cluster_id"], file["broker_id"], file["directory"], file["name"]


def _get_folder(file: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(file[name] for name in FOLDER)


def checkpoints(rows: pa.RecordBatch, ids: TopicIds) -> Iterator[pa.RecordBatch]:
    """Yield entries of offset checkpoint files and leader-epoch-checkpoint files. They have no time."""
    rows = _select_current(rows, ids)
    rows = rows.filter(pc.field("problem").is_null() & valid("topic", "broker_id"))
    same = "broker_id offset file_id byte_offset name=kind"
    offsets = rows.filter(is_in(rows.column("kind"), _OFFSETS))
    yield fact(offsets, a.CHECKPOINT, same, time_us=a.NO_TIME_US)
    epochs = rows.filter((pc.field("kind") == LEADER_EPOCH) & (pc.field("replica_state") == CURRENT))
    values = {"time_us": a.NO_TIME_US, "topic_id": _look_up_id(epochs, ids)}
    yield fact(epochs, a.EPOCH_ENTRY, f"leader_epoch {same}", **values)


def metadata(rows: pa.RecordBatch, ids: TopicIds) -> pa.RecordBatch:
    """Return applied metadata records of partitions, from every node's copy of the KRaft metadata log.

    `pipelines.rules.facts.selection` removes the copies.
    """
    done = (pc.field("source") == "log") & pc.field("applied")
    rows = _select_current(rows, ids).filter(done & valid("topic", "partition", "time"))
    return fact(
        rows,
        a.METADATA,
        "broker_id leader leader_epoch partition_epoch isr replicas topic_id controller_epoch file_id byte_offset "
        "name=record previous=offset",
        time_us=micros(rows.column("time")),
        detail=when(pc.equal(rows.column("leader_recovery_state"), 1), a.RECOVERING),
    )


def batches(rows: pa.RecordBatch, ids: TopicIds) -> pa.RecordBatch:
    """Record batches in segment files, as facts for rules."""
    rows = _select_current(rows, ids).filter((pc.field("replica_state") == CURRENT) & valid("base_offset", "broker_id"))
    return fact(
        rows,
        a.BATCH,
        "broker_id leader_epoch size_bytes file_id byte_offset offset=base_offset checksum=crc error_code=magic",
        topic_id=_look_up_id(rows, ids),
        time_us=a.NO_TIME_US,
        name=when(rows.column("crc_ok"), "intact", "corrupt"),
        end_offset=pc.add(rows.column("last_offset"), 1),
        log_append_time_us=micros(rows.column("max_time")),
        detail=when(rows.column("is_log_append_time"), "LogAppendTime", "CreateTime"),
    )


def _select_current(rows: pa.RecordBatch, ids: TopicIds) -> pa.RecordBatch:
    """Select the rows of the latest version of each file. `ids` has the latest file ids."""
    return rows.filter(is_in(rows.column("file_id"), list(ids)))


def _look_up_id(rows: pa.RecordBatch, ids: TopicIds) -> pa.Array:
    return look_up(ids, rows.column("file_id"), pa.string())
