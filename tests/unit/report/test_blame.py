"""Who stands out among those that were waited for."""

from typing import Any

import pytest

from highwater.pipelines.report.assemble import blame
from tests.unit.report.rows import collected


def group(broker_id: int, operations: int, slow_wait_ms: float) -> dict[str, Any]:
    return {
        "kind": "produce",
        "cluster_id": "c",
        "blamed": broker_id,
        "role": "isr_member",
        "succeeded": True,
        "operations": operations,
        "slow": operations,
        "wait_ms": slow_wait_ms + operations,
        "slow_wait_ms": slow_wait_ms,
    }


@pytest.mark.parametrize(
    ("groups", "in_intervals", "standing_out"),
    [
        # A tenth of the produces, most of the slow waiting.
        ([(1, 90, 10.0), (2, 10, 90.0)], {1, 2}, {2}),
        ([(1, 90, 10.0), (2, 10, 90.0)], {1}, set()),
        # 19 points above its share are too few, 21 are enough.
        ([(1, 50, 31.0), (2, 50, 69.0)], {1, 2}, set()),
        ([(1, 50, 29.0), (2, 50, 71.0)], {1, 2}, {2}),
        # All waited alike: none stands out, whatever intervals say.
        ([(1, 50, 50.0), (2, 50, 50.0)], {1, 2}, set()),
        ([(1, 50, 0.0), (2, 50, 0.0)], {1, 2}, set()),
    ],
)
def test_a_broker_stands_out_by_more_slow_waiting_than_its_share_of_produces(
    groups: list[tuple[int, int, float]], in_intervals: set[int], standing_out: set[int]
) -> None:
    rows = collected(
        *(group(*values) for values in groups),
        singled_out={"produce": frozenset(("c", broker_id) for broker_id in in_intervals)},
    )
    assert {row.broker_id for row in blame(rows, "produce") if row.singled_out} == standing_out
