"""One worker's part of the fold of connections to a broker, on plain Arrow data: sorted rows in, blobs out. Pure.

**Chains.** A follower has one fetch under way at a time. The broker reads a new fetch from a connection only after it
has sent the response to the fetch before. So the correlation ids of a connection count its fetches without a gap, and a
gap means a missing line. Every time of a fetch is before the arrival of the next one, which corrects lines that were
logged late. A fetch has one row of its own and one row per listed partition: neighbours are found by number.

**Gaps.** Spans without a fetch on a follower's connection, and spans without a line of a broker.

**Watches.** Which connection reads which partition, from when until when.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import groupby
from operator import attrgetter
from typing import Final

from highwater.pipelines.base.blobs import Batches, Tables, shape
from highwater.pipelines.base.groups import Key, each, groups
from highwater.pipelines.base.instants import NEVER_US
from highwater.pipelines.kafka.seals import Broker
from highwater.pipelines.replay.isr_evidence import FETCH_GAP_US, Span
from highwater.pipelines.replay.partition_events import ROW_TYPES as EVENT_ROW_TYPES
from highwater.schemas import connection_rows as c
from highwater.schemas import events as e
from highwater.schemas.connection_rows import ConnectionRow

KEY_TYPES = {"cluster_id": "string", "broker_id": "int", "connection": "string"}
#: Microseconds without a fetch after which a connection is gone: brokers close idle ones after ten minutes.
GONE_US: Final = 3_600_000_000
#: Microseconds without a line after which a broker is silent: it paused, or had nothing to log.
SILENCE_US: Final = 1_000_000
#: Requests are logged for this long before the first and after the last one that is there.
LOGGED_SLACK_US: Final = 10_000_000
#: How soon after an answer a follower's next fetch is there.
_UNSEEN_US: Final = 100_000

FETCHES = "fetches"
WATCHES = "watches"
CHAIN_ENDS = "chain_ends"
ANSWERS = "answers"
GAPS = "gaps"
RESUMED = "resumed"
LAST_FETCHES = "last_fetches"
SILENCES = "silences"
LOGGED = "logged"
_INSTANTS = dict.fromkeys(("arrival_us", "dequeued_us", "handled_us", "completed_us", "sent_us"), "long")
_BROKER_TYPES = {"cluster_id": "string", "broker_id": "int"}
SHAPES = {
    #: Events of followers' fetches, without the ends of their chains.
    FETCHES: shape(EVENT_ROW_TYPES),
    #: As `schemas.state.WATCH` carries them; ``until_us`` is when the connection was last heard of.
    WATCHES: shape(
        KEY_TYPES
        | {"session_topic": "string", "topic": "string", "topic_id": "string", "partition": "int"}
        | {"replica_id": "int", "isolation_level": "int", "from_us": "long", "went_us": "long", "until_us": "long"}
    ),
    #: Answers of a leader to a follower that serves consumers, and when that follower, ``broker_id``, fetched again:
    #: at that time it has applied the answer. ``end_offset`` is its fetch offset then.
    ANSWERS: shape(
        {"cluster_id": "string", "topic": "string", "partition": "int", "broker_id": "int", "leader_id": "int"}
        | dict.fromkeys(("completed_us", "next_us", "offset", "end_offset"), "long")
        | {"high_watermark": "long", "stable_offset": "long", "size_bytes": "long", "leader_epoch": "int"}
    ),
    #: When the last fetch of a chain arrived.
    CHAIN_ENDS: shape(KEY_TYPES | {"chain": "string", "arrival_us": "long"}),
    #: As `pipelines.replay.isr_evidence.Gap`.
    GAPS: shape(KEY_TYPES | {"since_us": "long", "handled_us": "long", "until_us": "long", "complete": "boolean"}),
    #: Connections that continue from an earlier run: when the last fetch of that run was dequeued.
    RESUMED: shape(KEY_TYPES | {"since_us": "long"}),
    #: The last fetch before the seal, as `schemas.state.CONNECTION` carries it.
    LAST_FETCHES: shape(
        KEY_TYPES | {"replica_id": "int", "correlation_id": "int"} | _INSTANTS | {"carried_chain_no": "int"}
    ),
    #: Where the broker wrote no line while its requests were logged; ``since_us`` null: its last line before the seal.
    SILENCES: shape(_BROKER_TYPES | {"since_us": "long", "until_us": "long"}),
    #: Over which span requests of any fetch are logged; a row per task.
    LOGGED: shape(_BROKER_TYPES | {"since_us": "long", "until_us": "long"}),
}
_FETCH_RANK = e.RANK[e.FETCH]
_NO_INSTANTS = (None,) * len(_INSTANTS)
#: Values of the columns after an event.
_NO_MORE = (None,) * (len(EVENT_ROW_TYPES) - len(e.Event._fields) - 5)
_ARRIVAL = ConnectionRow._fields.index("arrival_us")
_BEHIND_SENT = ConnectionRow._fields.index("sent_us") + 1
#: Of `Instants`.
_HANDLED = 2

#: Of a fetch: arrived, dequeued, handled, completed, sent.
Instants = tuple[int, int, int, int, int]


class ConnectionWorker:
    """Worker that orders the fetches of each connection by correlation id and finds gaps.

    Args:
        sealed_us: by (cluster, broker), end of the final part of this run's replay, exclusive, us.
        topic_names: topic name by (cluster, topic id).
        last_lines: by (cluster, broker), time of the last line before the checkpoint, and whether requests were logged
            at that time.
        serving: (cluster, broker) that consumers with a rack fetch from, possibly as followers (KIP-392).
    """

    def __init__(
        self,
        sealed_us: Mapping[Broker, int],
        topic_names: Mapping[tuple[str, str], str],
        last_lines: Mapping[Broker, tuple[int, bool]],
        serving: Collection[Broker] = (),
    ) -> None:
        self._serving = serving
        self._sealed_us = sealed_us
        self._topic_names = topic_names
        self._last_lines = last_lines

    def __call__(self, batches: Batches) -> Batches:
        """Convert batches of `KEY_TYPES` and `ConnectionRow`, sorted by connection. Signature of ``mapInArrow``."""
        tables = Tables(SHAPES)
        for key, rows in groups(batches, len(KEY_TYPES), each(ConnectionRow._make)):
            cluster_id, broker_id, connection = key
            sealed_us = self._sealed_us.get((cluster_id, broker_id))
            if not connection:
                last_us, is_request = self._last_lines.get((cluster_id, broker_id), (0, False))
                _write_silences((cluster_id, broker_id), rows, sealed_us, last_us, is_request, tables)
                continue
            for is_watch, some in groupby(rows, key=lambda row: row.kind == c.WATCH):
                if is_watch:
                    self._write_watches(key, some, tables)
                else:
                    chains = _Chains(key, tables, sealed_us, self._serving)
                    for row in some:
                        chains.add(row)
                        if tables.full:
                            yield from tables.take()
                    chains.close()
        yield from tables.rest()

    def _write_watches(self, key: Key, rows: Iterable[ConnectionRow], tables: Tables) -> None:
        """Merge the time ranges in which the connection fetched each partition, and write them to `tables`.

        A row without a partition extends the ranges of all partitions.
        """
        watches: dict[tuple[str | None, str | None, str | None, int], list[int]] = {}
        asked_us = 0
        for row in rows:
            assert row.from_us is not None
            assert row.until_us is not None
            asked_us = max(asked_us, row.until_us)
            if row.partition is None:
                continue
            seen = (-1 if row.replica_id is None else row.replica_id, row.isolation_level or 0)
            values = [*seen, row.from_us, row.until_us]
            # A carried row may have the name already; another row may name the same topic by id.
            topic = row.topic or self._topic_names.get((key[0], row.topic_id or ""))
            place = row.session_topic, topic, row.topic_id, row.partition
            before = watches.setdefault(place, values)
            for at, choose in enumerate((max, max, min, max)):
                before[at] = choose(before[at], values[at])
        for (session_topic, topic, topic_id, partition), (replica_id, isolation, from_us, _) in watches.items():
            # A session's requests list changes only, and ask for all its partitions.
            watch = (session_topic, topic, topic_id, partition, replica_id, isolation, from_us, asked_us, asked_us)
            tables.add(WATCHES, (*key, *watch))


def _write_silences(
    broker: Broker,
    rows: Iterable[ConnectionRow],
    sealed_us: int | None,
    last_us: int,
    is_request: bool,
    tables: Tables,
) -> None:
    """Write the times in which a broker logged nothing. Without a request log, silence proves no pause.

    Args:
        sealed_us: end of the final part of the replay, us. None if the broker has none.
        last_us: time of the last line before `rows`, us.
        is_request: that line was a request.
    """
    before_us = last_us
    silences: list[Span] = []
    requests = [last_us] if is_request else []
    spans: list[Span] = []
    for kind, of_kind in groupby(rows, key=attrgetter("kind")):
        if kind == c.LOGGED:
            spans += [(row.from_us or 0, row.until_us or 0) for row in of_kind]
            continue
        # Tasks may each have a part of the same second.
        for _, parts in groupby(of_kind, key=attrgetter("arrival_us")):
            some = list(parts)
            first_us = min(row.from_us for row in some if row.from_us is not None)
            if last_us and first_us - last_us > SILENCE_US:
                silences.append((last_us, first_us))
            last_us = max(row.until_us for row in some if row.until_us is not None)
            # Seals are at whole seconds, so a second is entirely on one side of a seal.
            if sealed_us is not None and last_us < sealed_us:
                before_us = last_us
            bounds = [
                bound for row in some for bound in (row.first_request_us, row.last_request_us) if bound is not None
            ]
            if bounds:
                requests = (
                    [min(*requests, *bounds), max(*requests, *bounds)] if requests else [min(bounds), max(bounds)]
                )
    if spans:
        tables.add(LOGGED, (*broker, min(since for since, _ in spans), max(until for _, until in spans)))
    if last_us:
        tables.add(SILENCES, (*broker, None, before_us))
    for since_us, until_us in silences:
        if requests and requests[0] <= since_us <= requests[-1] + LOGGED_SLACK_US:
            tables.add(SILENCES, (*broker, since_us, until_us))


class _Number:
    """The fetches with one correlation id on a connection. More than one if files overlap or the port was reused."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.fetches: list[ConnectionRow] = []
        self.listed: list[ConnectionRow] = []

    @property
    def last(self) -> Instants:
        """Return the timestamps of the newest fetch, or of its partition rows if the fetch line is missing."""
        return max(map(_get_instants, self.fetches or self.listed))


class _Chains:
    """Fetches of one connection in chains: no correlation id is missing within a chain."""

    def __init__(self, key: Key, tables: Tables, sealed_us: int | None, serving: Collection[Broker]) -> None:
        self._serving = serving
        self._key = key
        self._tables = tables
        self._sealed_us = sealed_us
        self._gathered: _Number | None = None
        self._waiting: _Number | None = None
        self._before: _Number | None = None
        self._chain_no = -1
        self._chain_end_us = 0
        self._fetch_before: ConnectionRow | None = None
        self._last: tuple[Instants, tuple[int | None, ...]] | None = None

    def add(self, row: ConnectionRow) -> None:
        """Add a fetch, or a partition in a fetch's request. Rows arrive by correlation id."""
        assert row.correlation_id is not None
        if self._gathered is None or self._gathered.number != row.correlation_id:
            self._finish_number()
            self._gathered = _Number(row.correlation_id)
        (self._gathered.listed if row.kind == c.LISTED else self._gathered.fetches).append(row)

    def close(self) -> None:
        """Write the last chain of the connection."""
        self._finish_number()
        self._finish_number()
        if self._fetch_before is not None:
            # A follower fetches again at once. If it is killed then, that fetch is never logged.
            row = self._fetch_before
            assert row.completed_us is not None
            self._tables.add(GAPS, (*self._key, row.dequeued_us, row.completed_us + _UNSEEN_US, NEVER_US, True))
        self._end_chain()
        if self._last is not None and self._sealed_us is not None:
            instants, numbers = self._last
            if instants[_HANDLED] + GONE_US >= self._sealed_us:
                replica_id, correlation_id, chain_no = numbers
                self._tables.add(LAST_FETCHES, (*self._key, replica_id, correlation_id, *instants, chain_no))

    def _finish_number(self) -> None:
        if self._waiting is not None:
            self._write_number(self._waiting, self._gathered)
        self._waiting, self._gathered = self._gathered, None

    def _write_number(self, fetch: _Number, after: _Number | None) -> None:
        before = self._before.last if self._before is not None and self._before.number == fetch.number - 1 else None
        follows = after is not None and after.number == fetch.number + 1
        after_us = after.last[0] if after is not None and follows else None
        for row in fetch.fetches:
            chain_no = row.carried_chain_no
            if chain_no is None and _check_previous(row, before) is None:
                chain_no = fetch.number
            if chain_no is not None and chain_no > self._chain_no:
                self._end_chain()
                self._chain_no = chain_no
        for row in fetch.fetches:
            self._add_fetch(row)
        for row in fetch.listed:
            self._add_listed(row, _check_previous(row, before), after_us)
        if follows and fetch.listed and (self._key[0], fetch.listed[0].replica_id) in self._serving:
            assert after is not None
            self._add_answers(fetch, after)
        self._before = fetch

    def _add_fetch(self, row: ConnectionRow) -> None:
        instants = _get_instants(row)
        arrival_us = instants[0]
        self._chain_end_us = max(self._chain_end_us, arrival_us)
        before = self._fetch_before
        if before is not None and before.dequeued_us is not None and arrival_us - before.dequeued_us > FETCH_GAP_US:
            complete = row.correlation_id == (before.correlation_id or 0) + 1
            self._tables.add(GAPS, (*self._key, before.dequeued_us, before.handled_us, arrival_us, complete))
        self._fetch_before = row
        if row.carried_chain_no is not None:
            self._tables.add(RESUMED, (*self._key, row.dequeued_us))
        is_sealed = self._sealed_us is not None and instants[_HANDLED] < self._sealed_us
        if is_sealed and (self._last is None or arrival_us >= self._last[0][0]):
            self._last = instants, (row.replica_id, row.correlation_id, self._chain_no)

    def _add_listed(self, row: ConnectionRow, previous: Instants | None, after_us: int | None) -> None:
        cluster_id, broker_id, connection = self._key
        arrival_us, dequeued_us, handled_us, completed_us, _ = _get_instants(row)
        if after_us is not None and 0 <= after_us - arrival_us <= GONE_US:
            handled_us = min(handled_us, after_us)
        before_us = previous or _NO_INSTANTS
        event = e.Event(
            handled_us,
            e.FETCH,
            min(dequeued_us, handled_us),
            leader_epoch=row.leader_epoch,
            offset=row.offset,
            high_watermark=row.high_watermark,
            replica_id=row.replica_id,
            error_code=row.error_code,
            request_id=f"{connection}#{row.correlation_id}",
            chain=f"{connection}#{self._chain_no}",
            sequence=row.correlation_id,
            arrival_us=min(arrival_us, handled_us),
            completed_us=completed_us,
            previous_arrival_us=before_us[0],
            previous_dequeued_us=before_us[1],
            previous_handled_us=before_us[2],
            previous_completed_us=before_us[3],
            previous_sent_us=before_us[4],
            diverging=row.diverging,
        )
        self._tables.add(FETCHES, (cluster_id, row.topic, row.partition, broker_id, _FETCH_RANK, *event, *_NO_MORE))

    def _add_answers(self, fetch: _Number, after: _Number) -> None:
        """Write the high watermarks in the answer to a fetch. The follower has applied them when its next fetch
        arrives.
        """
        cluster_id, leader_id, _ = self._key
        next_us = after.last[0]
        ends = {(row.topic, row.partition): row.offset for row in after.listed if row.offset is not None}
        for row in fetch.listed:
            if row.high_watermark is None or row.high_watermark < 0 or row.error_code or row.diverging:
                continue
            place = cluster_id, row.topic, row.partition, row.replica_id, leader_id
            # A session lists a partition again after records of it were answered.
            answer = row.completed_us, next_us, row.offset, ends.get((row.topic, row.partition))
            shown = row.high_watermark, row.stable_offset, row.size_bytes, row.leader_epoch
            self._tables.add(ANSWERS, (*place, *answer, *shown))

    def _end_chain(self) -> None:
        if self._chain_end_us:
            chain = f"{self._key[2]}#{self._chain_no}"
            self._tables.add(CHAIN_ENDS, (*self._key, chain, self._chain_end_us))
        self._chain_end_us = 0


def _get_instants(row: ConnectionRow) -> Instants:
    return row[_ARRIVAL:_BEHIND_SENT]  # type: ignore[return-value]  # no fetch lacks them


def _check_previous(row: ConnectionRow, before: Instants | None) -> Instants | None:
    """Return `before`, or None if it belongs to an older connection with the same name (a reused port).

    Args:
        before: timestamps of the previous fetch, arrival first.
    """
    assert row.arrival_us is not None
    return before if before is not None and 0 <= row.arrival_us - before[0] <= GONE_US else None
