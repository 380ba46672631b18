"""From folded rows to the aggregates of the page. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pipelines.base.values import UNKNOWN_BROKER
from pipelines.report.cubes.buckets import FINEST, accuracy_of, growth, merges_needed, packed
from pipelines.report.cubes.operations import ERRORS_MAX, SLOW_MAX, OperationFold
from pipelines.report.cubes.parts import (
    ClientCells,
    Cubes,
    ErrorCells,
    LeftOut,
    Node,
    OperationCells,
    RequestCells,
    SlowCells,
    TotalCells,
)
from pipelines.report.cubes.requests import CLIENTS_MAX, RequestFold
from pipelines.report.figures import PHASES, SPLIT, WITHIN_MS
from schemas.gold import CLASSES

Rows = Sequence[Mapping[str, Any]]
#: Place of a broker in the list of nodes.
_Place = Callable[[str, int], int]


def cubes(operations: OperationFold, requests: RequestFold) -> Cubes:
    """All aggregates, histograms merged until the page can hold them."""
    cells, waits = operations.cells()
    of_replicas, completions, spared = operations.totals()
    asked, totals = requests.cells()
    slow, errors, clients = operations.slow(), operations.errors(), requests.clients()
    nodes = _nodes(cells)
    places = {node: number for number, node in enumerate(nodes)}

    def place(cluster_id: str, broker_id: int) -> int:
        return places[cluster_id, broker_id]

    merges = merges_needed([*waits, *completions, *spared, *totals])
    ratio = growth(FINEST) ** (2**merges)
    intervals = operations.intervals
    return Cubes(
        start_s=intervals.start_s,
        interval_s=intervals.length_s,
        intervals=intervals.number,
        accuracy=round(accuracy_of(ratio), 4),
        growth=ratio,
        nodes=[Node(cluster_id=cluster_id, broker_id=broker_id) for cluster_id, broker_id in nodes],
        operations=_operations(cells, waits, place, merges),
        totals=TotalCells(
            interval=_column(of_replicas, "interval"),
            kind=_column(of_replicas, "kind"),
            replica=_brokers(of_replicas, "replica", place),
            succeeded=[int(row["succeeded"]) for row in of_replicas],
            total=[packed(histogram, merges) for histogram in completions],
            without=[packed(histogram, merges) for histogram in spared],
        ),
        slow=_slow(slow, place),
        errors=_errors(errors, place),
        requests=_requests(asked, totals, merges),
        clients=_clients(clients),
    )


def _nodes(cells: Rows) -> list[tuple[str, int]]:
    """Everybody who led or was waited for; nobody of a cluster is -1."""
    nodes = {(row["cluster_id"], row[name]) for row in cells for name in ("broker_id", "replica")}
    nodes |= {(cluster_id, UNKNOWN_BROKER) for cluster_id, _ in nodes}
    return sorted(nodes, key=lambda node: (node[0], node[1] == UNKNOWN_BROKER, node[1]))


def _column(rows: Rows, name: str) -> list[Any]:
    return [row[name] for row in rows]


def _brokers(rows: Rows, name: str, place: _Place) -> list[int]:
    return [place(row["cluster_id"], row[name]) for row in rows]


def _operations(cells: Rows, waits: Iterable[Counter[int]], place: _Place, merges: int) -> OperationCells:
    counts = ("operations", "slow", "wait_us", "slow_wait_us", *CLASSES, *(f"within_{n}" for n in WITHIN_MS), "split")
    return OperationCells(
        interval=_column(cells, "interval"),
        kind=_column(cells, "kind"),
        leader=_brokers(cells, "broker_id", place),
        replica=_brokers(cells, "replica", place),
        succeeded=[int(row["succeeded"]) for row in cells],
        **{name: _column(cells, name) for name in counts},
        parts_us=[[row[f"{name}_us"] for name in SPLIT] for row in cells],
        wait=[packed(histogram, merges) for histogram in waits],
    )


def _shown(rows: Rows, most: int, amount: str) -> tuple[Rows, LeftOut]:
    rest = rows[most:]
    return rows[:most], LeftOut(rows=len(rest), amount=sum(row[amount] for row in rest))


def _slow(rows: Rows, place: _Place) -> SlowCells:
    shown, left_out = _shown(rows, SLOW_MAX, "slow_wait_us")
    return SlowCells(
        interval=_column(shown, "interval"),
        kind=_column(shown, "kind"),
        leader=_brokers(shown, "broker_id", place),
        replica=_brokers(shown, "replica", place),
        succeeded=[int(row["succeeded"]) for row in shown],
        topic=_column(shown, "closing_topic"),
        partition=_column(shown, "closing_partition"),
        client=_column(shown, "client_id"),
        operations=_column(shown, "operations"),
        slow_wait_us=_column(shown, "slow_wait_us"),
        wait_us_max=_column(shown, "wait_us"),
        left_out=left_out,
    )


def _errors(rows: Rows, place: _Place) -> ErrorCells:
    shown, left_out = _shown(rows, ERRORS_MAX, "operations")
    return ErrorCells(
        interval=_column(shown, "interval"),
        leader=_brokers(shown, "broker_id", place),
        api=_column(shown, "api"),
        client=_column(shown, "client_id"),
        code=_column(shown, "code"),
        operations=_column(shown, "operations"),
        left_out=left_out,
    )


def _requests(rows: Rows, totals: Iterable[Counter[int]], merges: int) -> RequestCells:
    return RequestCells(
        interval=_column(rows, "interval"),
        kind=_column(rows, "kind"),
        requests=_column(rows, "requests"),
        within_1=_column(rows, "within_1"),
        total_us=_column(rows, "total_us"),
        phases_us=[[row[f"{name}_us"] for name in PHASES] for row in rows],
        total=[packed(histogram, merges) for histogram in totals],
    )


def _clients(rows: Rows) -> ClientCells:
    shown, left_out = _shown(rows, CLIENTS_MAX, "requests")
    return ClientCells(
        interval=_column(shown, "interval"),
        client=_column(shown, "client_id"),
        api=_column(shown, "api"),
        requests=_column(shown, "requests"),
        total_us=_column(shown, "total_us"),
        total_us_max=_column(shown, "total_us_max"),
        left_out=left_out,
    )
