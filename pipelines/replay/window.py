"""Which part of silver a replay reads: of each broker's log what lies behind its seal, and what is carried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from pipelines.replay.seals import Broker, Seal

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Bounds:
    """An instant per broker, microseconds: rows at or after it are read; all rows of a broker without one."""

    instants: Mapping[Broker, int]
    #: Every broker of the lake has an instant, so that Delta can skip files by the earliest of them.
    complete: bool = False

    def rows(self, rows: DataFrame, time: str) -> DataFrame:
        """The rows of silver whose column `time`, a timestamp, lies at or after the broker's instant."""
        if not self.instants:
            return rows
        kept = rows.where(self.at_or_after(F.unix_micros(time)))
        if self.complete:
            kept = kept.where(F.col(time) >= F.lit(_EPOCH + timedelta(microseconds=min(self.instants.values()))))
        return kept

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
        complete: every broker of the lake has a seal.
        carried: rows of ``state.carried`` for those seals; None where nothing is carried.
    """

    seals: Mapping[Broker, Seal] = field(default_factory=dict)
    until: Mapping[Broker, int] = field(default_factory=dict)
    complete: bool = False
    carried: DataFrame | None = None

    @property
    def sealed(self) -> Bounds:
        """Events of partitions from the seals on."""
        return Bounds({broker: seal.sealed_us for broker, seal in self.seals.items()}, self.complete)

    @property
    def sessions(self) -> Bounds:
        """Fetches that are not final yet."""
        return Bounds({broker: seal.sessions_us for broker, seal in self.seals.items()}, self.complete)

    @property
    def waiting(self) -> Bounds:
        """Requests that may have an append that is not final yet."""
        return Bounds({broker: seal.waiting_us for broker, seal in self.seals.items()}, self.complete)

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
