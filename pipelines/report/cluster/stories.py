"""Stories of single requests: what a request waited for and which broker answered when, with the lines as evidence.

Rows are table rows. Times are microseconds. All functions are pure except `read_fetches_near`, which queries a lake.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from highwater.pipelines.base.values import iso_utc
from highwater.pipelines.kafka.errors import name_error
from highwater.pipelines.lake.reader import LakeReader
from highwater.pipelines.report.cluster.parts import Step, Story, StoryPart
from highwater.pipelines.report.figures import COORDINATOR, PRODUCE, SPLIT, to_ms

Row = Mapping[str, Any]
Rows = Sequence[Row]

#: Partitions of a request that its story names.
PARTITIONS_MAX = 20
#: Characters of a line.
TEXT_MAX = 2500
#: Fetches are searched from this long before the wait, microseconds.
BEFORE_US = 2_000_000
#: Fetches are searched until this long after the wait, microseconds.
AFTER_US = 1_000_000


@dataclass(frozen=True)
class StoryRows:
    """Table rows from which stories are built."""

    operations: Rows = ()  #: rows of ``gold.delayed_operations``, the worst first
    requests: Rows = ()  #: their rows of silver
    fetches: Rows = ()  #: as `read_fetches_near` gives them
    texts: Mapping[tuple[str, int], str] = field(default_factory=dict)  #: of lines, by file and offset
    paths: Mapping[str, str] = field(default_factory=dict)  #: of files


def make_stories(rows: StoryRows) -> tuple[Story, ...]:
    """Return the history of each request in `rows`: what it waited for and which broker answered when."""
    lines, of_replica = _map_lines(rows), _group_by_replica(rows)
    return tuple(
        _make_story(row, lines.get(_make_key(row, row["line_time"])), of_replica, rows) for row in rows.operations
    )


def read_fetches_near(reader: LakeReader, operations: Rows, *, of_others: bool = False) -> Rows:
    """Return the fetches of each operation's slowest partition, around the time that the operation waited.

    Args:
        of_others: True includes fetches of all replicas, False only of the replica that ended the wait.
    """
    waits = [
        {name: row[name] for name in _WAITED_FOR}
        | {"since_us": row["handled_time"] - BEFORE_US, "until_us": row["completed_time"] + AFTER_US}
        for row in operations
        if row["operation"] == "produce" and row["closing_topic"] is not None
    ]
    if not waits:
        return []
    reader.show("waits", pa.Table.from_pylist(waits))
    return reader.rows(_FETCHES, of_others=of_others)


_WAITED_FOR = ("cluster_id", "broker_id", "closing_topic", "closing_partition", "closing_replica")
_FETCHES = """
    SELECT DISTINCT time, f.broker_id, topic, partition, replica_id, fetch_offset, dequeued_time, handled_time,
        completed_time, response_bytes, file_id, byte_offset, line_no
    FROM silver_replica_fetches f JOIN waits w ON f.cluster_id = w.cluster_id AND f.broker_id = w.broker_id
        AND topic = closing_topic AND partition = closing_partition
        AND epoch_us(dequeued_time) BETWEEN since_us AND until_us
    WHERE source = 'request' AND ($of_others OR replica_id = closing_replica)
"""


def find_lines(rows: StoryRows) -> dict[tuple[str, int], int]:
    """Return the times of the log lines that the request histories show, by (file id, offset)."""
    lines, of_replica = _map_lines(rows), _group_by_replica(rows)
    shown: list[Row | None] = []
    for row in rows.operations:
        shown += [lines.get(_make_key(row, row["line_time"])), *_find_fetches(row, _find_closing(row), of_replica)]
    return {(line["file_id"], line["byte_offset"]): line["time"] for line in shown if line is not None}


def _map_lines(rows: StoryRows) -> dict[tuple[Any, ...], Row]:
    """Return the request log line of each request, by its key."""
    return {_make_key(row, row["time"]): row for row in rows.requests}


def _group_by_replica(rows: StoryRows) -> dict[tuple[Any, ...], list[Row]]:
    """Return fetches by (leader, topic, partition, replica), in the order in which the broker handled them."""
    by_replica: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    known = [fetch for fetch in rows.fetches if fetch["dequeued_time"] is not None]
    for fetch in sorted(known, key=lambda fetch: int(fetch["dequeued_time"])):
        by_replica[fetch["broker_id"], fetch["topic"], fetch["partition"], fetch["replica_id"]].append(fetch)
    return by_replica


def _make_key(row: Row, line_time: int) -> tuple[Any, ...]:
    return row["broker_id"], row["connection"], row["correlation_id"], line_time


def _find_closing(row: Row) -> Row | None:
    """Return the partition of the request whose replication completed last. None if unknown."""
    for part in row["partitions"] or ():
        if (part["topic"], part["partition"]) == (row["closing_topic"], row["closing_partition"]):
            return dict(part)
    return None


def _find_fetches(
    row: Row, part: Row | None, of_replica: Mapping[tuple[Any, ...], Sequence[Row]]
) -> tuple[Row | None, Row | None]:
    """Return (fetch whose answer had the records, fetch that acknowledged them) of the replica waited for last."""
    replica = row["closing_replica"]
    if part is None or replica is None or part["required_offset"] is None:
        return None, None
    place = (row["broker_id"], part["topic"], part["partition"], replica)
    carried = closed = None
    for fetch in of_replica.get(place, ()):
        if fetch["fetch_offset"] is None:
            continue
        if fetch["fetch_offset"] >= part["required_offset"]:
            if fetch["handled_time"] is None or fetch["handled_time"] >= row["handled_time"] - 1000:
                closed = fetch
                break
        elif fetch["dequeued_time"] <= row["completed_time"] and _can_carry(fetch, row):
            carried = fetch
    return carried, closed


def _can_carry(fetch: Row, row: Row) -> bool:
    """Return True if the answer to a fetch can contain the records. An earlier or an empty answer cannot.

    Later fetches of a session name only partitions whose offset changed. The fetch may thus have no row.
    """
    came_before = fetch["completed_time"] is not None and fetch["completed_time"] < row["arrival_time"]
    return not came_before and fetch["response_bytes"] != 0


def _make_story(
    row: Row, line: Row | None, of_replica: Mapping[tuple[Any, ...], Sequence[Row]], rows: StoryRows
) -> Story:
    parts = list(row["partitions"] or ())
    closing = _find_closing(row)
    return Story.of(
        row,
        request_id=row["operation_id"],
        kind=PRODUCE if row["api"] == "PRODUCE" else COORDINATOR,
        arrival=iso_utc(row["arrival_time"]),
        wait_ms=round(row["wait_ms"], 3),
        residual_ms=to_ms(row["residual_ms"]),
        error_codes=tuple(row["error_codes"]),
        operation_class=row["class"],
        closing_partition=_place(row["closing_topic"], row["closing_partition"]),
        parts_ms={name: round(row[column], 3) for name, column in SPLIT.items() if row[column] is not None},
        partitions=tuple(StoryPart.of(part, isr=tuple(part["isr"] or ())) for part in parts[:PARTITIONS_MAX]),
        partitions_left_out=max(0, len(parts) - PARTITIONS_MAX),
        steps=tuple(sorted(_make_steps(row, line, closing, of_replica, rows), key=lambda step: step.time or "")),
    )


def _make_steps(
    row: Row,
    line: Row | None,
    closing: Row | None,
    of_replica: Mapping[tuple[Any, ...], Sequence[Row]],
    rows: StoryRows,
) -> Iterable[Step]:
    leader, replica = row["broker_id"], row["closing_replica"]
    yield Step(time=iso_utc(row["arrival_time"]), what=f"Broker {leader} read the request from its socket.")
    yield Step(time=iso_utc(row["handled_time"]), what=_describe_append(closing))
    carried, closed = _find_fetches(row, closing, of_replica)
    if carried is not None:
        answered = carried["completed_time"]
        taken_up = f"Fetch of broker {replica} at offset {carried['fetch_offset']} was taken up"
        sent = "" if answered is None else f"; answered {iso_utc(answered)[11:-1]}"
        size = "" if carried["response_bytes"] is None else f" with {carried['response_bytes']} bytes"
        yield make_step(carried["dequeued_time"], f"{taken_up}{sent}{size}.", carried, rows)
    if closed is not None:
        what = f"Fetch of broker {replica} at offset {closed['fetch_offset']}: it has all of the records."
        yield make_step(closed["dequeued_time"], what, closed, rows)
    elif replica is not None and row["cause"] != "isr_change":
        yield Step(
            time=iso_utc(row["handled_time"]),
            what=f"No fetch of broker {replica} that shows the records is in the logs.",
        )
    if row["lowest_time"] is not None and row["highest_time"] is not None:
        until = iso_utc(row["highest_time"])[11:-1]
        what = f"Kafka's rules allow the answer from here on, and ask for it by {until} ({row['cause']})."
        yield Step(time=iso_utc(row["lowest_time"]), what=what)
    elif row["class_reason"]:
        yield Step(time=iso_utc(row["handled_time"]), what=f"When to answer is unknown: {row['class_reason']}.")
    codes = ", ".join(name_error(code) for code in row["error_codes"] if code)
    answered = f"Answered{f' with {codes}' if codes else ' without error'}: {row['class']}."
    yield (
        make_step(row["completed_time"], answered, line, rows)
        if line is not None
        else Step(time=iso_utc(row["completed_time"]), what=answered)
    )


def _describe_append(closing: Row | None) -> str:
    if closing is None or closing["base_offset"] is None or closing["base_offset"] < 0:
        return "Left the request handler: the wait begins."
    place, first = _place(closing["topic"], closing["partition"]), closing["base_offset"]
    last = first if closing["required_offset"] is None else closing["required_offset"] - 1
    offsets = f"offsets {first} to {last}" if last > first else f"offset {first}"
    isr = ", ".join(str(member) for member in closing["isr"] or ())
    return f"Appended to {place} at {offsets}; the wait begins. ISR: {isr or 'not known'}."


def make_step(time_us: int, what: str, line: Row, rows: StoryRows) -> Step:
    """Return a step of a request history, with the log line that shows it. The line is omitted if it was not loaded."""
    text = rows.texts.get((line["file_id"], line["byte_offset"]))
    if text is not None and len(text) > TEXT_MAX:
        text = f"{text[:TEXT_MAX]}… ({len(text) - TEXT_MAX} more characters)"
    return Step.of(line, time=iso_utc(time_us), what=what, file=rows.paths.get(line["file_id"]), text=text)


def _place(topic: str | None, partition: int | None) -> str | None:
    return None if topic is None or partition is None else f"{topic}-{partition}"
