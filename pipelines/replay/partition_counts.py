"""What a broker leads and hosts, step by step: the gauges of its ReplicaManager. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from pipelines.replay.step_down import Place
from schemas import events as e

#: min.insync.replicas by topic, instant and number of replicas, as the broker knew it; None where nothing tells.
MinIsrOf = Callable[[str, int, int | None], int | None]

LEADERS: Final = "leaders"
HOSTED: Final = "hosted"
UNDER_REPLICATED: Final = "under_replicated"
UNDER_MIN_ISR: Final = "under_min_isr"
AT_MIN_ISR: Final = "at_min_isr"
#: Partitions that are led, and of which nothing tells whether they are in the counts above.
REPLICAS_UNKNOWN: Final = "replicas_unknown"
MIN_ISR_UNKNOWN: Final = "min_isr_unknown"
COUNTS: Final = (LEADERS, HOSTED, UNDER_REPLICATED, UNDER_MIN_ISR, AT_MIN_ISR, REPLICAS_UNKNOWN, MIN_ISR_UNKNOWN)

#: Kinds of events that tell of them.
HANDLED: Final = (e.LEADER_START, e.LEADER_END, e.ISR_UPDATE)


@dataclass
class _Replica:
    """A partition as the broker has it."""

    leads: bool = False
    isr: int | None = None
    replicas: int | None = None


@dataclass
class PartitionCounts:
    """Folds what a broker said of its partitions."""

    min_isr_of: MinIsrOf  #: see `MinIsrOf`
    _replicas: dict[Place, _Replica] = field(default_factory=dict)
    _counted: dict[Place, frozenset[str]] = field(default_factory=dict)
    _changes: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))

    def fold(
        self,
        events: Iterable[tuple[Place, e.Event]],
        starts_us: Iterable[int],
        settings_us: Mapping[str, Iterable[int]] | None = None,
    ) -> dict[str, dict[int, int]]:
        """Of all `COUNTS` the values by the instants, ascending, from which on they hold.

        Args:
            events: `pipelines.replay.broker_account` of one broker, in any order; only those of `HANDLED` tell any.
            starts_us: when it was started: it leads and hosts nothing then.
            settings_us: by topic, when its min.insync.replicas changed at this broker.
        """
        ordered: list[tuple[int, int, str, int, e.Event | None]] = [
            (event.time_us, 1 + e.RANK[event.kind], *place, event) for place, event in events if event.kind in HANDLED
        ]
        ordered += [(start_us, 0, "", -1, None) for start_us in starts_us]
        ordered += [
            (at_us, 9, topic, -1, None) for topic, instants in (settings_us or {}).items() for at_us in instants
        ]
        for time_us, _, topic, partition, event in sorted(ordered, key=lambda item: item[:4]):
            if event is not None:
                self._take((topic, partition), event)
                self._recount((topic, partition), time_us)
            elif topic:
                for place in [place for place in self._replicas if place[0] == topic]:
                    self._recount(place, time_us)
            else:
                for place in list(self._replicas):
                    del self._replicas[place]
                    self._recount(place, time_us)
        return {name: _sums(self._changes[name]) for name in COUNTS}

    def _take(self, place: Place, event: e.Event) -> None:
        if event.kind == e.LEADER_END and event.error_code is not None:
            # The replica itself left the broker.
            self._replicas.pop(place, None)
            return
        if event.kind == e.LEADER_END and event.leader_epoch is None:
            return
        if event.kind == e.ISR_UPDATE and place not in self._replicas:
            return
        replica = self._replicas.setdefault(place, _Replica())
        if event.replicas:
            replica.replicas = event.replicas
        if event.kind == e.LEADER_END:
            replica.leads, replica.isr = False, None
        else:
            replica.leads = replica.leads or event.kind == e.LEADER_START
            if event.isr is not None or event.kind == e.LEADER_START:
                replica.isr = None if event.isr is None else len(event.isr)

    def _recount(self, place: Place, time_us: int) -> None:
        counted = self._counts_of(place, time_us)
        before = self._counted.get(place, frozenset())
        for name in counted - before:
            self._changes[name].append((time_us, 1))
        for name in before - counted:
            self._changes[name].append((time_us, -1))
        self._counted[place] = counted

    def _counts_of(self, place: Place, time_us: int) -> frozenset[str]:
        replica = self._replicas.get(place)
        if replica is None:
            return frozenset()
        if not replica.leads:
            return frozenset({HOSTED})
        counts = {HOSTED, LEADERS}
        if replica.isr is None or replica.replicas is None:
            counts.add(REPLICAS_UNKNOWN)
        elif replica.isr < replica.replicas:
            counts.add(UNDER_REPLICATED)
        min_isr = self.min_isr_of(place[0], time_us, replica.replicas)
        if replica.isr is None or min_isr is None:
            counts.add(MIN_ISR_UNKNOWN)
        elif replica.isr <= min_isr:
            counts.add(AT_MIN_ISR if replica.isr == min_isr else UNDER_MIN_ISR)
        return frozenset(counts)


def _sums(changes: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Sums of all changes up to an instant."""
    sums: dict[int, int] = {}
    total = 0
    for time_us, change in sorted(changes):
        total += change
        sums[time_us] = total
    return sums
