"""Rows of the tables of data directories. Pure."""

from __future__ import annotations

from typing import Any

from highwater.pipelines.data_dir.discover import DataFile
from highwater.pipelines.data_dir.metadata_log import MetadataChange
from highwater.pipelines.data_dir.metadata_records import Registration
from highwater.pipelines.data_dir.metadata_replay import Change
from highwater.pipelines.data_dir.owner import Owner
from highwater.pipelines.data_dir.segments import SegmentBatch
from highwater.pipelines.data_dir.text import CheckpointEntry
from highwater.schemas.silver.data_dir import LOG_BATCHES, METADATA_RECORDS

#: Later times come from damaged bytes; Spark's calendar ends here.
_TIME_MS_MAX = 253_402_300_799_999
_REGISTRATION = Registration._fields
#: What a batch, and a change, has of its table's columns.
_BATCH = [name for name in SegmentBatch._fields if name in LOG_BATCHES.column_names]
_CHANGE = [name for name in Change._fields if name in METADATA_RECORDS.column_names]


def make_checkpoint_row(
    file: DataFile, owner: Owner, file_id: str, entry_no: int, entry: CheckpointEntry
) -> dict[str, Any]:
    """Return a row of ``silver.checkpoints``."""
    row = entry._asdict()
    if file.topic is not None:
        row["topic"], row["partition"] = file.topic, file.partition
    return {
        "cluster_id": owner.cluster_id,
        "broker_id": owner.broker_id,
        "kind": file.kind,
        "replica_state": file.replica_state,
        "file_id": file_id,
        "entry_no": entry_no,
        **row,
    }


def make_batch_row(file: DataFile, owner: Owner, file_id: str, batch: SegmentBatch) -> dict[str, Any]:
    """Return a row of ``silver.log_batches``."""
    row = {name: getattr(batch, name) for name in _BATCH}
    row["cluster_id"], row["broker_id"] = owner.cluster_id, owner.broker_id
    row["topic"], row["partition"], row["replica_state"] = file.topic, file.partition, file.replica_state
    row["file_id"] = file_id
    row["first_time"], row["max_time"] = _convert_time(batch.first_ms), _convert_time(batch.max_ms)
    return row


def make_metadata_row(owner: Owner, file_id: str, step: MetadataChange) -> dict[str, Any]:
    """Return a row of ``silver.metadata_records``."""
    change = step.change
    row = {name: getattr(change, name) for name in _CHANGE}
    row |= {
        "cluster_id": owner.cluster_id,
        "broker_id": owner.broker_id,
        "offset": step.offset,
        "time": _convert_time(step.time_ms),
        "source": step.source,
        "controller_epoch": step.controller_epoch,
        "changed": change.changed or None,
        "file_id": file_id,
        "byte_offset": step.byte_offset,
        "record_no": step.record_no,
    }
    if change.registration is not None:
        row |= zip(_REGISTRATION, change.registration, strict=True)
    if change.node is not None:
        row |= {
            "node_epoch": change.node.broker_epoch,
            "incarnation_id": change.node.incarnation_id,
            "fenced": change.node.fenced,
            "in_controlled_shutdown": change.node.in_controlled_shutdown,
        }
    if change.resource is not None:
        row["resource_type"], row["resource_name"] = change.resource
    return row


def _convert_time(time_ms: int | None) -> int | None:
    return time_ms * 1000 if time_ms is not None and 0 <= time_ms <= _TIME_MS_MAX else None
