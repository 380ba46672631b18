"""Small histories of one partition on its leader, written by hand, and the fold over them."""

from __future__ import annotations

from collections.abc import Iterable

from highwater.pipelines.kafka.context import Context
from highwater.pipelines.kafka.versions import rules_for
from highwater.pipelines.replay.kernel import finish, step
from highwater.pipelines.replay.outcome import PartitionOutcome
from highwater.pipelines.replay.state import State
from highwater.pipelines.replay.wakes import Wake
from highwater.schemas import events as e
from highwater.schemas.events import Event

LEADER = 1
MS = 1_000


def context(version: str = "3.9.1", lag_ms: int = 6_000, min_isr: int = 1) -> Context:
    return Context(LEADER, rules_for(version), lag_ms * MS, ((0, min_isr),))


def leader_start(ms: float, isr: Iterable[int], epoch: int = 0, offset: int = 0) -> Event:
    at = round(ms * MS)
    return Event(at, e.LEADER_START, at, leader_epoch=epoch, offset=offset, high_watermark=offset, isr=tuple(isr))


def leader_end(ms: float, epoch: int = 1) -> Event:
    at = round(ms * MS)
    return Event(at, e.LEADER_END, at, leader_epoch=epoch)


def isr_update(ms: float, isr: Iterable[int], controller: bool = False) -> Event:
    at = round(ms * MS)
    return Event(at, e.ISR_UPDATE, at, isr=tuple(isr), controller=controller)


def fetch(
    ms: float,
    replica: int,
    offset: int | None,
    *,
    sequence: int | None = None,
    chain: str | None = None,
    chain_end_ms: float = 1e9,
    took_ms: float = 0.1,
    error: int = 0,
) -> Event:
    """A fetch that was handled at `ms`, dequeued `took_ms` earlier."""
    at = round(ms * MS)
    return Event(
        at,
        e.FETCH,
        round((ms - took_ms) * MS),
        offset=offset,
        replica_id=replica,
        error_code=error,
        chain=chain or f"c{replica}",
        sequence=sequence if sequence is not None else at,
        chain_end_us=round(chain_end_ms * MS),
        arrival_us=round((ms - took_ms) * MS),
    )


def produce(
    ms: float,
    base: int | None,
    *,
    answered_ms: float | None = None,
    error: int = 0,
    acks: int = -1,
    timeout_ms: int = 5_000,
    took_ms: float = 0.1,
    request: str | None = None,
) -> Event:
    """A produce whose append was handled at `ms`."""
    at = round(ms * MS)
    return Event(
        at,
        e.PRODUCE,
        round((ms - took_ms) * MS),
        offset=base,
        error_code=error,
        request_id=request or f"r{base}",
        completed_us=round((answered_ms if answered_ms is not None else ms) * MS),
        acks=acks,
        timeout_ms=timeout_ms,
        partitions=1,
    )


def fold(events: Iterable[Event], given: Context | None = None) -> dict[str, PartitionOutcome]:
    """Outcomes by request, of events in any order."""
    return {output.request_id: output for output in replay(events, given) if isinstance(output, PartitionOutcome)}


def wakes(events: Iterable[Event], given: Context | None = None) -> list[Wake]:
    """What may complete fetches, of events in any order."""
    return [output for output in replay(events, given) if isinstance(output, Wake)]


def replay(events: Iterable[Event], given: Context | None = None) -> list[PartitionOutcome | Wake]:
    """Everything that the kernel gives for events in any order."""
    state = State(given or context())
    outputs: list[PartitionOutcome | Wake] = []
    for event in sorted(events, key=lambda event: (event.time_us, e.RANK[event.kind])):
        outputs += step(state, event)
    return [*outputs, *finish(state)]
