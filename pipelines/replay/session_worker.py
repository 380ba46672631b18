"""One worker's part of the replay of delayed fetches, on plain Arrow data: a key is a connection to a broker. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from highwater.pipelines.base.blobs import Batches, Tables, shape
from highwater.pipelines.base.groups import Columns, Key, States, join_states
from highwater.pipelines.kafka.context import History, Spans, find_value
from highwater.pipelines.kafka.errors import FENCED_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER
from highwater.pipelines.kafka.versions import rules_for
from highwater.pipelines.replay import outcome as o
from highwater.pipelines.replay.coarse import blurred_fetch, is_coarse
from highwater.pipelines.replay.fetch_rules import FetchOutcome
from highwater.pipelines.replay.fetch_sessions import FetchSession
from highwater.pipelines.replay.judge import Tolerances, columns, judge
from highwater.pipelines.replay.late import OPERATION_SHAPES, table_of
from highwater.pipelines.replay.watches import LASTING
from highwater.schemas.session_events import FETCH, NAMED, Origin, SessionEvent

#: Causes that are an error of the response. It agrees by definition.
_ERRORS = (o.ERROR, o.SESSION_ERROR, o.REMOTE_ERROR)
_REMOTE = (o.REMOTE_READ, o.REMOTE_ERROR, o.REMOTE_TIMER)
#: Errors with which the rules answer.
_PREDICTED = {o.LEADERSHIP_LOST: NOT_LEADER_OR_FOLLOWER, o.FENCED_EPOCH: FENCED_LEADER_EPOCH}


def fetch_operation(outcome: FetchOutcome, limits: Tolerances) -> dict[str, Any]:
    """Return a fetch's columns of ``gold.delayed_operations``, except the connection's. Times are us.

    Returns:
        ``closing_topic`` is the topic as the connection's fetches identify it: by id since version 13.
    """
    fetch = outcome.event
    arrival_us, line_us, client_id, correlation_id, wait_ms = fetch.origin
    handled_us = fetch.latest_us or fetch.time_us
    completed_us = fetch.completed_us or handled_us
    predicted = _PREDICTED.get(outcome.cause)
    # A broker that learns of the change before its partition has changed answers NOT_LEADER.
    expected = {predicted, _PREDICTED[o.LEADERSHIP_LOST]} if predicted is not None else set()
    judgement = judge(
        outcome.lowest_us,
        outcome.highest_us,
        completed_us,
        errors_agree=outcome.cause in _ERRORS
        or outcome.errors.issuperset(fetch.error_codes)
        or bool(expected & set(fetch.error_codes)),
        missing=outcome.missing,
        proven_early=False,
        limits=limits,
    )
    topic, partition = outcome.closing or (None, None)
    is_remote, read_from = outcome.cause in _REMOTE, "follower" if outcome.followed else "leader"
    return {
        "operation": "fetch",
        "api": "FETCH",
        "operation_id": fetch.operation_id,
        "arrival_time": arrival_us,
        "line_time": line_us,
        "client_id": client_id,
        "correlation_id": correlation_id,
        "wait_ms": wait_ms,
        "handled_time": handled_us,
        "completed_time": completed_us,
        "timeout_ms": fetch.max_wait_ms,
        "replica_id": fetch.replica_id,
        "min_bytes": fetch.min_bytes,
        "isolation_level": fetch.isolation_level,
        "parked": outcome.parked,
        "waited_as": None if not outcome.parked else "DelayedRemoteFetch" if is_remote else "DelayedFetch",
        "read_from": None if (fetch.replica_id or 0) >= 0 else "tier" if is_remote else read_from,
        "bytes_known": outcome.bytes_known,
        "error_codes": fetch.error_codes,
        "predicted_error_codes": fetch.error_codes
        if outcome.cause in _ERRORS
        else ()
        if predicted is None
        else (predicted,),
        "succeeded": not fetch.error_codes,
        **columns(outcome.lowest_us, outcome.highest_us, judgement),
        "cause": outcome.cause,
        "closing_topic": topic,
        "closing_partition": partition,
        "response_bytes": fetch.response_bytes,
        "partitions": (),
    }


KEY_TYPES = {"cluster_id": "string", "broker_id": "int", "connection": "string"}
#: The session as of the seal, with the fetches that it holds and the time of its last event.
FOLDS = "folds"
SHAPES = {
    **OPERATION_SHAPES,
    FOLDS: shape(KEY_TYPES | {"frozen": "binary", "pending": "long", "last_us": "long"}),
}
#: List fields, with the empty list for null.
_LISTS = [at for at, name in enumerate(SessionEvent._fields[:-1]) if SessionEvent._field_defaults.get(name) == ()]


class SessionWorker:
    """Worker that replays the fetches of each connection, and classifies them.

    Events are sorted by `pipelines.replay.fetch_events.ORDER`, else the session raises. A connection resumes from its
    state at the last checkpoint. Its state at the new checkpoint is written as a row.

    Args:
        limits: distances from the prediction that are explained, or late.
        eras: by (cluster, broker), (start, version) of each version that ran.
        sealed_us: by (cluster, broker), end of the final part of the fetch replay, exclusive, us.
        since_us: by (cluster, broker), time of the checkpoint of the saved sessions.
        coarse: (start, end) times in which timestamps are whole seconds.
        remote_waits: remote.fetch.max.wait.ms by (cluster, broker), where known.
    """

    def __init__(
        self,
        limits: Tolerances,
        eras: Mapping[tuple[str, int], History],
        sealed_us: Mapping[tuple[str, int], int],
        since_us: Mapping[tuple[str, int], int] = MappingProxyType({}),
        coarse: Spans | None = None,
        remote_waits: Mapping[tuple[str, int], History] = MappingProxyType({}),
    ) -> None:
        self._remote_waits = remote_waits
        self._limits = limits
        self._eras = eras
        self._sealed_us = sealed_us
        self._since_us = since_us
        self._coarse = coarse or {}

    def __call__(self, batches: Batches, states: States) -> Batches:
        """Replay batches of `KEY_TYPES`, `SessionEvent` and `Origin` columns. `states`: saved sessions by key."""
        tables = Tables(SHAPES)
        for key, frozen, events in join_states(states, batches, len(KEY_TYPES), _read_events):
            yield from self._replay(key, frozen, events, tables)
        yield from tables.rest()

    def _replay(self, key: Key, frozen: bytes | None, events: Iterator[SessionEvent], tables: Tables) -> Batches:
        cluster_id, broker_id, _ = key
        eras = self._eras.get((cluster_id, broker_id), ())
        rules = rules_for(find_value(eras, 0))
        sealed_us = self._sealed_us.get((cluster_id, broker_id))
        since_us = self._since_us.get((cluster_id, broker_id), 0)
        session = FetchSession(rules) if frozen is None else FetchSession.thawed(frozen, rules)
        session.remote_waits = self._remote_waits.get((cluster_id, broker_id), ())
        fetched: str | None = None
        rows = _Rows(key, tables, self._limits, self._coarse)
        for event in events:
            if event.kind == NAMED:
                rows.names[event.topic] = event.name
                continue
            # A session that begins after the seal still has to know where the log and its last segment began before.
            if event.time_us < since_us and (frozen is not None or event.kind not in LASTING):
                continue
            if sealed_us is not None and event.time_us >= sealed_us:
                _save_session(key, session, sealed_us, tables)
                sealed_us = None
            if event.kind == FETCH and event.operation_id is not None:
                if event.operation_id == fetched:
                    continue  # the same line in two overlapping files
                fetched = event.operation_id
            if len(eras) > 1 and event.kind == FETCH:
                session.rules = rules_for(find_value(eras, event.time_us))
            for outcome in session.observe(event):
                rows.add(outcome)
            if tables.full:
                yield from tables.take()
        if sealed_us is not None:
            _save_session(key, session, sealed_us, tables)
        for outcome in session.finish():
            rows.add(outcome)


class _Rows:
    """Writes the fetches of one connection.

    Attributes:
        names: topic name by topic id.
    """

    def __init__(self, key: Key, tables: Tables, limits: Tolerances, coarse: Spans) -> None:
        self.names: dict[str | None, str | None] = {}
        self._key = dict(zip(KEY_TYPES, key, strict=True))
        self._tables = tables
        self._limits = limits
        self._broker = (self._key["cluster_id"], self._key["broker_id"])
        self._coarse = coarse

    def add(self, outcome: FetchOutcome) -> None:
        event = outcome.event
        handled_us = event.latest_us or event.time_us
        if is_coarse(self._coarse, self._broker, handled_us, event.completed_us or handled_us):
            outcome = blurred_fetch(outcome)
        row = self._key | fetch_operation(outcome, self._limits)
        topic = row["closing_topic"]
        row["closing_topic"] = self.names.get(topic, topic)
        self._tables.add_named(table_of(row), row)


def _save_session(key: Key, session: FetchSession, sealed_us: int, tables: Tables) -> None:
    if not session.is_gone(sealed_us):
        tables.add(FOLDS, (*key, session.freeze(), session.pending, session.last_us))


def _read_events(columns: Columns) -> Iterable[SessionEvent]:
    for at in _LISTS:
        columns[at] = [value or () for value in columns[at]]
    fields, origins = columns[: -len(Origin._fields)], columns[-len(Origin._fields) :]
    return map(SessionEvent._make, zip(*fields, zip(*origins, strict=True), strict=True))
