"""Steps of a partition's answer."""

from __future__ import annotations

from typing import Any

from highwater.pipelines.inquiry.partition import PartitionRows, list_shown_rows
from highwater.pipelines.inquiry.partition import answer as answer_of


def _change(second: int, committed: bool) -> dict[str, Any]:
    row = {"replica_id": 2, "change": "shrink", "isr_before": [1, 2], "isr_after": [1], "made_by": "leader"}
    times = {"change_time": second * 1_000_000, "committed_time": second * 1_000_000 if committed else None}
    return row | times | {"class": "agrees", "file_id": None}


def test_a_proposal_without_a_commit_is_no_change_of_the_isr() -> None:
    rows = PartitionRows(
        *("c", "t", 0, ()),
        isr_changes=[_change(1, True), _change(2, False)],
        failovers=[],
        truncations=[],
        availability=[],
        findings=[],
        logs=(),
    )
    assert len(list_shown_rows(rows)) == 2
    first, second = (step.what for step in answer_of(rows, {}).steps)
    assert first == "Broker 2 left the ISR: 1, 2 became 1, by the leader (agrees)."
    assert second == "The leader proposed ISR 1 instead of 1, 2; no line shows that it was committed."
