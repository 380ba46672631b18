"""Facts that rules are given; `test_reads` has which reads are."""

from __future__ import annotations

from highwater.pipelines.rules.facts.selection import selected
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact


def read(correlation_id: int, offset: int, limit: int | None, connection: str = "x", **other: object) -> Fact:
    fact = Fact(a.READ, correlation_id * 10, 1, a.READ_UNCOMMITTED, leader_epoch=4, size_bytes=9, connection=connection)
    return fact._replace(correlation_id=correlation_id, offset=offset, high_watermark=limit)._replace(**other)


def test_the_same_line_in_two_files_is_no_later_answer():
    first, second = read(1, 5, 5), read(2, 5, 5, size_bytes=None, high_watermark=8)
    copies = [first, first._replace(file_id="other"), second]
    assert list(selected(copies)) == [first._replace(previous=8)]


def test_a_metadata_record_is_that_of_the_lowest_node():
    def record(node: int, offset: int) -> Fact:
        return Fact(a.METADATA, offset, node, "PartitionChangeRecord", previous=offset, file_id=f"f{node}")

    leads = Fact(a.LEADERSHIP, 2, 1)
    facts = [record(2, 1), record(3, 1), leads, record(1, 2), record(2, 2), record(3, 3)]
    assert list(selected(facts)) == [record(2, 1), leads, record(1, 2), record(3, 3)]
    # A record may say several things of a partition.
    assert list(selected([record(1, 1), record(1, 1), record(2, 1)])) == [record(1, 1), record(1, 1)]
