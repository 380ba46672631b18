"""The part of silver that a replay reads: each broker's log after its seal, and the saved state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow.compute as pc

from highwater.pipelines.kafka.seals import Broker, Seal
from highwater.pipelines.lake.bounds import Bounds
from highwater.pipelines.lake.parquet import Stored
from highwater.pipelines.lake.readings import Reading, RowsOf
from highwater.schemas.state import FOLDS


class CarriedFolds(NamedTuple):
    """Saved rows of ``state.folds`` from which a run resumes."""

    files: tuple[Stored, ...]  #: files with these rows
    where: pc.Expression


@dataclass(frozen=True)
class ReplayWindow:
    """The time ranges of silver that one run replays: after each broker's checkpoint."""

    #: by broker, the seal from which it resumes; brokers without one are replayed from the beginning
    seals: Mapping[Broker, Seal] = field(default_factory=dict)
    #: by broker, up to where this run's replay is final (exclusive), microseconds
    until: Mapping[Broker, int] = field(default_factory=dict)
    last_us: Mapping[Broker, int] = field(default_factory=dict)  #: by broker of the lake, when its log ends
    carried: CarriedFolds | None = None  #: saved state of those seals; None without any

    @property
    def sealed(self) -> Bounds:
        """Return by broker the time from which partition events are read: its checkpoint."""
        return Bounds({broker: seal.sealed_us for broker, seal in self.seals.items()}, self.last_us)

    @property
    def sessions(self) -> Bounds:
        """Return by broker the time from which fetches are read: the first that is not final."""
        return Bounds({broker: seal.sessions_us for broker, seal in self.seals.items()}, self.last_us)

    @property
    def waiting(self) -> Bounds:
        """Return by broker the time from which requests are read: the first that may not be final."""
        return Bounds({broker: seal.waiting_us for broker, seal in self.seals.items()}, self.last_us)

    def carried_of(self, kind: str, rows_of: RowsOf) -> list[Reading]:
        """Return table scans of the saved rows of a kind, mapped by `rows_of` in tasks. Empty without saved state."""
        if self.carried is None:
            return []
        files, where = self.carried
        return [Reading(FOLDS, FOLDS.column_names, rows_of, where & (pc.field("kind") == kind), files)]


#: All there is, from the beginning.
WHOLE = ReplayWindow()
