"""A run's folder becomes a corpus, without paths of the machine; each acknowledged record is accounted for."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path

import pytest

from tests.testbed.history import ACKS_LEADER, JMX, Ledger, read_history
from tests.testbed.pack import compare_replicas, pack, rewrite
from tests.testbed.replicas import batches, differing
from tests.testbed.truth import account, lost_rows, write_lost

pytestmark = pytest.mark.unit


def batch(base: int, content: bytes) -> bytes:
    return struct.pack(">qi", base, len(content)) + content


def a_run(folder: Path) -> Path:
    """Two nodes; orders-0 ends alike, ledger-0 does not; key b of orders-0 is gone."""
    folder.mkdir()
    disputed = {1: batch(0, b"a") + batch(1, b"x"), 2: batch(0, b"a") + batch(1, b"y")}
    for node, ledger_segment in disputed.items():
        data = folder / f"node-{node}" / "data"
        for name, content in (("orders-0", batch(0, b"same") + batch(1, b"c")), ("ledger-0", ledger_segment)):
            (data / name).mkdir(parents=True)
            (data / name / f"{0:020}.log").write_bytes(content + bytes(30))
            (data / name / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
        (data / "__cluster_metadata-0").mkdir()
        (data / "__cluster_metadata-0" / f"{0:020}.log").write_bytes(b"metadata")
        (data / "meta.properties").write_text("cluster.id=c\n")
        logs = folder / f"node-{node}" / "logs"
        logs.mkdir()
        (logs / "server.log").write_text(f"loading {data}/orders-0 by {folder.parent}/jars/k.jar\n")
        (logs / "log-cleaner.log").write_text("")
    (folder / JMX).write_text("1,2,1,m,Value,3\n")
    ledger = Ledger(folder)
    ledger.fault("load", version="3.6.2")
    sent = {"client": "c", "t0": 1.0, "t1": 2.0, "topic": "orders", "partition": 0}
    ledger.client("produce", **sent, key="a", offset=0, error=None, acks="all")
    ledger.client("produce", **sent, key="b", offset=1, error=None, acks="all")
    ledger.client("produce", **sent, key="d", offset=None, error="7", acks="all")
    ledger.client("produce", **sent, key="e", offset=5, error=None, acks=ACKS_LEADER)
    ledger.client("produce", **sent | {"topic": "scratch"}, key="f", offset=5, error=None, acks="all")
    ledger.final(topic="orders", partition=0, start=0, end=2)
    ledger.final(topic="orders", partition=0, offset=0, key="a")
    ledger.final(topic="orders", partition=0, offset=1, key="c")
    ledger.close()
    return folder


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    target = tmp_path / "corpora" / "x"
    pack(a_run(tmp_path / "run"), tmp_path / "jars", target)
    return target


def test_logs_are_packed_without_paths_of_the_machine(corpus: Path):
    text = gzip.decompress((corpus / "broker-1" / "logs" / "server.log.gz").read_bytes())
    assert text == b"loading /var/lib/kafka/orders-0 by /opt/kafka/libs/k.jar\n"
    assert not (corpus / "broker-1" / "logs" / "log-cleaner.log.gz").exists()


def test_metrics_that_were_read_are_kept_where_the_audit_does_not_look(corpus: Path):
    assert gzip.decompress((corpus / "jmx" / f"{JMX}.gz").read_bytes()) == b"1,2,1,m,Value,3\n"


def test_segments_are_packed_of_the_metadata_and_of_topics_whose_replicas_differ(corpus: Path):
    data = corpus / "broker-2" / "data"
    assert sorted(str(path.relative_to(data)) for path in data.rglob("*") if path.is_file()) == [
        f"__cluster_metadata-0/{0:020}.log.gz",
        f"ledger-0/{0:020}.log.gz",
        "ledger-0/leader-epoch-checkpoint",
        "meta.properties",
        "orders-0/leader-epoch-checkpoint",
    ]


def test_packing_again_gives_the_same_bytes(corpus: Path, tmp_path: Path):
    log = corpus / "broker-1" / "logs" / "server.log.gz"
    before = log.read_bytes()
    pack(tmp_path / "run", tmp_path / "jars", corpus)
    assert log.read_bytes() == before


def test_the_longest_path_is_replaced_first():
    assert rewrite(b"/a/b/c /a/b /a", {b"/a": b"1", b"/a/b": b"2", b"/a/b/c": b"3"}) == b"3 2 1"


def test_replicas_are_compared_byte_by_byte(corpus: Path):
    rows = json.loads((corpus / "replicas.json").read_text())
    assert [(row["topic"], row["last"], row["differing"]) for row in rows] == [
        ("ledger", {"1": 1, "2": 1}, [1]),
        ("orders", {"1": 1, "2": 1}, []),
    ]


def test_a_replica_that_ends_earlier_differs_in_nothing():
    log = {0: b"a", 1: b"b"}
    assert differing({1: log, 2: {0: b"a"}, 3: {}}) == []
    assert differing({1: log, 2: {0: b"a", 1: b"c"}, 3: log}) == [1]


def test_batches_cut_otherwise_differ():
    assert differing({1: {0: b"ab", 2: b"c"}, 2: {0: b"a", 1: b"b", 2: b"c"}}) == [0, 1]


@pytest.mark.parametrize("tail", [b"", bytes(50), batch(2, b"half")[:-1], bytes(5)])
def test_a_segment_ends_with_its_last_whole_batch(tail: bytes):
    assert [base for base, _ in batches(batch(0, b"a") + batch(1, b"bb") + tail)] == [0, 1]


def test_every_acknowledged_record_is_accounted_for(corpus: Path):
    history = read_history(corpus)
    sums = account(history)
    assert (sums.acknowledged, sums.readable, sums.expired, sums.deleted) == (3, 1, 0, 1)
    assert [(record.key, record.offset) for record in sums.lost] == [("b", 1)]
    assert [record.key for record in account(history, ACKS_LEADER).lost] == ["e"]


def test_records_before_the_start_of_a_log_have_expired(corpus: Path):
    history = read_history(corpus)
    history.starts["orders", 0] = 2
    assert account(history).expired == 2
    assert account(history).lost == ()


def test_lost_records_are_listed_with_what_is_there_now(corpus: Path):
    write_lost(corpus)
    rows = json.loads((corpus / "lost.json").read_text())
    assert rows == lost_rows(read_history(corpus))
    assert [(row["key"], row["acks"], row["now"]) for row in rows] == [("b", "all", "c"), ("e", "1", None)]


def test_a_run_can_be_compared_before_it_is_packed(tmp_path: Path):
    assert [row["differing"] for row in compare_replicas(a_run(tmp_path / "run"))] == [[1], []]
