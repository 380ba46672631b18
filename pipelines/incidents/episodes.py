"""Episodes: lines of several brokers that are of one. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pipelines.incidents.facts import Facts, Node, Row, node, place
from pipelines.incidents.incident import LoggedIncident, Place, Severity
from pipelines.incidents.processes import shutdown_times
from pipelines.incidents.words import brokers, when

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
        """How many there are."""
        return sum(int(row["line_count"]) for row in self.rows)

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """Brokers that wrote them, ascending."""
        return tuple(sorted({row["broker_id"] for row in self.rows if row["broker_id"] is not None}))

    @property
    def node(self) -> Node:
        """The broker that wrote the first."""
        return node(self.rows[0])

    @property
    def partitions(self) -> frozenset[str]:
        """Partitions that they name, as ``orders-4``, also where a line has ``[orders,4]``."""
        names = (name for row in self.rows for name in row["partitions"] or ())
        return frozenset(name.strip("[]").replace(",", "-") for name in names)

    @property
    def keys(self) -> list[str]:
        """What `Signature.pattern` has for ``key``, each once."""
        return sorted({row["key"] for row in self.rows if row["key"]})

    @property
    def message(self) -> str:
        """The first line, with its stack trace."""
        return str(self.rows[0]["message"])

    @property
    def places(self) -> tuple[Place, ...]:
        """The first line of each row."""
        return tuple(map(place, self.rows))

    @property
    def when(self) -> str:
        return when(self.start_us, self.end_us)

    @property
    def at_brokers(self) -> str:
        """`` at broker 1``; empty where no line has its broker."""
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
    """Rows of one cluster and one value of each key; those that begin so soon after the end of the ones before as one.

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
    """Items in order, each with the ones just before where it belongs to them."""
    groups: list[list[T]] = []
    for item in items:
        if groups and belongs(groups[-1], item):
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


def before_shutdown(facts: Facts, rows: Iterable[Row], time: str = "first_time", margin_us: int = 0) -> list[Row]:
    """Rows but those with which a cluster ends that is shut down as a whole.

    Args:
        time: their column.
        margin_us: what comes so shortly before the end belongs to it.
    """
    ends = shutdown_times(facts)
    return [row for row in rows if row["cluster_id"] not in ends or row[time] + margin_us < ends[row["cluster_id"]]]
