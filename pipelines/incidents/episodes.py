"""Episodes of several brokers that are one. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable

from pipelines.incidents.facts import Row
from pipelines.incidents.incident import Place


def together(rows: Iterable[Row], by: Callable[[Row], Hashable], within_us: int) -> list[list[Row]]:
    """Episodes of lines with one key, those that begin within ``within_us`` of the end of the ones before as one."""
    groups: dict[Hashable, list[list[Row]]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row["first_time"]):
        of_key = groups[by(row)]
        if of_key and row["first_time"] - max(other["last_time"] for other in of_key[-1]) <= within_us:
            of_key[-1].append(row)
        else:
            of_key.append([row])
    return [group for of_key in groups.values() for group in of_key]


def first(rows: Iterable[Row]) -> int:
    """When the first one begins."""
    return min(int(row["first_time"]) for row in rows)


def last(rows: Iterable[Row]) -> int:
    """When the last one ends."""
    return max(int(row["last_time"]) for row in rows)


def lines(rows: Iterable[Row]) -> int:
    """How many lines they have."""
    return sum(int(row["line_count"]) for row in rows)


def brokers_of(rows: Iterable[Row]) -> tuple[int, ...]:
    """Brokers that wrote them, ascending."""
    return tuple(sorted({row["broker_id"] for row in rows if row["broker_id"] is not None}))


def partitions_of(rows: Iterable[Row]) -> frozenset[str]:
    """Partitions that they name, as ``orders-4``, also where a line has ``[orders,4]``."""
    names = (name for row in rows for name in row["partitions"] or ())
    return frozenset(name.strip("[]").replace(",", "-") for name in names)


def places(rows: Iterable[Row]) -> tuple[Place, ...]:
    """The first line of each."""
    return tuple(Place(row["file_id"], row["byte_offset"]) for row in rows)
