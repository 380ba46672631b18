"""Episodes: lines of several brokers that are of one. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from highwater.pipelines.incidents.facts import Facts, Node, Row, node, place
from highwater.pipelines.incidents.incident import LoggedIncident, Place, Severity
from highwater.pipelines.incidents.words import brokers, when

T = TypeVar("T")


@dataclass(frozen=True)
class Episode:
    """Rows of `Facts.remarks` (matched log lines) with small gaps between them, in time order."""

    rows: list[Row]

    @property
    def cluster_id(self) -> str:
        return str(self.rows[0]["cluster_id"])

    @property
    def start_us(self) -> int:
        return min(int(row["first_time"]) for row in self.rows)

    @property
    def end_us(self) -> int:
        return max(int(row["last_time"]) for row in self.rows)

    @property
    def lines(self) -> int:
        """Return the number of log lines of all rows."""
        return sum(int(row["line_count"]) for row in self.rows)

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """Return the brokers that wrote the lines, ascending."""
        return tuple(sorted({row["broker_id"] for row in self.rows if row["broker_id"] is not None}))

    @property
    def node(self) -> Node:
        """Return (cluster, broker id) of the first line."""
        return node(self.rows[0])

    @property
    def partitions(self) -> frozenset[str]:
        """Return the partitions that the lines name, as ``orders-4``. A name such as ``[orders,4]`` is converted."""
        names = (name for row in self.rows for name in row["partitions"] or ())
        return frozenset(name.strip("[]").replace(",", "-") for name in names)

    @property
    def keys(self) -> list[str]:
        """Return the distinct values of the rows' ``key``: what the pattern of each line captured under this name."""
        return sorted({row["key"] for row in self.rows if row["key"]})

    @property
    def message(self) -> str:
        """Return the first message, with its stack trace."""
        return str(self.rows[0]["message"])

    @property
    def places(self) -> tuple[Place, ...]:
        """Return file id and byte offset of the first line of each row."""
        return tuple(map(place, self.rows))

    @property
    def when(self) -> str:
        return when(self.start_us, self.end_us)

    @property
    def at_brokers(self) -> str:
        """Return `` at broker 1``. Empty if the brokers are unknown."""
        return f" at {brokers(self.broker_ids)}" if self.broker_ids else ""

    def incident(self, severity: Severity, sentence: str, **fields: Any) -> LoggedIncident:
        """Return an incident of the brokers that wrote the rows, from the first line to the last.

        Its weight is the number of lines. Its subject is the name of the pattern and the key of the first row.

        Args:
            fields: further fields of `LoggedIncident`. They override the fields above.
        """
        incident = LoggedIncident(
            severity=severity,
            cluster_id=self.cluster_id,
            start_us=self.start_us,
            end_us=self.end_us,
            sentence=sentence,
            broker_ids=self.broker_ids,
            places=self.places,
            weight=float(self.lines),
            subject=f"{self.rows[0].get('signature', '')} {self.rows[0].get('key', '')}".strip(),
        )
        return replace(incident, **fields)


def episodes(rows: Iterable[Row], *keys: str, within_s: int = 60) -> list[Episode]:
    """Return rows grouped by cluster, values of `keys` and time. A gap of more than `within_s` begins a new group.

    Args:
        rows: rows of `Facts.remarks`.
        keys: names of columns that are equal in a group.
        within_s: longest gap between two rows of a group, seconds.
    """

    def is_soon(group: list[Row], row: Row) -> bool:
        return bool(row["first_time"] - max(other["last_time"] for other in group) <= within_s * 1_000_000)

    by_key: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row["first_time"]):
        by_key[row["cluster_id"], *(row[key] for key in keys)].append(row)
    return [Episode(group) for of_key in by_key.values() for group in grouped(of_key, is_soon)]


def grouped(items: Iterable[T], belongs: Callable[[list[T], T], bool]) -> list[list[T]]:
    """Return consecutive items in groups. An item joins the last group if `belongs(group, item)` is True."""
    groups: list[list[T]] = []
    for item in items:
        if groups and belongs(groups[-1], item):
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


class Window(NamedTuple):
    """Cluster and time of a state, in us since the epoch."""

    cluster_id: str
    start_us: int
    end_us: int | None  #: None: it lasts to the end of the logs


def windows_together(
    items: Iterable[T], window: Callable[[T], Window], within_us: int, is_chain: bool = False
) -> list[list[T]]:
    """Return groups of items that begin together and end together.

    The incident of a group has one start and one end, so both must be true of each item. Items with and without an end
    are in separate groups.

    Args:
        window: function that returns cluster, start and end of an item.
        within_us: starts (or ends) within this time of the first item's are together, microseconds.
        is_chain: measure the distance from the previous item instead of the first. The group may then become long.
    """
    compared = -1 if is_chain else 0

    def begins_with(group: list[T], item: T) -> bool:
        other, this = window(group[compared]), window(item)
        return this.cluster_id == other.cluster_id and this.start_us - other.start_us <= within_us

    def ends_with(group: list[T], item: T) -> bool:
        other, this = window(group[compared]).end_us, window(item).end_us
        return other is this is None or (other is not None and this is not None and this - other <= within_us)

    def start_of(item: T) -> tuple[str, int]:
        return window(item)[:2]

    def end_of(item: T) -> tuple[bool, int]:
        end_us = window(item).end_us
        return end_us is None, end_us or 0

    def split(group: list[T]) -> list[list[T]]:
        starts = grouped(sorted(group, key=start_of), begins_with)
        parts = [part for one in starts for part in grouped(sorted(one, key=end_of), ends_with)]
        # Items that a part lacks now may have linked the starts of others.
        return parts if len(parts) <= 1 else [small for part in parts for small in split(part)]

    return [sorted(group, key=start_of) for group in split([*items])]


def before_shutdown(facts: Facts, rows: Iterable[Row], time: str = "first_time", margin_us: int = 0) -> list[Row]:
    """Return rows without the rows of the shutdown of a whole cluster, or after it.

    Args:
        time: column with the time of a row, microseconds.
        margin_us: rows this shortly before the shutdown belong to it, microseconds.
    """
    ends = facts.brokers.shutdown_times
    return [row for row in rows if row["cluster_id"] not in ends or row[time] + margin_us < ends[row["cluster_id"]]]
