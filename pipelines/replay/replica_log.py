"""A follower's log as its leader's answers show it: what consumers may read from it, and when. Pure.

A consumer can read from a follower (KIP-392, 2.4) up to the follower's own high watermark. The follower takes it from
the answer to its fetch, limited by its own log end (``ReplicaFetcherThread.processPartitionData``). A read_committed
consumer reads up to the last stable offset, which is the leader's at that high watermark.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from highwater.pipelines.replay.wakes import REPLICATED, REPLICATED_STABLE, Wake
from highwater.schemas.events import Event

#: Limit of kept answers with records above the high watermark.
_ANSWERS_MAX = 4_096


class ReplicaLog:
    """The log of a follower, as the answers to its fetches show it.

    Attributes:
        high_watermark: the follower's own. None before the first answer.
        stable_offset: offset below which read_committed consumers may read from it.
    """

    def __init__(self) -> None:
        self.high_watermark: int | None = None
        self.stable_offset: int | None = None
        self._end_offset: int | None = None
        #: Records of answers: (first offset, end offset, bytes).
        self._answers: deque[tuple[int, int, int]] = deque(maxlen=_ANSWERS_MAX)

    def answered(self, event: Event) -> Iterator[Wake]:
        """Apply the answer to a fetch, and yield what becomes readable between the event's times."""
        first = self._end_offset if event.offset is None else event.offset
        end = first if event.end_offset is None else event.end_offset
        if first is None or end is None or event.high_watermark is None:
            return
        if first != self._end_offset:
            self._answers.clear()
        if event.size_bytes:
            self._answers.append((first, end, event.size_bytes))
        self._end_offset = end
        high_watermark = min(event.high_watermark, end)
        stable_offset = high_watermark if event.stable_offset is None else min(event.stable_offset, high_watermark)
        yield from self._yield_passed(REPLICATED, self.high_watermark, high_watermark, event)
        yield from self._yield_passed(REPLICATED_STABLE, self.stable_offset, stable_offset, event)
        self.high_watermark, self.stable_offset = high_watermark, stable_offset
        while self._answers and self._answers[0][1] <= stable_offset:
            self._answers.popleft()

    def _yield_passed(self, kind: str, before: int | None, now: int, event: Event) -> Iterator[Wake]:
        if before is not None and now > before:
            yield Wake(
                kind,
                before,
                self._count_bytes(before, now),
                appended_lowest_us=event.earliest_us,
                appended_highest_us=event.time_us,
                high_watermark=now,
                leader_epoch=event.leader_epoch,
            )

    def _count_bytes(self, first: int, end: int) -> int | None:
        """Return the bytes between two offsets. None if an answer extends beyond them."""
        within = [answer for answer in self._answers if first < answer[1] and answer[0] < end]
        if not within or within[0][0] < first or within[-1][1] > end:
            return None
        return sum(size_bytes for *_, size_bytes in within)
