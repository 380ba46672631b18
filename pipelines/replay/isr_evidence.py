"""Facts of the whole broker log that the replay of a leader's ISR needs, in addition to the partition's events. Pure.

A partition's own lines do not show everything that decides its ISR. An incremental fetch session (KIP-227) asks for
partitions that its requests do not list. The leader may have paused. The leader of a KRaft partition proposes no
replica that is fenced or shutting down (KIP-841). All these facts are on the clock of the leading broker.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from highwater.pipelines.base.freeze import Freezer
from highwater.pipelines.base.instants import NEVER_US
from highwater.pipelines.kafka.versions import Version

#: (from, until), microseconds.
Span = tuple[int, int]


class Gap(NamedTuple):
    """A pause in the fetches of a follower's connection."""

    #: since_us, handled_us: the last fetch before it was dequeued, and handled
    since_us: int
    handled_us: int
    until_us: int  #: the next one arrived; `NEVER_US` where there is none
    complete: bool = True  #: no line is missing in between


#: States of a broker in the controller's last line.
FENCED: Final = "fenced"
SHUTTING_DOWN: Final = "shutting_down"
UNFENCED: Final = "unfenced"

#: How far back a rule of the ISR looks at most; a replica's lag is bounded by replica.lag.time.max.ms.
_REMEMBERED_US: Final = 86_400_000_000
#: A follower's connection shows a fetch at least this often: replica.fetch.wait.max.ms is 500 ms by default.
FETCH_GAP_US: Final = 1_000_000
#: Largest distance between a controller's line and the same change in the leader's metadata, microseconds.
_STANDING_EARLY_US = 500_000
_STANDING_LATE_US = 1_500_000

_ALWAYS: tuple[Span, ...] = ((0, NEVER_US),)


def evaluation_period_us(version: Version, lag_time_max_us: int) -> int:
    """Return the interval at which a leader checks for replicas to remove from the ISR, us.

    The task "isr-expiration" of ``ReplicaManager.startup`` runs every half of replica.lag.time.max.ms since 0.10.2, and
    every whole before.
    """
    return lag_time_max_us // 2 if version >= (0, 10, 2) else lag_time_max_us


def has_fetch_sessions(version: Version) -> bool:
    """Return True if fetches can omit partitions that did not change (fetch sessions: KIP-227, since 1.1)."""
    return version >= (1, 1, 0)


def commits_isr_unseen(version: Version) -> bool:
    """Return True if a committed ISR is only logged at TRACE, so that the proposal has to prove it.

    Until 2.4 (KAFKA-8965; ``Partition.updateIsr``).
    """
    return version < (2, 4, 0)


@dataclass(frozen=True)
class IsrEvidence:
    """Facts of the leading broker's log, in addition to the partition's own events."""

    fetches_logged: tuple[Span, ...] = _ALWAYS  #: spans over which the broker's request log shows followers' fetches
    silences: tuple[Span, ...] = ()  #: spans over which the broker wrote no line at all, in time order, without overlap
    #: by connection of a follower: gaps between its fetches longer than `FETCH_GAP_US`, in time order, the last
    #: one without an end
    gaps: Mapping[str, tuple[Gap, ...]] = field(default_factory=dict)
    #: by replica: (from when, `FENCED`, `SHUTTING_DOWN` or `UNFENCED`), in time order, as the controller within or
    #: on the host of the leading broker logged it; empty without such a log
    standing: Mapping[int, tuple[tuple[int, str], ...]] = field(default_factory=dict)
    kraft: bool = True  #: fenced and shutting-down replicas exist: the controller is a KRaft quorum
    #: when the last fetch of a chain arrived, by chain (`schemas.events.Event.chain`)
    chain_ends: Mapping[str, int] = field(default_factory=dict)
    last_line_us: int = 0  #: the broker's last line before the seal of the replay that collected this; 0: none

    def freeze(self) -> bytes:
        """Serialize this evidence. `thawed` restores it in a later run."""
        return FREEZER.freeze(self, ())

    @classmethod
    def thawed(cls, frozen: bytes) -> IsrEvidence:
        """Restore the evidence from `freeze`."""
        evidence = FREEZER.thaw(frozen, ())
        assert isinstance(evidence, cls)
        return evidence

    def logged(self, from_us: int, until_us: int) -> bool:
        """Return True if followers' fetches are logged during the whole time from `from_us` to `until_us`."""
        return any(since <= from_us and until_us <= until for since, until in self.fetches_logged)

    def silent_us(self, from_us: int, until_us: int) -> int:
        """Return how many microseconds between two times the broker logged nothing."""
        first = bisect_right(self.silences, from_us, key=_get_end)
        last = bisect_left(self.silences, until_us, lo=first, key=_get_begin)
        return sum(min(until_us, until) - max(from_us, since) for since, until in self.silences[first:last])

    def last_fetch(self, connection: str, before_us: int, chain_end_us: int) -> Span:
        """Return (earliest, latest) time of the last fetch on a connection before `before_us`.

        Args:
            chain_end_us: arrival of the last known fetch of the connection.
        """
        gap = self._find_gap(connection, before_us - FETCH_GAP_US, before_us)
        if gap is not None:
            # The fetch that ends a gap arrived then, or waited in the socket of a paused leader.
            certain = gap.complete and before_us < gap.until_us
            return gap.since_us, max(gap.since_us, min(before_us, gap.handled_us)) if certain else before_us
        if connection not in self.gaps and before_us >= chain_end_us:
            return chain_end_us, chain_end_us
        return before_us - FETCH_GAP_US, before_us

    def next_fetch(self, connection: str, after_us: int, chain_end_us: int) -> int | None:
        """Return the latest time of the first fetch on a connection after `after_us`. None if it fetches no more.

        Args:
            chain_end_us: arrival of the last known fetch of the connection.
        """
        gap = self._find_gap(connection, after_us, after_us)
        if gap is not None:
            return gap.until_us if gap.until_us < NEVER_US else None
        if connection not in self.gaps and after_us >= chain_end_us:
            return None
        return after_us + FETCH_GAP_US

    def _find_gap(self, connection: str, until_after_us: int, since_us: int) -> Gap | None:
        """Return the last pause that begins by `since_us`, if it ends after `until_after_us`. None otherwise."""
        gaps = self.gaps.get(connection)
        if not gaps:
            return None
        at = bisect_right(gaps, since_us, key=_get_begin) - 1
        return gaps[at] if at >= 0 and gaps[at].until_us > until_after_us else None

    def standing_at(self, replica_id: int, time_us: int) -> str | None:
        """Return the replica's state (for example fenced) in the controller's last line up to `time_us`."""
        fencings = self.standing.get(replica_id, ())
        at = bisect_right(fencings, (time_us + _STANDING_EARLY_US, "~")) - 1
        return fencings[at][1] if at >= 0 else None

    def may_join(self, replica_id: int, time_us: int) -> bool | None:
        """Return True if the leader may propose the replica at that time. None if the log does not decide it."""
        fencings = self.standing.get(replica_id, ())
        at = bisect_right(fencings, (time_us - _STANDING_LATE_US, "~"))
        states = {state == UNFENCED for _, state in fencings[max(at - 1, 0) : self._find_end(replica_id, time_us)]}
        if at == 0:
            return None
        return states.pop() if len(states) == 1 else None

    def barred_between(self, replica_id: int, from_us: int, until_us: int) -> bool:
        """Return True if the replica was certainly fenced or shutting down at some time between the two times."""
        fencings = self.standing.get(replica_id, ())
        for at, (since_us, state) in enumerate(fencings):
            ends_us = fencings[at + 1][0] if at + 1 < len(fencings) else until_us
            if state != UNFENCED and max(since_us, from_us) + _STANDING_LATE_US < min(ends_us, until_us):
                return True
        return False

    def joins_from(self, replica_id: int, time_us: int) -> Span | None:
        """Return (possibly, certainly) when a replica that cannot join at `time_us` can join again. None if never."""
        fencings = self.standing.get(replica_id, ())
        for since_us, state in fencings[bisect_left(fencings, (time_us - _STANDING_LATE_US, "")) :]:
            if state == UNFENCED:
                return max(time_us, since_us - _STANDING_EARLY_US), max(time_us, since_us + _STANDING_LATE_US)
        return None

    def _find_end(self, replica_id: int, time_us: int) -> int:
        return bisect_right(self.standing.get(replica_id, ()), (time_us + _STANDING_EARLY_US, "~"))


FREEZER: Final = Freezer(IsrEvidence, Gap)


def _get_begin(span: Gap | Span) -> int:
    return span[0]


def _get_end(span: Span) -> int:
    return span[1]


def continued(before: IsrEvidence, now: IsrEvidence, sealed_us: int, resumed_us: Mapping[str, int]) -> IsrEvidence:
    """Merge the evidence of an earlier run with the evidence of the log since the checkpoint.

    Args:
        before: evidence of the earlier run, which read beyond the checkpoint.
        now: evidence of the log since the checkpoint, with the last line and each connection's last fetch before it.
        sealed_us: time of the checkpoint.
        resumed_us: by connection, when the last fetch before the checkpoint was dequeued.
    """
    forgotten_us = sealed_us - _REMEMBERED_US
    gaps = dict(now.gaps)
    for connection, earlier in before.gaps.items():
        # `now` has fetches handled from the seal on, or the whole connection without a fetch before the seal.
        since_us = resumed_us.get(connection, NEVER_US)
        folded = (gap for gap in earlier if gap.handled_us < sealed_us and gap.since_us < since_us)
        remembered = tuple(gap for gap in folded if gap.until_us > forgotten_us)
        # A connection without a later fetch is not in `now`: its last gap has no end still.
        if remembered and (remembered[-1].until_us < NEVER_US or remembered[-1].since_us > forgotten_us):
            gaps[connection] = remembered + gaps.get(connection, ())
    spans = [*before.fetches_logged, *now.fetches_logged]
    logged = ((min(since for since, _ in spans), max(until for _, until in spans)),) if spans else ()
    silences = tuple(span for span in before.silences if forgotten_us < span[1] < sealed_us)
    return replace(now, gaps=gaps, fetches_logged=logged, silences=silences + now.silences)
