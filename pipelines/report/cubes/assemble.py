"""The aggregates of the page, asked of a lake."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from highwater.pipelines.base.values import UNKNOWN_BROKER, Part
from highwater.pipelines.report.cubes import queries
from highwater.pipelines.report.cubes.buckets import FINEST, compute_accuracy, count_merges, growth, pack_buckets
from highwater.pipelines.report.cubes.intervals import Intervals
from highwater.pipelines.report.cubes.parts import (
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
from highwater.pipelines.report.figures import Rows

_Cells = TypeVar("_Cells", bound=Part)


class CellRows(NamedTuple):
    """Rows of the page's aggregates, with the columns of `pipelines.report.cubes.parts`. Histograms are dicts."""

    operations: Rows
    totals: Rows
    slow: Rows
    errors: Rows
    requests: Rows
    clients: Rows


def read_cell_rows(ask: Callable[[str], Rows], operations: str, requests: str, intervals: Intervals) -> CellRows:
    """Return the rows of all aggregates.

    Args:
        ask: runs a DuckDB statement and returns its rows.
        operations: SQL query of `pipelines.report.queries.select_operations`.
        requests: SQL query of `pipelines.report.queries.select_requests`.
    """
    return CellRows(
        operations=ask(queries.select_operation_cells(operations, intervals)),
        totals=ask(queries.select_total_cells(operations, intervals)),
        slow=ask(queries.select_slow_cells(operations, intervals)),
        errors=ask(queries.select_error_cells(operations, intervals)),
        requests=ask(queries.select_request_cells(requests, intervals)),
        clients=ask(queries.select_client_cells(requests, intervals)),
    )


def make_cubes(rows: CellRows, intervals: Intervals) -> Cubes:
    """Return the page's aggregates as columns. Histograms are coarsened until they fit the page."""
    nodes = _list_nodes(rows.operations)
    places = {node: number for number, node in enumerate(nodes)}
    named = (("wait", rows.operations), ("total", rows.totals), ("without", rows.totals), ("total", rows.requests))
    merges = count_merges([dict(row[name] or ()) for name, cells in named for row in cells])

    def columns(model: type[_Cells], cells: Rows, **others: Any) -> _Cells:
        return model(
            **{name: _make_column(cells, name, places, merges) for name in model.model_fields.keys() - others}, **others
        )

    ratio = growth(FINEST) ** (2**merges)
    return Cubes(
        start_s=intervals.start_s,
        interval_s=intervals.length_s,
        intervals=intervals.number,
        accuracy=round(compute_accuracy(ratio), 4),
        growth=ratio,
        nodes=[Node(cluster_id=cluster_id, broker_id=broker_id) for cluster_id, broker_id in nodes],
        operations=columns(OperationCells, rows.operations),
        totals=columns(TotalCells, rows.totals),
        slow=columns(SlowCells, rows.slow, left_out=_count_left_out(rows.slow, "slow_wait_us")),
        errors=columns(ErrorCells, rows.errors, left_out=_count_left_out(rows.errors, "operations")),
        requests=columns(RequestCells, rows.requests),
        clients=columns(ClientCells, rows.clients, left_out=_count_left_out(rows.clients, "requests")),
    )


def _make_column(rows: Rows, name: str, places: Mapping[tuple[str, int], int], merges: int) -> list[Any]:
    if name in ("leader", "replica"):
        return [places[row["cluster_id"], row[name]] for row in rows]
    if name in ("wait", "total", "without"):
        return [pack_buckets(dict(row[name] or ()), merges) for row in rows]
    return [row[name] for row in rows]


def _list_nodes(cells: Rows) -> list[tuple[str, int]]:
    """Return sorted (cluster, broker) of leaders and awaited replicas. Each cluster also gets the unknown broker -1."""
    nodes = {(row["cluster_id"], row[name]) for row in cells for name in ("leader", "replica")}
    nodes |= {(cluster_id, UNKNOWN_BROKER) for cluster_id, _ in nodes}
    return sorted(nodes, key=lambda node: (node[0], node[1] == UNKNOWN_BROKER, node[1]))


def _count_left_out(shown: Sequence[Mapping[str, Any]], amount: str) -> LeftOut:
    """Return the number and the total of rows beyond the limit of the page."""
    if not shown:
        return LeftOut(rows=0, amount=0)
    whole = shown[0]["amount_of_all"] - sum(row[amount] for row in shown)
    return LeftOut(rows=shown[0]["rows_of_all"] - len(shown), amount=whole)
