"""The story of one request: its waits, the replicas' positions over time, its answer.

A request is found by the id in the report, or by broker, correlation id and connection. An append is described as in
the report (`pipelines.report.cluster.stories`), with the fetches of other replicas.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from highwater.pipelines.base.plain import ms
from highwater.pipelines.base.values import instant, iso_utc
from highwater.pipelines.inquiry.answer import Answer, Lines, Point, Row, Rows, Table, name_partition, sort_steps
from highwater.pipelines.inquiry.read_lines import FAR_US
from highwater.pipelines.kafka.errors import name_error
from highwater.pipelines.lake.reader import LakeReader
from highwater.pipelines.report.cluster.stories import StoryRows, find_lines, make_stories, read_fetches_near
from highwater.pipelines.report.figures import PHASES, SPLIT
from highwater.schemas.package_data import read_toml

_WORDS: Final = read_toml(__package__, "words.toml")["request"]
#: Parts of a wait as sentences name them.
_PARTS: Final[dict[str, str]] = _WORDS["parts"]

_ROLES: Final[dict[str, str]] = _WORDS["roles"]


@dataclass(frozen=True)
class RequestRows:
    """Rows of one request."""

    phases: Row  #: its row of ``gold.request_phases``
    operation: Row | None  #: its row of ``gold.delayed_operations``; None where the purgatory had nothing to do with it
    line: Row | None  #: place of its line, from silver
    fetches: Rows = ()  #: fetches of its partition by any replica, around its wait


def list_shown_rows(rows: RequestRows) -> list[Row]:
    """Return rows with the locations of the log lines that the answer shows."""
    shown = [step.row for step in _collect_points(rows) if step.row is not None]
    if rows.operation is not None and _is_append(rows.operation):
        bare = _make_story_rows(rows, StoryRows())
        shown += [{"file_id": file_id, "byte_offset": offset} for file_id, offset in find_lines(bare)]
    return shown


def answer(rows: RequestRows, lines: Lines) -> Answer:
    """Return an answer with the history of one request."""
    phases, operation = rows.phases, rows.operation
    who = phases["client_id"] or "a client without id"
    title = (
        f"{phases['api']} of {who} to broker {phases['broker_id']}, correlation id {phases['correlation_id']}, "
        f"connection {phases['connection']}, arrived {iso_utc(phases['arrival_time'])}"
    )
    steps = list(sort_steps(_collect_points(rows), lines))
    tables = [Table(title="phases, milliseconds", rows=({name: phases[column] for name, column in PHASES.items()},))]
    if operation is not None and _is_append(operation):
        (story,) = make_stories(_make_story_rows(rows, lines))
        steps += story.steps
        if story.parts_ms:
            tables.append(Table(title="wait, milliseconds", rows=(dict(story.parts_ms),)))
        parts = tuple(part.model_dump(mode="json", exclude={"missing"}) for part in story.partitions)
        if parts:
            tables.append(Table(title="partitions", rows=parts))
    steps.sort(key=lambda step: step.time or "")
    return Answer(title=title, sentences=tuple(_write_sentences(rows)), steps=tuple(steps), tables=tuple(tables))


def _is_append(operation: Row) -> bool:
    return bool(operation["operation"] == "produce")


def _make_story_rows(rows: RequestRows, lines: Lines) -> StoryRows:
    assert rows.operation is not None
    request = [{**rows.line, "time": rows.operation["line_time"]}] if rows.line is not None else []
    for part in request:
        part |= {name: rows.operation[name] for name in ("broker_id", "connection", "correlation_id")}
    return StoryRows([rows.operation], request, rows.fetches, lines.texts, lines.paths)


def _write_sentences(rows: RequestRows) -> Iterator[str]:
    phases, operation = rows.phases, rows.operation
    longest = max(PHASES, key=lambda name: phases[PHASES[name]] or 0)
    yield (
        f"It took {ms(phases['total_time_ms'])} ms; the longest phase was {longest.replace('_', ' ')}, "
        f"{ms(phases[PHASES[longest]])} ms."
    )
    if operation is None:
        yield "Nothing of it waited in a purgatory: no row of gold.delayed_operations is of it."
        return
    if operation["error_codes"] and any(operation["error_codes"]):
        errors = ", ".join(name_error(code) for code in operation["error_codes"] if code)
        yield f"It was answered with {errors}."
    reason = f" ({operation['class_reason']})" if operation["class_reason"] else ""
    bug = f"; {operation['known_bug']} has this signature" if operation["known_bug"] else ""
    distance = (
        "" if operation["residual_ms"] is None else f", {ms(operation['residual_ms'])} ms from what the rules ask"
    )
    yield f"Cause: {operation['cause']}; {operation['class']}{reason}{distance}{bug}."
    if operation["closing_replica"] is not None:
        yield from _describe_wait(operation)


def _describe_wait(operation: Row) -> Iterator[str]:
    replica, role = operation["closing_replica"], operation["closing_role"]
    place = name_partition(operation["closing_topic"], operation["closing_partition"])
    yield f"It waited {ms(operation['wait_ms'])} ms, last of all for broker {replica}{_ROLES.get(role, '')} at {place}."
    parts = {name: operation[column] for name, column in SPLIT.items() if operation[column]}
    if parts:
        longest = max(parts, key=lambda name: parts[name])
        yield f"Most of it, {ms(parts[longest])} ms, it waited {_PARTS[longest]}."
    if operation["wait_without_closing_ms"] is not None:
        yield f"Without broker {replica} it would have waited {ms(operation['wait_without_closing_ms'])} ms."


def _collect_points(rows: RequestRows) -> Iterator[Point]:
    """Yield further steps: about other replicas for an append, else all steps."""
    operation = rows.operation
    if operation is not None and _is_append(operation):
        yield from _collect_other_replicas(rows, operation)
        return
    phases = rows.phases
    broker, arrival = phases["broker_id"], phases["arrival_time"]
    yield Point(arrival, f"Broker {broker} read the request from its socket.")
    taken_up = arrival + round(phases["request_queue_time_ms"] * 1000)
    yield Point(taken_up, "A request handler took it up.")
    handled = taken_up + round(phases["local_time_ms"] * 1000)
    if operation is not None:
        waits = f"it waits for {operation['min_bytes']} bytes" if operation["parked"] else "it has what it asked for"
        yield Point(handled, f"Handled: {waits}.")
        if operation["lowest_time"] is not None:
            until = iso_utc(operation["highest_time"])[11:-1]
            what = f"Kafka's rules allow the answer from here on, and ask for it by {until} ({operation['cause']})."
            yield Point(operation["lowest_time"], what)
    answered = handled + round(phases["remote_time_ms"] * 1000)
    size = operation["response_bytes"] if operation is not None else None
    yield Point(answered, f"Answered{'' if size is None else f' with {size} bytes'}.", rows.line)


def _collect_other_replicas(rows: RequestRows, operation: Row) -> Iterator[Point]:
    place = operation["closing_topic"], operation["closing_partition"]
    part = next((part for part in operation["partitions"] or () if (part["topic"], part["partition"]) == place), None)
    if part is None or part["required_offset"] is None:
        return
    seen = {operation["closing_replica"]}
    for fetch in sorted(rows.fetches, key=lambda fetch: int(fetch["dequeued_time"])):
        has_it = fetch["fetch_offset"] is not None and fetch["fetch_offset"] >= part["required_offset"]
        if has_it and fetch["replica_id"] not in seen and fetch["handled_time"] >= operation["handled_time"]:
            seen.add(fetch["replica_id"])
            what = (
                f"Fetch of broker {fetch['replica_id']} at offset {fetch['fetch_offset']}: it has all of the records."
            )
            yield Point(fetch["dequeued_time"], what, fetch)


#: Requests that an ambiguous question lists.
CANDIDATES_MAX = 20

_KEY = "cluster_id = $cluster AND broker_id = $broker AND correlation_id = $correlation"
_SAME = f"{_KEY} AND connection IS NOT DISTINCT FROM $connection"


def find_by_id(reader: LakeReader, request_id: str) -> list[dict[str, Any]]:
    """Return the keys of requests whose operation id starts with `request_id`."""
    return reader.rows(
        f"""SELECT cluster_id, broker_id, connection, correlation_id, epoch_us(line_time) AS line_time, api, client_id,
                   operation_id
            FROM gold_delayed_operations WHERE starts_with(operation_id, $id) ORDER BY line_time
            LIMIT {CANDIDATES_MAX + 1}""",
        id=request_id,
    )


def find_by_number(
    reader: LakeReader,
    broker_id: int,
    correlation_id: int,
    connection: str | None,
    since_us: int | None,
    until_us: int | None,
    cluster_id: str | None,
) -> list[dict[str, Any]]:
    """Return the keys of requests to a broker with a correlation id.

    Args:
        connection: part of the connection's name. None for any.
        since_us, until_us: time range, us. None for no bound.
        cluster_id: the only cluster to search. None for all.
    """
    return reader.rows(
        f"""SELECT cluster_id, broker_id, connection, correlation_id, epoch_us(line_time) AS line_time, api, client_id
            FROM gold_request_phases
            WHERE broker_id = $broker AND correlation_id = $correlation
              AND ($connection IS NULL OR contains(connection, $connection))
              AND ($cluster IS NULL OR cluster_id = $cluster)
              AND line_time >= $since AND arrival_time < $until
            ORDER BY line_time LIMIT {CANDIDATES_MAX + 1}""",
        broker=broker_id,
        correlation=correlation_id,
        connection=connection,
        cluster=cluster_id,
        since=instant(since_us or 0),
        until=instant(until_us if until_us is not None else FAR_US),
    )


def read_request(reader: LakeReader, key: dict[str, Any]) -> RequestRows:
    """Return the rows of one request."""
    parameters = {
        "cluster": key["cluster_id"],
        "broker": key["broker_id"],
        "correlation": key["correlation_id"],
        "connection": key["connection"],
        "line_time": instant(key["line_time"]),
    }
    (phases, *_) = reader.rows(
        f"SELECT * FROM gold_request_phases WHERE {_SAME} AND line_time = $line_time", **parameters
    )
    operations = reader.rows(
        f"SELECT * FROM gold_delayed_operations WHERE {_SAME} AND line_time = $line_time", **parameters
    )
    tables = {"PRODUCE": "silver_produce_requests", "FETCH": "silver_fetch_requests"}
    lines = reader.rows(
        f"""SELECT file_id, byte_offset, line_no FROM {tables.get(phases["api"], "silver_requests")}
            WHERE {_SAME} AND time = $line_time""",
        **parameters,
    )
    operation = operations[0] if operations else None
    fetches = read_fetches_near(reader, operations[:1], of_others=True)
    return RequestRows(phases, operation, lines[0] if lines else None, fetches)
