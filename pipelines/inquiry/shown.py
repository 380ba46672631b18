"""Sentences about a partition from a line, or from an entry of a file. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from highwater.pipelines.base.plain import number, offsets
from highwater.pipelines.inquiry.answer import Row, join_values
from highwater.pipelines.kafka.errors import name_error
from highwater.schemas.package_data import read_toml

_WORDS: Final = read_toml(__package__, "words.toml")["shown"]
_ROLES: Final[dict[str, str]] = _WORDS["roles"]
_CHANGES: Final[dict[str, str]] = _WORDS["changes"]
_MARKS: Final[dict[str, str]] = _WORDS["marks"]
_STEPS: Final[dict[str, str]] = _WORDS["steps"]


def _format_values(**values: object) -> str:
    """Return the known values as ``, epoch 3, ISR 1, 2``."""
    shown = {name.replace("_", " "): value for name, value in values.items() if value is not None}
    return "".join(
        f", {name} {join_values(value, 'empty') if isinstance(value, list) else value}" for name, value in shown.items()
    )


def _format_state(row: Row) -> str:
    leader = "none" if row["leader"] is not None and row["leader"] < 0 else row["leader"]
    return _format_values(leader=leader, epoch=row["leader_epoch"], ISR=row["isr"])


def _format_error(code: int | None) -> str:
    return "" if code is None else "without error" if code == 0 else f"with {name_error(code)}"


def _describe_leadership(row: Row, who: str) -> str:
    return f"{who} {_ROLES.get(row['role'], row['role'])}: {_format_state(row).removeprefix(', ')}".removesuffix(": ")


def _describe_isr_change(row: Row, who: str) -> str:
    before = f" from {join_values(row['previous_isr'])}" if row["previous_isr"] is not None else ""
    after = f" to {join_values(row['isr'])}" if row["isr"] is not None else ""
    return f"{who} {_CHANGES.get(row['change'], row['change'])}{before}{after}"


def _describe_mark(row: Row, who: str) -> str:
    to = "" if row["high_watermark"] is None else f": {row['high_watermark']}"
    before = "" if row["previous_high_watermark"] is None else f", before it {row['previous_high_watermark']}"
    return (
        f"{who} {_MARKS.get(row['source'], row['source'])}{to}{before}{_format_values(log_end=row['log_end_offset'])}"
    )


def _describe_append(row: Row, who: str) -> str:
    end = row["first_offset"] if row["last_offset"] is None else row["last_offset"]
    as_what = {"follower": "follower", "replica_manager": "leader"}.get(row["source"], "replica")
    where = "" if row["first_offset"] is None else f" {offsets(row['first_offset'], end + 1)}"
    return f"{who}, as {as_what}, writes{where}"


def _describe_truncation(row: Row, who: str) -> str:
    if row["source"] == "epoch_reply":
        end = _format_values(epoch=row["leader_epoch"], offset=row["offset"])
        return f"{who} learns from its leader where an epoch ends{end}"
    before = "" if row["previous_end_offset"] is None else f" from {row['previous_end_offset']}"
    cut = "does not need to cut its log" if row["source"] == "no_effect" else f"cuts its log{before} to {row['offset']}"
    return f"{who} {cut}{_format_values(high_watermark=row['high_watermark'])}"


def _describe_fetch(row: Row, who: str) -> str:
    answer = _format_error(row["response_error_code"])
    mark = _format_values(high_watermark=row["response_high_watermark"])
    answered = f", answered {answer}{mark}" if answer or mark else ""
    return f"{who}, as leader, sees replica {row['replica_id']} fetch from offset {row['fetch_offset']}{answered}"


def _describe_produce(row: Row, who: str) -> str:
    parts = [part for part in row["partitions"] if part["topic"] == row["of_topic"]]
    of = [part for part in parts if part["partition"] == row["of_partition"]]
    answer = of[0] if of else None
    error = _format_error(None if answer is None else answer["error_code"])
    start = None if answer is None else answer["base_offset"]
    at = "" if start is None or start < 0 else f", its records from offset {start}"
    answers = f"answers {error}" if error else "answers (this release logs no answer)"
    acks = "all" if row["acks"] == -1 else row["acks"]
    return f"{who}, as leader, {answers} a produce with acks={acks} of client {row['client_id']}{at}"


def _describe_read(row: Row, who: str) -> str:
    of = [
        part
        for part in row["responses"] or ()
        if part["topic"] == row["of_topic"] and part["partition"] == row["of_partition"]
    ]
    reader = "a consumer" if row["replica_id"] < 0 else f"replica {row['replica_id']}"
    answer = (
        ""
        if not of
        else f": {_format_error(of[0]['error_code'])}{_format_values(high_watermark=of[0]['high_watermark'])}"
    )
    return f"{who} answers a fetch of {reader}{answer}"


def _describe_check(row: Row, who: str) -> str:
    awaited = [replica["replica_id"] for replica in row["awaiting"] or ()]
    what = f"{who}: the waiting {row['operation']} {_STEPS.get(row['step'], row['step'])}"
    return what + _format_values(needs_offset=row["required_offset"], awaited_replicas=awaited or None)


def _describe_epoch(row: Row, who: str) -> str:
    return f"{who} has epoch {row['leader_epoch']} begin at offset {row['start_offset']}"


def _describe_partition_state(row: Row, who: str) -> str:
    return f"{who}, as controller, makes the partition {row['to_state']}{_format_state(row)}"


def _describe_event(row: Row, who: str) -> str:
    return f"{who}, as controller: {str(row['event']).replace('_', ' ')}{_format_state(row)}"


def _describe_checkpoint(row: Row, who: str) -> str:
    epoch = "" if row["leader_epoch"] is None else f"epoch {row['leader_epoch']} begins at "
    value = f"{epoch}offset {row['offset']}" if row["offset"] is not None else f"{row['key']} {row['value']}"
    return f"The {row['kind']} of {who[:1].lower()}{who[1:]} says: {value}"


def _describe_batch(row: Row, who: str) -> str:
    where = offsets(row["base_offset"], (row["base_offset"] if row["last_offset"] is None else row["last_offset"]) + 1)
    records = "" if row["record_count"] is None else f", {number(row['record_count'], 'record')}"
    return f"The log of {who[:1].lower()}{who[1:]} holds a batch at {where}{records}"


def _describe_metadata(row: Row, who: str) -> str:
    return f"The metadata log, as {who[:1].lower()}{who[1:]} has it: {row['record']}{_format_state(row)}"


#: By table of silver, in the order in which they are said of one line.
SHOWS: Mapping[str, Callable[[Row, str], str]] = {
    "silver.produce_requests": _describe_produce,
    "silver.fetch_requests": _describe_read,
    "silver.replica_fetches": _describe_fetch,
    "silver.delayed_operation_checks": _describe_check,
    "silver.leader_and_isr": _describe_leadership,
    "silver.isr_changes": _describe_isr_change,
    "silver.partition_states": _describe_partition_state,
    "silver.controller_events": _describe_event,
    "silver.truncations": _describe_truncation,
    "silver.high_watermarks": _describe_mark,
    "silver.appends": _describe_append,
    "silver.leader_epochs": _describe_epoch,
    "silver.checkpoints": _describe_checkpoint,
    "silver.log_batches": _describe_batch,
    "silver.metadata_records": _describe_metadata,
}


def describe_row(table: str, row: Mapping[str, Any]) -> str:
    """Return a sentence about a row, with a full stop.

    Args:
        table: a table of `SHOWS`.
        row: its row, with ``of_topic`` and ``of_partition`` of the question.
    """
    who = "A broker" if row["broker_id"] is None else f"Broker {row['broker_id']}"
    return f"{SHOWS[table](row, who)}."
