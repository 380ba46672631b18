"""The metadata log: records against a plain encoder, and the replay against Kafka's merge as a table of cases."""

from __future__ import annotations

import struct
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.data_dir import metadata_records as mr
from highwater.pipelines.data_dir.metadata_log import BOOTSTRAP, LOG, SNAPSHOT, MetadataChange, MetadataLog
from highwater.pipelines.data_dir.metadata_replay import Change
from highwater.pipelines.data_dir.records import Record
from highwater.pipelines.data_dir.segments import SegmentReader
from tests.unit.data_dir.encoder import batch, change, framed, ints, partition, string, tagged, topic

INT = struct.Struct(">i").pack
ID = "AAECAwQFBgcICQoLDA0ODw"
REPLICAS = st.lists(st.integers(0, 9), max_size=4).map(tuple)


class File(NamedTuple):
    base_offset: int
    source: str


def replay(*values: bytes) -> list[Change]:
    return [step.change for step in steps((File(0, LOG), batches(0, values)))]


def batches(base: int, values: tuple[bytes, ...]) -> bytes:
    return b"".join(batch(base + n, [(None, value)], epoch=4) for n, value in enumerate(values))


def steps(*files: tuple[File, bytes]) -> list[MetadataChange]:
    contents = dict(files)
    log = MetadataLog(list(contents))
    found = []
    for file in MetadataLog.ordered(contents):
        found += log.read(file, SegmentReader([contents[file]], with_records=True))
        assert log.problems == []
    return found


def decoded(value: bytes) -> mr.Decoded:
    return mr.decode(Record(0, None, None, value))


def test_a_partition_is_made_and_changes() -> None:
    changes = replay(
        topic("orders"),
        partition(0, (1, 2, 3)),
        change(0, {0: ints((1, 2))}),
        change(0, {0: ints((2,)), 1: INT(2), 6: ints((1,)), 7: ints((3,))}),
        change(0, {1: INT(2)}),
        change(0, {0: ints(()), 1: INT(-1), 5: b"\1"}),
        change(0, {2: ints((2, 4)), 3: ints((1,)), 4: ints((4,))}),
    )
    states = [change.registration for change in changes[1:]]
    assert [(s.leader, s.leader_epoch, s.partition_epoch, s.isr) for s in states if s] == [
        (1, 0, 0, (1, 2, 3)),
        (1, 0, 1, (1, 2)),
        (2, 1, 2, (2,)),
        # The same leader named again: its epoch goes up all the same.
        (2, 2, 3, (2,)),
        (-1, 3, 4, ()),
        (-1, 3, 5, ()),
    ]
    assert {(change.topic, change.topic_id, change.partition) for change in changes[1:]} == {("orders", ID, 0)}
    last = states[-1]
    assert last is not None
    assert (last.elr, last.last_known_elr, last.leader_recovery_state) == ((1,), (3,), 1)
    assert (last.replicas, last.removing_replicas, last.adding_replicas) == ((2, 4), (1,), (4,))
    # Nothing says where the new replica lies.
    assert last.directories is None
    assert changes[3].changed == ("isr", "leader", "elr", "last_known_elr")


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "isr": REPLICAS,
            "leader": st.integers(-1, 9),
            "replicas": REPLICAS,
            "removing_replicas": REPLICAS,
            "adding_replicas": REPLICAS,
            "leader_recovery_state": st.integers(0, 1),
            "elr": REPLICAS,
            "last_known_elr": REPLICAS,
        },
    )
)
def test_changes_round_trip(fields: dict[str, object]) -> None:
    tags = ("isr", "leader", "replicas", "removing_replicas", "adding_replicas", "leader_recovery_state", "elr")
    encoded = {}
    for name, value in fields.items():
        one = INT if name == "leader" else struct.Struct(">b").pack
        encoded[(*tags, "last_known_elr").index(name)] = ints(value) if isinstance(value, tuple) else one(value)
    assert decoded(change(7, encoded)).message == mr.PartitionChangeRecord(7, ID, **fields)


def test_a_record_torn_at_any_byte_is_a_problem() -> None:
    for whole in (topic("orders"), partition(0, (1, 2)), change(0, {0: ints((1, 2)), 1: INT(2)})):
        assert decoded(whole).problem is None
        for length in range(len(whole)):
            assert decoded(whole[:length]).problem
        assert decoded(whole + b"\0").problem == "1 bytes behind its fields"


@pytest.mark.parametrize(
    ("value", "name", "problem"),
    [
        (framed(20, 0, tagged({})), "NoOpRecord", None),
        (framed(18, 0, b"anything"), "AccessControlEntryRecord", None),
        (framed(3, 9, b""), "PartitionRecord", "version 9 is not known, up to 2 are"),
        (framed(99, 0, b""), "unknown 99", "API key 99 is not known"),
        (b"\2" + framed(2, 0, b"")[1:], "TopicRecord", "frame version 2 is not known, 1 is"),
    ],
)
def test_what_is_not_decoded(value: bytes, name: str, problem: str | None) -> None:
    assert (decoded(value).name, decoded(value).message, decoded(value).problem) == (name, None, problem)


def test_topics_are_removed() -> None:
    changes = replay(
        topic("t"), partition(0, (1,)), framed(9, 0, bytes(range(16)) + tagged({})), change(0, {1: INT(1)})
    )
    assert [change.topic for change in changes] == ["t", "t", "t", None]
    assert changes[3].registration is None
    assert changes[3].problem is not None


def test_clearing_elrs_is_a_change_of_each_partition_that_has_one() -> None:
    parts = (partition(0, (1, 2)), partition(1, (1, 2)), change(1, {6: ints((2,))}))
    changes = replay(topic("t"), *parts, framed(28, 0, string("") + tagged({})))
    cleared = changes[4:]
    assert [(change.change_no, change.partition) for change in cleared] == [(0, None), (1, 1)]
    assert cleared[1].registration is not None
    assert (cleared[1].registration.elr, cleared[1].registration.partition_epoch) == ((), 2)


def test_brokers() -> None:
    register = INT(3) + b"\0" + bytes(range(16)) + struct.pack(">q", 50)
    register += b"\x02" + string("PLAINTEXT") + string("host") + struct.pack(">Hh", 9092, 0) + tagged({})
    register += b"\x01" + string(None) + b"\1\0" + tagged({0: b"\x01"})
    base = INT(3) + struct.pack(">q", 50)
    changes = replay(
        framed(0, 3, register),
        framed(17, 0, base + tagged({0: b"\xff"})),
        framed(17, 1, base + tagged({1: b"\1"})),
        framed(7, 0, base + tagged({})),
        framed(8, 0, base + tagged({})),
        framed(1, 0, base + tagged({})),
    )
    nodes = [change.node for change in changes]
    assert all(
        change.node_id == 3 and node and node.broker_epoch == 50 for change, node in zip(changes, nodes, strict=True)
    )
    assert [(node.fenced, node.in_controlled_shutdown) for node in nodes if node] == [
        (True, False),
        (False, False),
        (False, True),
        (True, True),
        (False, True),
        (False, True),
    ]
    assert {node.incarnation_id for node in nodes if node} == {ID}


def test_settings_and_features() -> None:
    changes = replay(
        framed(4, 0, b"\2" + string("t") + string("min.insync.replicas") + string("2") + tagged({})),
        framed(4, 0, b"\2" + string("t") + string("min.insync.replicas") + string(None) + tagged({})),
        framed(12, 0, string("metadata.version") + struct.pack(">h", 21) + tagged({})),
    )
    assert [(change.resource, change.key, change.value) for change in changes] == [
        ((2, "t"), "min.insync.replicas", "2"),
        ((2, "t"), "min.insync.replicas", None),
        (None, "metadata.version", "21"),
    ]


def test_an_aborted_transaction_never_held() -> None:
    begin, abort, end = framed(23, 0, tagged({0: string("why")})), framed(25, 0, tagged({})), framed(24, 0, tagged({}))
    start = (topic("t"), partition(0, (1, 2)))
    shrink, grow = change(0, {0: ints((1,))}), change(0, {0: ints((1, 2))})
    changes = replay(*start, begin, shrink, abort, grow, begin, shrink, end)
    isr = [(c.registration.partition_epoch, c.registration.isr, c.applied) for c in changes if c.registration]
    assert isr == [(0, (1, 2), True), (1, (1,), False), (1, (1, 2), True), (2, (1,), True)]


def test_a_transaction_that_is_still_open_is_told() -> None:
    changes = replay(framed(23, 0, tagged({})), topic("t"))
    assert [change.record for change in changes] == ["BeginTransactionRecord", "TopicRecord"]


def test_a_new_active_controller() -> None:
    control = batch(0, [(struct.pack(">hh", 0, 2), struct.pack(">hi", 0, 5) + b"\1\1\0")], epoch=7, attributes=0x20)
    (step,) = steps((File(0, LOG), control))
    assert (step.change.record, step.change.leader, step.controller_epoch) == ("LeaderChangeMessage", 5, 7)


def test_a_snapshot_stands_for_the_segments_that_are_gone() -> None:
    snapshot = batches(0, (topic("t"), partition(0, (1, 2))))
    early, late = change(0, {0: ints((2,))}), change(0, {0: ints((1,))})
    found = steps(
        (File(100, LOG), batches(100, (early, late))), (File(101, SNAPSHOT), snapshot), (File(0, BOOTSTRAP), b"")
    )
    assert [(step.source, step.offset) for step in found] == [(SNAPSHOT, 100), (SNAPSHOT, 100), (LOG, 100), (LOG, 101)]
    before, after = (step.change for step in found[2:])
    assert (before.registration, before.isr, bool(before.problem)) == (None, (2,), True)
    assert after.registration is not None
    assert (after.topic, after.registration.isr, after.registration.partition_epoch) == ("t", (1,), 1)


def test_several_segments_are_one_log() -> None:
    first = batches(0, (topic("t"), partition(0, (1, 2))))
    found = steps((File(2, LOG), batches(2, (change(0, {0: ints((1,))}),))), (File(0, LOG), first))
    assert [step.offset for step in found] == [0, 1, 2]
    assert found[2].change.registration is not None
