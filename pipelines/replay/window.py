"""Which part of silver a replay reads: of each broker's log what lies behind its seal, and what is carried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from pipelines.replay.seals import Broker, Seal

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: A log's last line may not be its newest: clocks are set back.
_DISORDER_US = 3_600_000_000


def _timestamp(time_us: int) -> Column:
    return F.lit(_EPOCH + timedelta(microseconds=time_us))


@dataclass(frozen=True)
class Bounds:
    """An instant per broker, microseconds: rows at or after it are read; all rows of a broker without one."""

    instants: Mapping[Broker, int]
    #: When the log of each broker of the lake ends. If all have an instant, Delta can skip files by time.
    last_us: Mapping[Broker, int] = field(default_factory=dict)

    def rows(self, rows: DataFrame, time: str) -> DataFrame:
        """The rows of silver whose column `time`, a timestamp, lies at or after the broker's instant."""
        if not self.instants:
            return rows
        kept = rows.where(self.at_or_after(F.unix_micros(time)))
        spans = self.spans()
        if not spans:
            return kept
        at = F.col(time)
        within = [at.between(*map(_timestamp, span)) for span in spans[:-1]]
        return kept.where(reduce(or_, within, at >= _timestamp(spans[-1][0])))

    def spans(self) -> list[tuple[int, int]]:
        """Spans of time outside of which no broker has a row that is read; empty where not every broker has an instant.

        A broker whose log has ended is no reason to read all that the others have written since.
        """
        if not self.last_us.keys() <= self.instants.keys():
            return []
        spans: list[tuple[int, int]] = []
        logs = ((self.instants[broker], last_us + _DISORDER_US) for broker, last_us in self.last_us.items())
        for since_us, until_us in sorted(logs):
            if spans and since_us <= spans[-1][1]:
                since_us, before_us = spans.pop()
                until_us = max(until_us, before_us)
            spans.append((since_us, until_us))
        return spans

    def at_or_after(self, micros: Column) -> Column:
        """Whether an instant of a row with ``cluster_id`` and ``broker_id`` lies at or after that of its broker."""
        if not self.instants:
            return F.lit(True)
        return F.coalesce(micros >= self.of_row(), F.lit(True))

    def before(self, micros: Column) -> Column:
        """Whether an instant of a row certainly lies before that of its broker; False without one."""
        if not self.instants:
            return F.lit(False)
        return F.coalesce(micros < self.of_row(), F.lit(False))

    def of_row(self) -> Column:
        """The instant of the row's broker; null without one."""
        pairs = [
            F.lit(item)
            for (cluster_id, broker_id), time_us in sorted(self.instants.items())
            for item in (f"{cluster_id}|{broker_id}", time_us)
        ]
        return F.create_map(*pairs)[F.concat_ws("|", "cluster_id", F.coalesce("broker_id", F.lit(-1)).cast("string"))]


@dataclass(frozen=True)
class Window:
    """What one run replays.

    Attributes:
        seals: by broker, the seal that it goes on from; brokers without one are replayed from the beginning.
        until: by broker, up to where this run's replay is final (exclusive), microseconds.
        last_us: by broker of the lake, when its log ends.
        carried: rows of ``state.carried`` for those seals; None where nothing is carried.
    """

    seals: Mapping[Broker, Seal] = field(default_factory=dict)
    until: Mapping[Broker, int] = field(default_factory=dict)
    last_us: Mapping[Broker, int] = field(default_factory=dict)
    carried: DataFrame | None = None

    @property
    def sealed(self) -> Bounds:
        """Events of partitions from the seals on."""
        return Bounds({broker: seal.sealed_us for broker, seal in self.seals.items()}, self.last_us)

    @property
    def sessions(self) -> Bounds:
        """Fetches that are not final yet."""
        return Bounds({broker: seal.sessions_us for broker, seal in self.seals.items()}, self.last_us)

    @property
    def waiting(self) -> Bounds:
        """Requests that may have an append that is not final yet."""
        return Bounds({broker: seal.waiting_us for broker, seal in self.seals.items()}, self.last_us)

    @property
    def ends(self) -> Bounds:
        """The seals of this run."""
        return Bounds(self.until)

    def rows_of(self, kind: str, schema: str | StructType) -> DataFrame | None:
        """Carried rows of a kind in their own columns; None where nothing is carried."""
        if self.carried is None:
            return None
        return self.carried.where(F.col("kind") == kind).select(F.from_json("row", schema).alias("r")).select("r.*")

    def states_of(self, kind: str) -> DataFrame | None:
        """Carried folds of a kind: cluster_id, broker_id, name, ``state``; None where nothing is carried."""
        if self.carried is None:
            return None
        return self.carried.where(F.col("kind") == kind).select("cluster_id", "broker_id", "name", "state")


#: All there is, from the beginning.
WHOLE = Window()
