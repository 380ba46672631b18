"""Which part of silver a replay reads: of each broker's log what lies behind its seal, and what is carried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from pipelines.replay.bounds import Bounds
from pipelines.replay.seals import Broker, Seal


class SparkBounds(Bounds):
    """`Bounds` over rows of Spark."""

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
        if not self.instants:
            # An empty map has no type of keys.
            return F.lit(None).cast("long")
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
    def sealed(self) -> SparkBounds:
        """Events of partitions from the seals on."""
        return SparkBounds({broker: seal.sealed_us for broker, seal in self.seals.items()}, self.last_us)

    @property
    def sessions(self) -> SparkBounds:
        """Fetches that are not final yet."""
        return SparkBounds({broker: seal.sessions_us for broker, seal in self.seals.items()}, self.last_us)

    @property
    def waiting(self) -> SparkBounds:
        """Requests that may have an append that is not final yet."""
        return SparkBounds({broker: seal.waiting_us for broker, seal in self.seals.items()}, self.last_us)

    @property
    def ends(self) -> SparkBounds:
        """The seals of this run."""
        return SparkBounds(self.until)

    def carried_of(self, kind: str) -> DataFrame | None:
        """Rows of ``state.carried`` of a kind; None where nothing is carried."""
        return None if self.carried is None else self.carried.where(F.col("kind") == kind)

    def rows_of(self, kind: str, schema: str | StructType) -> DataFrame | None:
        """Carried rows of a kind in their own columns; None where nothing is carried."""
        rows = self.carried_of(kind)
        return None if rows is None else rows.select(F.from_json("row", schema).alias("r")).select("r.*")

    def states_of(self, kind: str) -> DataFrame | None:
        """Carried folds of a kind: cluster_id, broker_id, name, ``state``; None where nothing is carried."""
        rows = self.carried_of(kind)
        return None if rows is None else rows.select("cluster_id", "broker_id", "name", "state")


#: All there is, from the beginning.
WHOLE = Window()
