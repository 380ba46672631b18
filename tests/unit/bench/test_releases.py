"""What the table of releases is made of, without a lake."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.bench.releases import cluster_of, insert, lakes, typed_share, verdict_of


def corpus(folder: Path, name: str, text: str) -> Path:
    logs = folder / name / "broker-1" / "logs"
    logs.mkdir(parents=True)
    (logs / "server.log.gz").write_bytes(gzip.compress(text.encode()))
    return folder / name


def test_those_that_name_no_cluster_do_not_share_a_lake(tmp_path: Path) -> None:
    named, old, older = (corpus(tmp_path, *one) for one in (("a", "Cluster ID = x"), ("b", "-"), ("c", "-")))
    assert lakes([named, old, older]) == [[named, old], [older]]


def test_a_lake_has_no_more_than_is_good_for_the_machine(tmp_path: Path) -> None:
    one, other = (corpus(tmp_path, name, "Cluster ID = x") for name in "ab")
    assert lakes([one, other], bytes_max=1) == [[one], [other]]


def test_a_corpus_is_one_cluster() -> None:
    files = [{"path": "/c/a/x.log", "cluster_id": "one"}, {"path": "/c/b/x.log", "cluster_id": "two"}]
    a, b = Path("/c/a"), Path("/c/b")
    assert cluster_of(files, [a, b]) == {a: "one", b: "two"}
    with pytest.raises(ValueError, match="has files of 0 clusters"):
        cluster_of(files[:1], [a, b])
    with pytest.raises(ValueError, match="two corpora are of one cluster"):
        cluster_of([*files[:1], {**files[1], "cluster_id": "one"}], [a, b])


def test_only_loggers_that_the_audit_reads_count() -> None:
    read, unread = "kafka.cluster.Partition", "some.other.Thing"
    rows = [{"logger": read, "outcome": "typed", "n": 3}, {"logger": read, "outcome": "unparsed", "n": 1}]
    assert typed_share([*rows, {"logger": unread, "outcome": "unparsed", "n": 9}]) == 0.75
    assert typed_share([]) is None


@pytest.mark.parametrize(
    ("severities", "doubted", "verdict"),
    [
        (["observation"], False, "clean"),
        (["observation"], True, "inconclusive"),
        (["open"], False, "inconclusive"),
        (["open", "violation"], True, "violated"),
    ],
)
def test_the_verdict_of_one_cluster_of_several(severities: list[str], doubted: bool, verdict: str) -> None:
    assert verdict_of(severities, doubted) == verdict


def test_the_table_of_a_document_is_replaced(tmp_path: Path) -> None:
    document = tmp_path / "releases.md"
    document.write_text("before\n<!-- table -->\nold\n<!-- end of table -->\nbehind\n")
    for _ in range(2):
        insert(document, ["new", "lines"])
    assert document.read_text() == "before\n<!-- table -->\nnew\nlines\n<!-- end of table -->\nbehind\n"
