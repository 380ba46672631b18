"""Workers give what plain folds give, as tables; what is not final is told apart, and goes on from the frozen folds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema

from highwater.pipelines.base.blobs import read_blobs, shape
from highwater.pipelines.base.groups import Key
from highwater.pipelines.kafka.context import Contexts
from highwater.pipelines.kafka.versions import rules_for
from highwater.pipelines.replay import partition_worker as p
from highwater.pipelines.replay import session_worker as w
from highwater.pipelines.replay.fetch_events import EVENT_TYPES as SESSION_TYPES
from highwater.pipelines.replay.fetch_sessions import FetchSession
from highwater.pipelines.replay.isr_evidence import IsrEvidence
from highwater.pipelines.replay.judge import Tolerances
from highwater.pipelines.replay.late import OPERATION_SHAPES, table_of
from highwater.pipelines.replay.outcome import PartitionOutcome
from highwater.pipelines.replay.partition_fold import PartitionFold
from highwater.pipelines.replay.session_worker import fetch_operation
from highwater.pipelines.replay.timeline import COLUMN_TYPES
from highwater.pipelines.replay.wakes import Wake
from highwater.pipelines.replay.watches import Watch
from highwater.schemas.events import PRODUCE, Event
from highwater.schemas.gold import DELAYED_OPERATIONS
from highwater.schemas.session_events import BATCH, FETCH, ROLL, Origin, SessionEvent
from tests.states import DictStates
from tests.unit.replay.cluster import TOPIC, Logged
from tests.unit.replay.test_cluster_properties import (
    FOLLOWER_CONNECTION,
    UNTIL_MS,
    clusters,
    replay,
    session_events,
)

LIMITS = Tolerances(5_000, 100_000)
CONTEXTS = Contexts({("c", 1): "3.9.1"})
ORIGIN = Origin(1, 2, "client", 3, None)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: The columns of a watch where none is.
NO_WATCH = (None,) * len(Watch._fields)
SESSION_ROWS = w.KEY_TYPES | SESSION_TYPES
Rows = dict[str, list[dict[str, Any]]]


def batches(types: Mapping[str, str], rows: Iterable[Sequence[Any]], size: int = 7) -> list[pa.RecordBatch]:
    schema, listed = to_arrow_schema(shape(types)), list(rows)
    parts = [listed[at : at + size] for at in range(0, len(listed), size)]
    columns = [zip(*part, strict=True) for part in parts]
    return [
        pa.RecordBatch.from_arrays(
            [pa.array(values, field.type) for values, field in zip(of, schema, strict=True)], schema=schema
        )
        for of in columns
    ]


def tables(worker: Any, given_batches: list[pa.RecordBatch], states: Mapping[Key, bytes] | None = None) -> Rows:
    blobs = worker(iter(given_batches), DictStates(states))
    return read_blobs((row["table"], row["rows"]) for blob in blobs for row in blob.to_pylist())


def comparable(operation: Mapping[str, Any]) -> dict[str, Any]:
    """What a fetch says of itself, with plain values."""
    row = {name: operation[name] for name in DELAYED_OPERATIONS.column_names if operation.get(name) is not None}
    for name in row.keys() & {"cluster_id", "broker_id", "connection"}:
        del row[name]
    return {name: _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return (value - EPOCH) // timedelta(microseconds=1)
    return list(value) if isinstance(value, tuple) else value


def of_partitions(
    logged: Logged,
    since_us: int = 0,
    until_us: int | None = None,
    folds: Rows | None = None,
    contexts: Contexts = CONTEXTS,
) -> Rows:
    sealed = {} if until_us is None else {("c", 1): until_us}
    rows = []
    for partition, events in sorted(logged.partitions.items()):
        key = ("c", TOPIC, partition, 1)
        rows += [(*key, *event, None, *NO_WATCH) for event in events if event.time_us >= since_us]
    worker = p.PartitionWorker(contexts, {}, sealed, {("c", 1): since_us})
    states = {("c", TOPIC, fold["partition"], 1): fold["frozen"] for fold in (folds or {}).get(p.FOLDS, [])}
    return tables(worker, batches(p.KEY_TYPES | COLUMN_TYPES, rows), states)


@settings(max_examples=25, deadline=None)
@given(clusters(), st.integers(1, UNTIL_MS * 1_000))
def test_partitions(logged: Logged, sealed_us: int) -> None:
    expected = []
    for _, events in sorted(logged.partitions.items()):
        fold = PartitionFold(CONTEXTS.of("c", 1, TOPIC), IsrEvidence())
        given_outputs = [*(output for event in events for output in fold.observe(event)), *fold.finish()]
        expected += [p.outcome_values(output) for output in given_outputs if isinstance(output, PartitionOutcome)]
    whole = of_partitions(logged, until_us=sealed_us)

    assert outcomes(whole) == expected
    rest = of_partitions(logged, since_us=sealed_us, until_us=UNTIL_MS * 10_000, folds=whole)
    for table in (p.OUTCOMES, p.WAKES):
        undecided = [{**row, "final": None} for row in whole[table] if not row["final"]]
        # A partition without later events comes after all that have some.
        resumed = sorted(rest[table], key=itemgetter("partition"))
        assert [{**row, "final": None} for row in resumed] == undecided
    assert {row["partition"] for row in whole[p.FOLDS]} == set(logged.partitions)
    open_us = [row["handled_us"] for row in whole[p.OUTCOMES] if not row["final"]]
    assert min((row["waiting_us"] for row in whole[p.OPEN] if row["waiting_us"]), default=None) == (
        min(open_us, default=None)
    )


def outcomes(rows: Rows) -> list[tuple[Any, ...]]:
    return [
        tuple(tuple(row[name]) if isinstance(row[name], list) else row[name] for name in p.OUTCOME_TYPES)
        for row in rows[p.OUTCOMES]
    ]


@settings(max_examples=25, deadline=None)
@given(clusters(), st.integers(1, UNTIL_MS * 1_000), st.integers(1, UNTIL_MS * 1_000))
def test_each_version_of_a_broker_has_its_own_rules(logged: Logged, upgraded_us: int, sealed_us: int) -> None:
    contexts = Contexts({("c", 1): "4.0.0"}, starts={("c", 1): ((0, "2.3.1"), (upgraded_us, "4.0.0"))})
    expected = []
    for _, events in sorted(logged.partitions.items()):
        for version, is_later in (("2.3.1", False), ("4.0.0", True)):
            fold = PartitionFold(contexts.of("c", 1, TOPIC, version), IsrEvidence())
            era = [event for event in events if (event.time_us >= upgraded_us) == is_later]
            given_outputs = [*(output for event in era for output in fold.observe(event)), *fold.finish()]
            expected += [p.outcome_values(output) for output in given_outputs if isinstance(output, PartitionOutcome)]
    whole = of_partitions(logged, until_us=sealed_us, contexts=contexts)
    assert outcomes(whole) == expected
    rest = of_partitions(logged, sealed_us, UNTIL_MS * 10_000, whole, contexts)
    for table in (p.OUTCOMES, p.WAKES):
        undecided = [{**row, "final": None} for row in whole[table] if not row["final"]]
        assert [{**row, "final": None} for row in rest[table]] == undecided


@settings(max_examples=25, deadline=None)
@given(clusters(), st.integers(1, UNTIL_MS * 1_000))
def test_sessions(logged: Logged, sealed_us: int) -> None:
    _, wakes = replay(logged, "3.9.1")
    events = [event._replace(origin=ORIGIN) for event in session_events(logged, wakes, FOLLOWER_CONNECTION)]
    session = FetchSession(rules_for("3.9.1"))
    outcomes = [*(output for event in events for output in session.observe(event)), *session.finish()]
    expected = [comparable(fetch_operation(outcome, LIMITS)) for outcome in outcomes]

    def fetches(given_events: list[SessionEvent], frozen: bytes | None = None) -> Rows:
        key = ("c", 1, FOLLOWER_CONNECTION)
        rows = [(*key, *event[:-1], *event.origin) for event in given_events]
        worker = w.SessionWorker(LIMITS, {("c", 1): ((0, "3.9.1"),)}, {("c", 1): sealed_us})
        return tables(worker, batches(SESSION_ROWS, rows), {} if frozen is None else {key: frozen})

    def values(rows: Rows) -> list[dict[str, Any]]:
        assert all(table_of(row) == table for table in OPERATION_SHAPES for row in rows[table])
        given = [comparable(row) for table in OPERATION_SHAPES for row in rows[table]]
        order = [operation["operation_id"] for operation in expected]
        return sorted(given, key=lambda row: order.index(row["operation_id"]))

    whole = fetches(events)
    assert values(whole) == expected
    (fold,) = whole[w.FOLDS] if events else [None]
    if fold is not None:
        rest = fetches([event for event in events if event.time_us >= sealed_us], fold["frozen"])
        count = len(values(rest))
        assert values(rest) == (expected[-count:] if count else [])
        assert fold["pending"] <= count


def test_a_fetch_is_judged_by_the_version_that_took_it_up(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, tuple[int, ...]]] = []

    def observe(session: FetchSession, event: SessionEvent) -> list[Any]:
        seen.append((event.time_us, session.rules.version))
        return []

    monkeypatch.setattr(FetchSession, "observe", observe)
    monkeypatch.setattr(FetchSession, "finish", lambda session: [])
    events = [SessionEvent(time_us, FETCH, time_us, origin=ORIGIN) for time_us in (10, 20, 30)]
    rows = [("c", 1, FOLLOWER_CONNECTION, *event[:-1], *event.origin) for event in events]
    eras = ((0, "2.3.1"), (20, "2.8.2"), (25, "3.9.1"))
    tables(w.SessionWorker(LIMITS, {("c", 1): eras}, {}), batches(SESSION_ROWS, rows))
    assert seen == [(10, (2, 3, 1)), (20, (2, 8, 2)), (30, (3, 9, 1))]


def test_only_a_session_that_begins_after_the_seal_is_told_of_older_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen = FetchSession(rules_for("3.9.1")).freeze()
    seen: list[tuple[str, int]] = []

    def observe(session: FetchSession, event: SessionEvent) -> list[Any]:
        seen.append((event.kind, event.time_us))
        return []

    monkeypatch.setattr(FetchSession, "observe", observe)
    events = [SessionEvent(time_us, kind, origin=ORIGIN) for time_us in (50, 150) for kind in (BATCH, ROLL)]
    rows = [("c", 1, connection, *event[:-1], *event.origin) for connection in ("carried", "new") for event in events]
    worker = w.SessionWorker(LIMITS, {}, {}, {("c", 1): 100})
    tables(worker, batches(SESSION_ROWS, rows), {("c", 1, "carried"): frozen})
    assert seen == [(BATCH, 150), (ROLL, 150), (ROLL, 50), (BATCH, 150), (ROLL, 150)]


def test_a_wake_goes_to_the_connections_that_read_the_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    hour_us = 3_600_000_000
    wake = Wake(BATCH, 7, 100, appended_lowest_us=2 * hour_us, committed_lowest_us=2 * hour_us + 1)
    monkeypatch.setattr(PartitionFold, "observe", lambda fold, event: [wake] if event.kind == PRODUCE else [])
    watches = [
        Watch("follower", "id", True, False, hour_us, 3 * hour_us),
        Watch("consumer", TOPIC, False, False, hour_us, 3 * hour_us),
    ]
    key = ("c", TOPIC, 0, 1)
    # What an earlier run left is a row as JSON, without what is null.
    left = orjson.dumps({"wake": BATCH, "wake_offset": 3, "appended_lowest_us": 2 * hour_us - 1, "unstable": False})
    rows = [(*key, *Event(-1, p.WATCH, -1), None, *watch) for watch in watches]
    rows.append((*key, *Event(-1, p.CARRIED_WAKE, -1), left, *NO_WATCH))
    only_carried = [("c", TOPIC, 1, 1, *row[4:]) for row in rows]
    rows.append((*key, *Event(2 * hour_us, PRODUCE, 2 * hour_us), None, *NO_WATCH))
    given_rows = tables(
        p.PartitionWorker(CONTEXTS, {}, {}), batches(p.KEY_TYPES | COLUMN_TYPES, [*rows, *only_carried])
    )
    names = ("connection", "topic", "partition", "time_us", "base_offset", "size_bytes")
    assert [tuple(row[name] for name in names) for row in given_rows[p.SESSION_WAKES]] == [
        ("follower", "id", 0, 2 * hour_us - 1, 3, None),
        ("follower", "id", 0, 2 * hour_us, 7, 100),
        ("consumer", TOPIC, 0, 2 * hour_us + 1, 7, 100),
        ("follower", "id", 1, 2 * hour_us - 1, 3, None),
    ]
    assert [row["wake_offset"] for row in given_rows[p.WAKES]] == [7]
    assert given_rows[p.FOLDS] == []


def test_a_fetch_whose_line_stands_in_two_files_is_one() -> None:
    """Also where two fetches were taken up in one instant, and the order of rows is not that of their numbers."""
    events = [
        SessionEvent(
            time_us, FETCH, time_us, operation_id=name, replica_id=2, session_epoch=0, sequence=number, origin=ORIGIN
        )
        for time_us, name, number in ((5, "z", 4), (10, "a", 6), (10, "a", 6), (10, "b", 5), (10, "b", 5))
    ]
    rows = [("c", 1, FOLLOWER_CONNECTION, *event[:-1], *event.origin) for event in events]
    judged = tables(w.SessionWorker(LIMITS, {("c", 1): ((0, "3.9.1"),)}, {}), batches(SESSION_ROWS, rows))
    operation_ids = [row["operation_id"] for table in OPERATION_SHAPES for row in judged[table]]
    assert sorted(operation_ids) == ["a", "b", "z"]
