"""Terms of active controllers, in order. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import NamedTuple

from highwater.pipelines.timelines.rows import Node, Place, Row, place


class ControllerTerm(NamedTuple):
    """A node's time as active controller."""

    controller: int
    elected_us: int  #: First line of the node about its election, else from another node.
    place: Place
    epoch: int | None = None  #: Controller epoch. None if unknown.


def terms(controller_events: Iterable[Row], with_lines: Collection[Node]) -> dict[str, list[ControllerTerm]]:
    """Return the terms of the active controllers of each cluster, in order.

    Args:
        controller_events: rows of `silver.controller_events`, in order of time.
        with_lines: nodes whose own logs are available. Lines of other nodes about their elections are ignored.
    """
    rows = [row for row in controller_events if row["event"] == "controller_elected"]
    own = {*with_lines, *(_elected(row) for row in rows if row["broker_id"] == row["subject_broker_id"])}
    in_order: dict[str, list[ControllerTerm]] = defaultdict(list)
    for row in rows:
        is_own = row["broker_id"] == row["subject_broker_id"]
        if row["subject_broker_id"] is None or (not is_own and _elected(row) in own):
            continue
        of_cluster = in_order[row["cluster_id"]]
        epoch = row.get("controller_epoch")
        if not of_cluster or _is_another(of_cluster[-1], row["subject_broker_id"], epoch):
            of_cluster.append(ControllerTerm(row["subject_broker_id"], row["time"], place(row), epoch))
    return in_order


def has_no_leader(row: Row) -> bool:
    """Return True if a node of a quorum logs an epoch without a leader."""
    return row["event"] == "other" and (row["detail"] or "").endswith("the leader is (none).")


def _elected(row: Row) -> Node:
    return row["cluster_id"], row["subject_broker_id"]


def _is_another(last: ControllerTerm, controller: int, epoch: int | None) -> bool:
    """Return True if an election is not the one of the last term: another node, or the same node in a newer epoch."""
    is_newer = epoch is not None and last.epoch is not None and epoch > last.epoch
    return last.controller != controller or is_newer
