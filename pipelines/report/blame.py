"""Which replica was the last to acknowledge acks=all produces, and requests of coordinators. Pure."""

from __future__ import annotations

from collections import defaultdict

from pipelines.base.values import UNKNOWN_BROKER
from pipelines.report.figures import Collected, Rows, count_by, from_ticks, share_of
from pipelines.report.measures import Blame
from pipelines.report.tiers import Node
from pipelines.timing.latency.blame import SINGLED_OUT_EXCESS


def blame(rows: Collected, kind: str) -> tuple[Blame, ...]:
    """Of the operations of one kind: a row per broker, worst first: by its waiting beyond ``slow_ms``, then by all."""
    groups = [row for row in rows.groups_of(kind) if row["succeeded"]]
    quantiles = rows.quantiles_of(kind)
    singled_out = rows.singled_out.get(kind, frozenset())
    all_wait = sum(row["wait_ms"] for row in groups)
    all_slow_wait = sum(row["slow_wait_ms"] for row in groups)
    all_operations = sum(row["operations"] for row in groups)
    by_node: dict[Node, Rows] = defaultdict(list)
    for row in groups:
        by_node[row["cluster_id"], row["blamed"]].append(row)
    places = {node: str(number) for number, node in enumerate(rows.blamed)}

    def blame_of(node: Node, of_node: Rows) -> Blame:
        wait = sum(row["wait_ms"] for row in of_node)
        slow_wait = sum(row["slow_wait_ms"] for row in of_node)
        operations = sum(row["operations"] for row in of_node)
        # Shares add up to 1 on both sides, so some may stand out and never all.
        excess = share_of(slow_wait, all_slow_wait) - share_of(operations, all_operations) if all_slow_wait > 0 else 0.0
        place = "unknown" if node[1] == UNKNOWN_BROKER else places.get(node, "")
        return Blame(
            broker_id=node[1],
            operations=operations,
            share=share_of(slow_wait, all_slow_wait) if all_slow_wait > 0 else share_of(wait, all_wait),
            wait_ms_total=round(wait, 3),
            wait_ms_p99=from_ticks(quantiles.get(f"wait_{place}")),
            p99_ms_actual=from_ticks(quantiles.get("actual")),
            p99_ms_without=from_ticks(quantiles.get(f"without_{place}")),
            cluster_id=node[0],
            role=count_by(of_node, "role"),
            operations_slow=sum(row["slow"] for row in of_node),
            slow_wait_ms_total=round(slow_wait, 3),
            share_wait=share_of(wait, all_wait),
            singled_out=node in singled_out and excess >= SINGLED_OUT_EXCESS,
        )

    def worst_first(row: Blame) -> tuple[bool, float, float, str, int]:
        nobody = row.broker_id == UNKNOWN_BROKER
        return (nobody, -row.slow_wait_ms_total, -row.wait_ms_total, row.cluster_id, row.broker_id)

    return tuple(sorted((blame_of(node, of_node) for node, of_node in by_node.items()), key=worst_first))
