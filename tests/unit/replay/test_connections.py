"""Chains, gaps and ends of followers' connections, silences of brokers, and who watches what."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.base.blobs import read_blobs
from highwater.pipelines.base.instants import NEVER_US
from highwater.pipelines.lake.bounds import Bounds
from highwater.pipelines.replay import connections as n
from highwater.pipelines.replay.connection_rows import ORDER, SCHEMA, ConnectionReader
from highwater.pipelines.replay.isr_evidence import FETCH_GAP_US
from highwater.schemas import bronze, silver
from highwater.schemas import connection_rows as c
from highwater.schemas.connection_rows import ConnectionRow
from highwater.schemas.topics import METADATA_TOPIC_ID
from tests.unit.replay.rows import batch_of

SECOND_US = 1_000_000
BROKER = ("c", 1)
FOLLOWER = 2
NAMES = [name for name in SCHEMA.names if name != "rank"]
INPUT = pa.schema([SCHEMA.field(name) for name in NAMES])
Row = dict[str, Any]
Tables = dict[str, list[Row]]


class Fetch(NamedTuple):
    """A fetch of a follower that lists partitions by number."""

    number: int
    arrival_us: int
    dequeued_us: int
    handled_us: int
    completed_us: int
    sent_us: int
    carried_chain_no: int | None = None
    partitions: tuple[int, ...] = ()

    @property
    def instants(self) -> tuple[int, ...]:
        return self[1:6]


def rows_of(connection: str, fetches: Iterable[Fetch]) -> list[Row]:
    """A fetch and what it lists, in the order in which Spark gives them."""
    rows = []
    for fetch in sorted(fetches, key=lambda fetch: (fetch.number, fetch.arrival_us)):
        row = ConnectionRow(c.FETCH, FOLLOWER, fetch.number, *fetch.instants, fetch.carried_chain_no)
        rows.append(row)
        rows += [
            row._replace(kind=c.LISTED, carried_chain_no=None, topic="t", partition=partition, offset=fetch.number)
            for partition in fetch.partitions
        ]
    return [{"cluster_id": "c", "broker_id": 1, "connection": connection} | row._asdict() for row in rows]


def folded(worker: n.ConnectionWorker, rows: Sequence[Row], size: int = 1_000) -> Tables:
    parts = [rows[at : at + size] for at in range(0, len(rows), size)]
    batches = iter([pa.RecordBatch.from_pylist(list(part), INPUT) for part in parts])
    return read_blobs((blob["table"], blob["rows"]) for out in worker(batches) for blob in out.to_pylist())


def of_fetches(rows: Sequence[Row], sealed_us: int | None = None, size: int = 1_000) -> Tables:
    sealed = {} if sealed_us is None else {BROKER: sealed_us}
    return folded(n.ConnectionWorker(sealed, {}, {}), rows, size)


def values(rows: Iterable[Row], *names: str) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row[name] for name in names) for row in rows)


PREVIOUS = tuple(f"previous_{name}_us" for name in ("arrival", "dequeued", "handled", "completed", "sent"))
EVENT = ("request_id", "partition", "chain", "time_us", "earliest_us", "arrival_us", "completed_us", *PREVIOUS)
COMPARED = {
    n.FETCHES: EVENT,
    n.CHAIN_ENDS: ("connection", "chain", "arrival_us"),
    n.GAPS: ("connection", "since_us", "handled_us", "until_us", "complete"),
    n.RESUMED: ("connection", "since_us"),
    n.LAST_FETCHES: ("connection", "correlation_id", "arrival_us", "sent_us", "carried_chain_no"),
}


def compared(tables: Tables) -> dict[str, Counter[tuple[Any, ...]]]:
    return {table: values(tables[table], *names) for table, names in COMPARED.items()}


def slowly(connection: str, fetches: Sequence[Fetch], sealed_us: int | None) -> dict[str, Counter[tuple[Any, ...]]]:
    """Every fetch against every other of its connection."""

    def follows(later_us: int, earlier_us: int) -> bool:
        return 0 <= later_us - earlier_us <= n.GONE_US

    def before(fetch: Fetch) -> tuple[int, ...] | None:
        last = max((other.instants for other in fetches if other.number == fetch.number - 1), default=None)
        return last if last is not None and follows(fetch.arrival_us, last[0]) else None

    def chain_no(fetch: Fetch) -> int:
        first = [
            other.number if other.carried_chain_no is None else other.carried_chain_no
            for other in fetches
            if other.number <= fetch.number and (other.carried_chain_no is not None or before(other) is None)
        ]
        return max(first)

    events: list[tuple[Any, ...]] = []
    ends: dict[str, int] = defaultdict(int)
    for fetch in fetches:
        chain = f"{connection}#{chain_no(fetch)}"
        ends[chain] = max(ends[chain], fetch.arrival_us)
        handled_us = fetch.handled_us
        after_us = max((other.arrival_us for other in fetches if other.number == fetch.number + 1), default=None)
        if after_us is not None and follows(after_us, fetch.arrival_us):
            handled_us = min(handled_us, after_us)
        instants = (handled_us, min(fetch.dequeued_us, handled_us), min(fetch.arrival_us, handled_us))
        previous = before(fetch) or (None,) * len(PREVIOUS)
        for partition in fetch.partitions:
            request_id = f"{connection}#{fetch.number}"
            events.append((request_id, partition, chain, *instants, fetch.completed_us, *previous))
    ordered = sorted(fetches, key=lambda fetch: (fetch.number, fetch.arrival_us))
    gaps: list[tuple[Any, ...]] = [
        (connection, one.dequeued_us, one.handled_us, other.arrival_us, other.number == one.number + 1)
        for one, other in pairwise(ordered)
        if other.arrival_us - one.dequeued_us > FETCH_GAP_US
    ]
    gaps += [(connection, one.dequeued_us, one.completed_us + 100_000, NEVER_US, True) for one in ordered[-1:]]
    sealed = [fetch for fetch in ordered if sealed_us is not None and fetch.handled_us < sealed_us]
    last = [max(enumerate(sealed), key=lambda item: (item[1].arrival_us, item[0]))[1]] if sealed else []
    return {
        n.FETCHES: Counter(events),
        n.CHAIN_ENDS: Counter((connection, chain, end_us) for chain, end_us in ends.items()),
        n.GAPS: Counter(gaps),
        n.RESUMED: Counter((connection, one.dequeued_us) for one in fetches if one.carried_chain_no is not None),
        n.LAST_FETCHES: Counter(
            (connection, one.number, one.arrival_us, one.sent_us, chain_no(one))
            for one in last
            if one.handled_us + n.GONE_US >= (sealed_us or 0)
        ),
    }


@st.composite
def fetches_of_a_connection(draw: st.DrawFn) -> list[Fetch]:
    """Numbers with and without a gap, lines that come late, names of connections that come again."""
    fetches: list[Fetch] = []
    number, arrival_us = draw(st.integers(0, 3)), 10 * n.GONE_US
    for at in range(draw(st.integers(0, 7))):
        delays = [draw(st.integers(0, 3)) * 100_000 for _ in range(4)]
        instants = [arrival_us]
        for delay in delays:
            instants.append(instants[-1] + delay)
        is_carried = at == 0 and draw(st.booleans())
        chain_no = draw(st.integers(0, number)) if is_carried else None
        partitions = () if is_carried else tuple(range(draw(st.integers(0, 2))))
        fetches.append(Fetch(number, *instants, chain_no, partitions))
        number = draw(st.sampled_from([number + 1, number + 1, number + 1, number + 2, number + 3, 0, number]))
        step_us = draw(st.sampled_from([1, 200_000, 200_000, FETCH_GAP_US * 2, n.GONE_US + 1]))
        # A line that was logged late shows its fetch before the end of the one before, or before it altogether.
        arrival_us += step_us if draw(st.integers(0, 9)) else -step_us
    fetches = list({(fetch.number, fetch.arrival_us): fetch for fetch in fetches}.values())
    # A line may stand in two files.
    return fetches + ([draw(st.sampled_from(fetches))] if fetches and draw(st.booleans()) else [])


maybe_sealed = st.none() | st.integers(-2, 8).map(lambda step: 10 * n.GONE_US + step * FETCH_GAP_US // 2)


@given(fetches_of_a_connection(), fetches_of_a_connection(), maybe_sealed, st.integers(1, 5))
def test_it_is_as_if_each_fetch_looked_at_its_whole_connection(
    first: list[Fetch], second: list[Fetch], sealed_us: int | None, size: int
):
    rows = [*rows_of("a", first), *rows_of("b", second)]
    tables = of_fetches(rows, sealed_us, size)
    expected: dict[str, Counter[tuple[Any, ...]]] = {table: Counter() for table in COMPARED}
    for connection, fetches in (("a", first), ("b", second)):
        for table, some in slowly(connection, fetches, sealed_us).items():
            expected[table] += some
    assert compared(tables) == expected
    for event in tables[n.FETCHES]:
        assert (event["kind"], event["topic"], event["replica_id"]) == ("fetch", "t", FOLLOWER)
        assert event["sequence"] == event["offset"] == int(event["request_id"].split("#")[1])


@given(fetches_of_a_connection(), maybe_sealed, st.data())
def test_what_a_fetch_lists_may_come_before_it(fetches: list[Fetch], sealed_us: int | None, data: st.DataObject):
    rows = rows_of("a", fetches)
    shuffled: list[Row] = []
    for number in sorted({row["correlation_id"] for row in rows}):
        of_number = [row for row in rows if row["correlation_id"] == number]
        requests = iter([row for row in of_number if row["kind"] == c.FETCH])
        # Requests of one number stay in the order of time.
        some = data.draw(st.permutations(of_number))
        shuffled += [next(requests) if row["kind"] == c.FETCH else row for row in some]
    assert compared(of_fetches(shuffled, sealed_us)) == compared(of_fetches(rows, sealed_us))


class Line(NamedTuple):
    """A line of a broker's log."""

    time_us: int
    is_request: bool


def line_batch(lines: Iterable[Line]) -> pa.RecordBatch:
    rows = [
        {"cluster_id": "c", "broker_id": 1, "time": time_us, "logger": "kafka.request.logger" if is_request else None}
        for time_us, is_request in lines
    ]
    return batch_of(bronze.LOG_LINES, ("cluster_id", "broker_id", "time", "logger"), rows)


def sorted_rows(batches: Iterable[pa.RecordBatch]) -> list[Row]:
    """Rows of readers as a fold takes them."""
    table = pa.Table.from_batches(batches, SCHEMA)
    keys = [(name, "ascending") for name in (*n.KEY_TYPES, *ORDER)]
    rows: list[Row] = table.sort_by(keys).select(NAMES).to_pylist()
    # Arrow sorts nulls last, Spark first.
    return sorted(rows, key=lambda row: [(row[name] is not None, row[name]) for name in n.KEY_TYPES])


READER = ConnectionReader(Bounds({}), Bounds({}), {})
#: Quarters of seconds, mostly close together.
times_us = st.integers(0, 60).map(lambda quarter: 1_000 * SECOND_US + quarter * SECOND_US // 4)
log_lines = st.builds(Line, times_us, st.booleans())


@given(
    st.lists(log_lines, max_size=12),
    st.none() | st.builds(Line, times_us.map(lambda time_us: time_us - 16 * SECOND_US), st.booleans()),
    st.none() | st.integers(1_000, 1_016).map(lambda second: second * SECOND_US),
    st.integers(1, 12),
)
def test_silences(lines: list[Line], before: Line | None, sealed_us: int | None, size: int):
    parts = [lines[at : at + size] for at in range(0, len(lines), size)]
    rows = sorted_rows(batch for part in parts for batch in READER.lines(line_batch(part)))
    last = {} if before is None else {BROKER: tuple(before)}
    sealed = {} if sealed_us is None else {BROKER: sealed_us}
    tables = folded(n.ConnectionWorker(sealed, {}, last), rows, size)  # type: ignore[arg-type]

    log = sorted(lines) if before is None else [before, *sorted(lines)]
    requests_us = [line.time_us for line in log if line.is_request]
    expected: list[tuple[int | None, int]] = [
        (line.time_us, after.time_us)
        for line, after in pairwise(log)
        if after.time_us - line.time_us > SECOND_US
        and requests_us
        and min(requests_us) <= line.time_us <= max(requests_us) + n.LOGGED_SLACK_US
    ]
    if lines:
        sealed_lines = [line.time_us for line in lines if sealed_us is not None and line.time_us < sealed_us]
        expected.append((None, max([0 if before is None else before.time_us, *sealed_lines])))
    assert values(tables[n.SILENCES], "since_us", "until_us") == Counter(expected)


FETCH_TIMES = ("arrival_time", "dequeued_time", "handled_time", "completed_time", "time")
FETCH_COLUMNS = (
    *("cluster_id", "broker_id", "connection", "correlation_id", "replica_id", "isolation_level", *FETCH_TIMES),
    *("throttle_time_ms", "response_queue_time_ms", "send_time_ms", "partitions", "responses"),
)


def request(at_us: int, number: int = 7, **values: Any) -> Row:
    """A fetch request that arrives at an instant and takes four microseconds."""
    row: Row = {"cluster_id": "c", "broker_id": 1, "connection": "x", "correlation_id": number, "replica_id": FOLLOWER}
    row |= {name: at_us + passed for passed, name in enumerate(FETCH_TIMES)} | {"isolation_level": 0}
    row |= dict.fromkeys(("throttle_time_ms", "response_queue_time_ms", "send_time_ms"), 0.25)
    return row | {"partitions": [], "responses": []} | values


def fetch_rows(reader: ConnectionReader, requests: Iterable[Row]) -> list[Row]:
    batches = reader.fetches(batch_of(silver.FETCH_REQUESTS, FETCH_COLUMNS, requests))
    return [row for batch in batches for row in batch.to_pylist()]


def test_requests_of_followers_are_fetches_and_all_are_logged():
    asked = [{"topic": "t", "partition": 0}]
    requests = [
        request(100, 7, partitions=asked),
        request(200, 8),  # it asked for nothing new, and was answered nothing
        request(300, 9, replica_id=-1),
        request(900, 3, broker_id=None),
        request(10, 6),  # before the bound
    ]
    rows = fetch_rows(ConnectionReader(Bounds({BROKER: 100}), Bounds({BROKER: 1 << 60}), {}), requests)
    assert [row["from_us"] for row in rows if row["kind"] == c.LOGGED] == [100]
    assert [row["until_us"] for row in rows if row["kind"] == c.LOGGED] == [304]
    fetches = [row for row in rows if row["kind"] == c.FETCH]
    assert values(fetches, "correlation_id", "replica_id", "arrival_us", "completed_us", "sent_us") == Counter(
        [(7, FOLLOWER, 100, 103, 103 + 750), (8, FOLLOWER, 200, 203, 200)]
    )
    assert {row["kind"] for row in rows} == {c.LOGGED, c.FETCH}


LISTED_COLUMNS = (
    *("cluster_id", "broker_id", "connection", "correlation_id", "replica_id", "source", "topic", "partition"),
    *("leader_epoch", "fetch_offset", "response_high_watermark", "response_error_code", "diverging_end_offset"),
    *("response_last_stable_offset", "response_bytes", "sent_time", *FETCH_TIMES[:-1]),
)


def test_partitions_that_fetches_list():
    place = {"cluster_id": "c", "broker_id": 1, "connection": "x", "correlation_id": 7, "source": "request"}
    row = place | dict.fromkeys(FETCH_TIMES[:-1], 100) | {"sent_time": 101, "partition": 0, "fetch_offset": 5}
    rows = [
        row | {"topic": "id:known", "diverging_end_offset": 3},
        row | {"topic": "id:unknown"},
        row | {"topic": "id:raft"},
        row | {"topic": "__cluster_metadata"},
        row | {"topic": "recorded", "source": "recorded"},
        row | {"topic": "nobody's", "broker_id": None},
        row | {"topic": "before", "handled_time": 99},
    ]
    names = {("c", "known"): "t", ("other", "unknown"): "u", ("c", "raft"): "__cluster_metadata"}
    reader = ConnectionReader(Bounds({BROKER: 100}), Bounds({}), names)
    (batch,) = reader.listed(batch_of(silver.REPLICA_FETCHES, LISTED_COLUMNS, rows))
    listed = batch.to_pylist()
    assert values(listed, "kind", "topic", "offset", "diverging", "sent_us") == Counter(
        [(c.LISTED, "t", 5, True, 101), (c.LISTED, "id:unknown", 5, False, 101)]
    )


#: As requests name topics: by name, by id, by an id that a line names, by both; and the log of Raft.
topics = st.sampled_from([("t", None), (None, "unknown"), (None, "known"), ("t", "known")])
places = st.lists(st.tuples(topics, st.integers(0, 1)).map(lambda place: (*place[0], place[1])), max_size=3)
raft = st.sampled_from([[], [], [], [("__cluster_metadata", None, 0)], [(None, METADATA_TOPIC_ID, 0)]])


@st.composite
def requests_of_readers(draw: st.DrawFn) -> list[Row]:
    requests = []
    for _ in range(draw(st.integers(0, 8))):
        asked = [
            {"topic": topic, "topic_id": topic_id, "partition": partition}
            for topic, topic_id, partition in [*draw(places), *draw(raft)]
        ]
        broker_id, replica_id = draw(st.sampled_from([1, 1, 1, None])), draw(st.sampled_from([-1, FOLLOWER]))
        connection, isolation = draw(st.sampled_from(["x", "x", "y", None])), draw(st.sampled_from([0, 1, None]))
        row = request(draw(st.integers(1, 50)) * 10, partitions=asked, replica_id=replica_id, broker_id=broker_id)
        requests.append(row | {"connection": connection, "isolation_level": isolation})
    return requests


@given(requests_of_readers(), st.integers(0, 300), st.booleans(), st.integers(1, 8))
def test_watches(requests: list[Row], since_us: int, is_carried: bool, size: int):
    topic_names = {("c", "known"): "t"}
    reader = ConnectionReader(Bounds({BROKER: 1 << 60}), Bounds({BROKER: since_us}), topic_names)
    parts = [requests[at : at + size] for at in range(0, len(requests), size)]
    columns = [batch_of(silver.FETCH_REQUESTS, FETCH_COLUMNS, part) for part in parts]
    batches = [batch for part in columns for batch in reader.fetches(part)]
    carried = {"cluster_id": "c", "broker_id": 1, "connection": "x", "kind": c.WATCH, "rank": c.RANK[c.WATCH]}
    carried |= {"session_topic": "known", "topic": "t", "topic_id": "known", "partition": 0, "replica_id": -1}
    carried |= {"isolation_level": 0, "from_us": 5, "until_us": 7}
    if is_carried:
        batches.append(pa.RecordBatch.from_pylist([carried], SCHEMA))
    tables = folded(n.ConnectionWorker({}, topic_names, {}), sorted_rows(batches), size)

    heard_us: dict[str, int] = defaultdict(int)
    watched: dict[tuple[str, str, int], list[Row]] = defaultdict(list)
    for row in requests:
        keys = [(part["topic_id"] or part["topic"], part["partition"]) for part in row["partitions"]]
        is_data = not {"__cluster_metadata", METADATA_TOPIC_ID} & {topic for topic, _ in keys}
        if is_data and row["broker_id"] and row["connection"] and row["dequeued_time"] >= since_us:
            heard_us[row["connection"]] = max(heard_us[row["connection"]], row["time"])
            for key in keys:
                watched[row["connection"], *key].append(row)
    if is_carried:
        heard_us["x"] = max(heard_us["x"], 7)
        watched["x", "known", 0].append({"replica_id": -1, "isolation_level": 0, "arrival_time": 5})
    expected = Counter(
        (
            *key,
            {"known": "t", "t": "t"}.get(key[1]),
            max(row["replica_id"] for row in rows),
            max(row["isolation_level"] or 0 for row in rows),
            min(row["arrival_time"] for row in rows),
            heard_us[key[0]],
            heard_us[key[0]],
        )
        for key, rows in watched.items()
    )
    names = ("connection", "session_topic", "partition", "topic", "replica_id", "isolation_level")
    assert values(tables[n.WATCHES], *names, "from_us", "went_us", "until_us") == expected


@pytest.mark.parametrize("spans", [[], [(5, 7)], [(5, 7), (3, 4), (6, 6)]])
def test_a_brokers_requests_are_logged_over_what_all_tasks_saw(spans: list[tuple[int, int]]):
    rows = [
        {"cluster_id": "c", "broker_id": 1, "connection": "", "kind": c.LOGGED, "from_us": since, "until_us": until}
        for since, until in spans
    ]
    logged = folded(n.ConnectionWorker({}, {}, {}), rows)[n.LOGGED]
    assert values(logged, "since_us", "until_us") == Counter([(3, 7)] if len(spans) > 1 else spans)
