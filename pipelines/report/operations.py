"""From collected rows to the figures of operations. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Literal

from highwater.pipelines.base.values import iso_utc
from highwater.pipelines.replay import outcome as o
from highwater.pipelines.report.figures import (
    COORDINATOR,
    FETCH,
    PRODUCE,
    WITHIN_MS,
    Collected,
    Rows,
    count_by,
    from_ticks,
    share_of,
    to_ms,
)
from highwater.pipelines.report.measures import (
    ApiOperations,
    CoordinatorOperations,
    FetchOperations,
    Interval,
    Judged,
    Operations,
    OperationsByKind,
    ReaderGroup,
    ResidualQuantiles,
    WidthQuantiles,
    WorstOperation,
)
from highwater.schemas.gold import CLASSES

#: Number of groups of fetches. Further groups are summed.
GROUPS_MAX = 20
#: Reasons of a fetch's class that say that the logs do not show what completed it.
_CAUSE_NOT_SHOWN = (o.APPEND_NOT_LOGGED, o.SESSION_NOT_LOGGED)

_ReadFrom = Literal["leader", "follower", "tier"]
#: Reader, min.bytes, isolation level, where it reads.
_Reader = tuple[
    Literal["follower", "consumer"], int | None, Literal["read_uncommitted", "read_committed"] | None, _ReadFrom | None
]


def group_operations_by_kind(rows: Collected) -> OperationsByKind:
    """Return the figures of each kind of operation."""
    produces = rows.groups_of(PRODUCE)
    return OperationsByKind(
        produce=Operations(
            **_make_judged(produces, rows.quantiles_of(PRODUCE), _succeeded(_select_timed(produces))),
            worst=_select_worst(rows, PRODUCE),
        ),
        fetch=_make_fetches(rows),
        coordinator=_make_coordinators(rows),
    )


def _make_fetches(rows: Collected) -> FetchOperations:
    groups, quantiles = rows.groups_of(FETCH), rows.quantiles_of(FETCH)
    waited = [row for row in groups if row["parked"]]
    known = [row for row in groups if row["cause"] != o.UNKNOWN and row["class_reason"] not in _CAUSE_NOT_SHOWN]
    observed = _count(groups)
    return FetchOperations(
        **_make_judged(groups, quantiles, _count(_select_timed(groups))),
        worst=_select_worst(rows, FETCH),
        parked=Judged(**_make_judged(waited, quantiles, _count(_select_timed(waited)), "parked_")),
        cause_known=share_of(_count(known), observed) if observed else None,
        groups=_make_readers(groups),
    )


def _make_readers(groups: Rows) -> tuple[ReaderGroup, ...]:
    """Return fetches by kind of reader, the most frequent first."""
    by_reader: dict[_Reader, Rows] = defaultdict(list)
    for row in groups:
        if row["by_follower"]:
            by_reader["follower", None, None, None].append(row)
        else:
            isolation: Literal["read_uncommitted", "read_committed"]
            isolation = "read_committed" if row["read_committed"] else "read_uncommitted"
            by_reader["consumer", row["min_bytes"], isolation, row["read_from"]].append(row)
    largest = sorted(
        by_reader,
        key=lambda reader: (-_count(by_reader[reader]), reader[0], reader[1] or 0, reader[2] or "", reader[3] or ""),
    )
    readers = [_make_reader(*reader, by_reader[reader]) for reader in largest[:GROUPS_MAX]]
    if len(largest) > GROUPS_MAX:
        readers.append(
            _make_reader("other", None, None, None, [row for rest in largest[GROUPS_MAX:] for row in by_reader[rest]])
        )
    return tuple(readers)


def _make_reader(
    reader: Literal["follower", "consumer", "other"],
    min_bytes: int | None,
    isolation_level: Literal["read_uncommitted", "read_committed"] | None,
    read_from: _ReadFrom | None,
    rows: Rows,
) -> ReaderGroup:
    waited = [row for row in rows if row["parked"]]
    return ReaderGroup(
        reader=reader,
        min_bytes=min_bytes,
        isolation_level=isolation_level,
        observed=_count(rows),
        parked=_count(waited),
        **{name: count for name, count in _count_classes(rows).items() if name != "contradicted"},
        within_ms=_count_near(waited, _count(_select_timed(waited))),
        by_cause=count_by(rows, "cause"),
        read_from=read_from,
    )


def _make_coordinators(rows: Collected) -> CoordinatorOperations:
    groups = rows.groups_of(COORDINATOR)
    return CoordinatorOperations(
        **_make_judged(groups, rows.quantiles_of(COORDINATOR), _succeeded(_select_timed(groups))),
        worst=_select_worst(rows, COORDINATOR),
        by_api={api: _make_api([row for row in groups if row["api"] == api]) for api in count_by(groups, "api")},
    )


def _make_api(rows: Rows) -> ApiOperations:
    return ApiOperations(
        observed=_count(rows), **_count_classes(rows), within_ms=_count_near(rows, _succeeded(_select_timed(rows)))
    )


def _make_judged(groups: Rows, quantiles: Mapping[str, Any], measured: int, prefix: str = "") -> dict[str, Any]:
    """Return the fields of `Judged`.

    Args:
        groups: counts of the operations.
        quantiles: quantiles of the operations, by column.
        measured: number of operations that the shares ``within_ms`` refer to.
        prefix: prefix of the columns in `quantiles`.
    """
    classes = _count_classes(groups)
    observed, succeeded = _count(groups), _succeeded(groups)
    width = [from_ticks(value) for value in quantiles.get(f"{prefix}width") or (None,) * 2]
    distance = [from_ticks(value) for value in quantiles.get(f"{prefix}distance") or (None,) * 4]
    farthest = to_ms(quantiles.get(f"{prefix}distance_max"))

    def of_class(name: str) -> Callable[[Mapping[str, Any]], bool]:
        return lambda row: row["class"] == name

    return {
        "observed": observed,
        "replayed": observed - classes["unobservable"],
        **classes,
        "interval_width_ms": WidthQuantiles(p50=width[0], p99=width[1]),
        "by_cause": count_by(groups, "cause"),
        "residual_ms": ResidualQuantiles(
            p50=distance[0], p95=distance[1], p99=distance[2], p999=distance[3], max=farthest
        ),
        "within_ms": _count_near(groups, measured),
        "succeeded": succeeded,
        "with_error": observed - succeeded,
        "late_reasons": count_by(groups, "class_reason", of_class("late")),
        "unobservable_reasons": count_by(groups, "class_reason", of_class("unobservable")),
        "known_bugs": count_by(groups, "known_bug"),
    }


def _count_classes(groups: Rows) -> dict[str, int]:
    """Return the number of operations by class."""
    counts = count_by(groups, "class")
    return {name: counts.get(name, 0) for name in CLASSES}


def _select_timed(groups: Rows) -> Rows:
    """Return operations without those whose times are whole seconds. Such times are too coarse to measure accuracy."""
    return [row for row in groups if row["class_reason"] != o.COARSE_TIMES]


def _count(groups: Rows) -> int:
    return sum(row["operations"] for row in groups)


def _succeeded(groups: Rows) -> int:
    return sum(row["operations"] for row in groups if row["succeeded"])


def _count_near(groups: Rows, measured: int) -> dict[str, float | None]:
    return {
        str(n): share_of(sum(row[f"within_{n}"] for row in groups), measured) if measured else None for n in WITHIN_MS
    }


def _select_worst(rows: Collected, kind: str) -> tuple[WorstOperation, ...]:
    return tuple(
        WorstOperation.of(
            row,
            arrival_time=iso_utc(row["arrival_us"]),
            wait_ms=round(row["wait_ms"], 3),
            residual_ms=to_ms(row["residual_ms"]),
            topic=row["closing_topic"],
            partition=row["closing_partition"],
            operation_class=row["class"],
        )
        for row in rows.worst
        if row["kind"] == kind
    )


def make_timeline(rows: Collected) -> tuple[Interval, ...]:
    """Return the acks=all produces per interval, in order of time."""
    return tuple(
        Interval.of(
            row,
            time=iso_utc(row["start_s"] * 1_000_000),
            interval_s=rows.interval_s,
            total_ms_p99=from_ticks(row["total_p99"]),
        )
        for row in sorted(rows.timeline, key=lambda row: int(row["start_s"]))
    )
