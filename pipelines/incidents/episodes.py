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
    """Rows of `Facts.remarks` that are one episode, in order of time."""

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
        """Return how many there are."""
        return sum(int(row["line_count"]) for row in self.rows)

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """Return brokers that wrote them, ascending."""
        return tuple(sorted({row["broker_id"] for row in self.rows if row["broker_id"] is not None}))

    @property
    def node(self) -> Node:
        """Return the broker that wrote the first."""
        return node(self.rows[0])

    @property
    def partitions(self) -> frozenset[str]:
        """Return partitions that they name, as ``orders-4``, also where a line has ``[orders,4]``."""
        names = (name for row in self.rows for name in row["partitions"] or ())
        return frozenset(name.strip("[]").replace(",", "-") for name in names)

    @property
    def keys(self) -> list[str]:
        """Return values of the group ``key`` of `Signature.pattern`, each once."""
        return sorted({row["key"] for row in self.rows if row["key"]})

    @property
    def message(self) -> str:
        """Return the first line, with its stack trace."""
        return str(self.rows[0]["message"])

    @property
    def places(self) -> tuple[Place, ...]:
        """Return the first line of each row."""
        return tuple(map(place, self.rows))

    @property
    def when(self) -> str:
        return when(self.start_us, self.end_us)

    @property
    def at_brokers(self) -> str:
        """Return `` at broker 1``; empty where no line has its broker."""
        return f" at {brokers(self.broker_ids)}" if self.broker_ids else ""

    def incident(self, severity: Severity, sentence: str, **fields: Any) -> LoggedIncident:
        """Return an incident of these brokers, from the first line to the last, that weighs as many as there are.

        The signature and the key of the first row are its subject.

        Args:
            fields: others of `LoggedIncident`, or these as they are instead.
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
    """Return rows of one cluster and one value of each key; those that begin so soon after the end of the ones before
    as one.

    Args:
        keys: columns.
    """

    def is_soon(group: list[Row], row: Row) -> bool:
        return bool(row["first_time"] - max(other["last_time"] for other in group) <= within_s * 1_000_000)

    by_key: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row["first_time"]):
        by_key[row["cluster_id"], *(row[key] for key in keys)].append(row)
    return [Episode(group) for of_key in by_key.values() for group in grouped(of_key, is_soon)]


def grouped(items: Iterable[T], belongs: Callable[[list[T], T], bool]) -> list[list[T]]:
    """Return items in order, each with the ones just before where it belongs to them."""
    groups: list[list[T]] = []
    for item in items:
        if groups and belongs(groups[-1], item):
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


class Window(NamedTuple):
    """Where and when something lasted."""

    cluster_id: str
    start_us: int
    end_us: int | None  #: None: it lasts to the end of the logs


def windows_together(
    items: Iterable[T], window: Callable[[T], Window], within_us: int, is_chain: bool = False
) -> list[list[T]]:
    """Return groups of items whose windows begin together and end together.

    One incident says one window of all its items, so that is true of each item. Windows without an end are apart.

    Args:
        within_us: starts, or ends, this close to the first of the group are together.
        is_chain: the distance counts from the item before instead, however long the group becomes.
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
    """Return rows but those with which a cluster ends that is shut down as a whole.

    Args:
        time: their column.
        margin_us: what comes so shortly before the end belongs to it.
    """
    ends = facts.brokers.shutdown_times
    return [row for row in rows if row["cluster_id"] not in ends or row[time] + margin_us < ends[row["cluster_id"]]]
