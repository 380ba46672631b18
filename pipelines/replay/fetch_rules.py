"""Prediction of when the rules let a fetch be answered, given what can have completed it. Pure.

Source: ``ReplicaManager.fetchMessages``, ``DelayedFetch.tryComplete`` (kafka-rules section 1.4). The request and the
events since are gathered in `pipelines.replay.fetch_sessions`.

Case letters are from ``DelayedFetch.tryComplete`` since 2.4:

* A, B, C, D: a partition is not led, not hosted, unknown, or in an offline directory;
* E: its leader epoch is fenced (KIP-320, case F in 2.1 to 2.3);
* F: the offset is not on the last segment (case C up to 2.3);
* G: min.bytes are readable (case D up to 2.3);
* H: the high watermark moved (2.4 and 2.5, KIP-392), or the epochs diverge (since 2.7, KIP-595).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from highwater.pipelines.kafka.errors import FENCED_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER
from highwater.pipelines.kafka.versions import Rules
from highwater.pipelines.replay import outcome as o
from highwater.pipelines.replay.timer import expiry_interval_us
from highwater.schemas.session_events import SessionEvent

#: A remote time below this is the handler's own: the fetch was not parked.
AT_ONCE_US: Final = 1_000
UNBOUNDED: Final = 1 << 62
#: Computed instants are upper bounds, some later than others: two of one broker can be out of order by as much.
SLACK_US: Final = 2_000

#: Partitions that are turned down before the log is read do not keep the others from waiting (``handleFetchRequest``):
#: UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_ID.
TURNED_DOWN: Final = frozenset({3, 29, 100})
#: Error codes of partitions whose leadership ended or whose epoch changed during the wait (cases A and E).
_OUTDATED: Final = frozenset({NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH})
_ENDS: Final = (o.LEADERSHIP_LOST, o.FENCED_EPOCH)
#: Of a read from the tier: OFFSET_OUT_OF_RANGE, where retention was there first.
_OUT_OF_RANGE: Final = frozenset({1})
#: Reasons for which a fetch that reads from the tier can be answered at once.
_TIER_READS: Final = (None, o.AT_ONCE, o.ERROR)

Key = tuple[str, int]


@dataclass(slots=True, eq=False)
class Entry:
    """Bytes that became readable at some time between `lowest_us` and `latest_us`."""

    base_offset: int
    lowest_us: int
    latest_us: int | None
    bytes_min: int
    bytes_max: int
    estimated: bool = False


@dataclass(slots=True)
class FetchOutcome:
    """The predicted and observed result of one fetch."""

    event: SessionEvent
    #: lowest_us, highest_us: predicted completion; None where nothing could be predicted
    lowest_us: int | None
    highest_us: int | None
    cause: str  #: see `pipelines.replay.outcome`
    closing: Key | None = None  #: (topic, partition) that completed it, None if none did
    parked: bool = False  #: it waited
    bytes_known: bool = True  #: the sizes that decided it are known, not bounded
    missing: str | None = None  #: what evidence lacks, if any does
    #: error codes with which its partitions can be answered, whatever completes it
    errors: frozenset[int] = TURNED_DOWN
    followed: bool = False  #: the broker follows a partition that it asks for


@dataclass(slots=True)
class Asked:
    """A current or recent fetch, with all events that can have completed it."""

    fetch: SessionEvent
    active: set[Key]  #: partitions that the session asks for
    partial: bool
    #: why the response itself shows that it could not wait; None if it may have waited
    answered_at_once: str | None = None
    #: bytes beyond its offsets: (entry, partition, the partition's limit)
    entries: list[tuple[Entry, Key, int]] = field(default_factory=list)
    #: offsets that it asked from, of partitions that a later fetch has moved on
    moved: dict[Key, int] = field(default_factory=dict)
    #: triggers that answer it with any bytes: (earliest, latest, partition, cause)
    ends: list[tuple[int, int, Key, str]] = field(default_factory=list)
    #: a partition with a newer epoch than the fetch names, and since when
    fenced: tuple[Key, int] | None = None
    followed: bool = False  #: the broker follows a partition of it
    remote: Key | None = None  #: a partition that it reads from the remote tier; None without one
    remote_wait_ms: int = 0  #: how long it waits for the tier at most
    failed_us: list[int] = field(default_factory=list)  #: when reads of its partitions from the tier failed
    until_us: int = UNBOUNDED  #: when the next one came


def reason_told(fetch: SessionEvent, rules: Rules) -> str | None:
    """Return why a fetch answered immediately could not wait, from its request and response. None if it waited."""
    handled_us = fetch.latest_us or fetch.time_us
    reason = fetch.at_once_reason
    if (fetch.completed_us or handled_us) - handled_us > AT_ONCE_US:
        return None
    return reason if reason != o.BEYOND_END or rules.fetches_beyond_the_end_complete else None


def judged(asked: Asked, rules: Rules) -> FetchOutcome:
    """Predict when and why a fetch is answered, from the collected events."""
    outcome = _predict(asked, rules)
    outcome.followed = asked.followed
    return outcome


def _predict(asked: Asked, rules: Rules) -> FetchOutcome:
    fetch = asked.fetch
    dequeued_us, handled_us = fetch.time_us, fetch.latest_us or fetch.time_us
    completed_us = fetch.completed_us or handled_us
    parked = completed_us - handled_us > AT_ONCE_US
    if asked.remote is not None and asked.answered_at_once in _TIER_READS:
        return _predict_tier_read(asked, asked.remote, parked)
    if asked.answered_at_once is not None:
        return FetchOutcome(fetch, dequeued_us, handled_us, asked.answered_at_once, _get_first_filled(fetch))
    expires_us = expiry_interval_us(dequeued_us, handled_us, fetch.max_wait_ms or 0)
    best = FetchOutcome(fetch, *expires_us, o.TIMER, parked=parked)
    for lowest_us, latest_us, key, cause in asked.ends:  # cases A, E, F and H
        if latest_us >= dequeued_us and latest_us < (best.highest_us or 0):
            best = FetchOutcome(fetch, max(lowest_us, dequeued_us), max(latest_us, handled_us), cause, key, parked)
    need = max(fetch.min_bytes or 0, 1)
    earliest = _find_step(sorted((e.lowest_us, e.bytes_max, key, limit) for e, key, limit in asked.entries), need)
    proven = [(e.latest_us, e.bytes_min, key, limit) for e, key, limit in asked.entries if e.latest_us is not None]
    latest = _find_step(sorted(proven), need)
    # Bytes that came as the timer fired raced with it: the response bytes show the winner.
    races = latest is not None and best.cause == o.TIMER and latest[0] >= (best.lowest_us or 0)
    # An expired fetch reads the log again: a response without bytes disproves earlier readable bytes.
    told_none = rules.logs_responses and fetch.response_bytes == 0 and not fetch.error_codes
    disproved = told_none and best.cause == o.TIMER and completed_us >= (best.lowest_us or 0)
    if (
        latest is not None
        and latest[0] <= (best.highest_us or 0)
        and not disproved
        and not (races and (fetch.response_bytes or 0) < need)
    ):
        cause = o.AT_ONCE if latest[0] <= handled_us else o.BYTES  # case G
        lowest_us = max(earliest[0] if earliest is not None else 0, dequeued_us)
        best = FetchOutcome(fetch, lowest_us, max(latest[0], handled_us), cause, latest[1], parked)
        best.bytes_known = need == 1 or all(entry.bytes_max < UNBOUNDED for entry, _, _ in asked.entries)
    elif earliest is not None and not disproved and earliest[0] < (best.lowest_us or 0):
        # Enough bytes may have been there at that time: their number is only bounded.
        best.lowest_us, best.bytes_known = max(earliest[0], dequeued_us), False
    if best.cause == o.TIMER and fetch.response_bytes and completed_us < (best.highest_us or 0) - AT_ONCE_US:
        unproven = min(((e.lowest_us, key) for e, key, _ in asked.entries if e.latest_us is None), default=None)
        best.missing = o.APPEND_NOT_LOGGED
        best.closing = unproven[1] if unproven is not None else _get_first_filled(fetch)
        if unproven is not None:
            best.lowest_us, best.highest_us, best.cause = None, None, o.BYTES
    if asked.partial:
        best.missing = o.SESSION_NOT_LOGGED
    if asked.fenced is not None or any(cause in _ENDS for *_, cause in asked.ends):
        best.errors |= _OUTDATED
    return best


def _predict_tier_read(asked: Asked, remote: Key, parked: bool) -> FetchOutcome:
    """Predict a fetch that reads from remote storage: it ends when the store answers, or by its timer.

    The store decides even if another event could complete the fetch (``ReplicaManager.processRemoteFetch``,
    ``DelayedRemoteFetch``; KIP-405, 3.6). Only failed reads of the store are logged (``RemoteLogReader``).

    Args:
        remote: (topic, partition) read from remote storage.
        parked: the fetch waited.
    """
    fetch = asked.fetch
    dequeued_us, handled_us = fetch.time_us, fetch.latest_us or fetch.time_us
    completed_us = fetch.completed_us or handled_us
    expires_us = expiry_interval_us(dequeued_us, handled_us, asked.remote_wait_ms)
    errors = TURNED_DOWN | _OUTDATED | _OUT_OF_RANGE
    failed_us = [at_us for at_us in asked.failed_us if dequeued_us - SLACK_US <= at_us <= completed_us + SLACK_US]
    if fetch.error_codes and failed_us:
        # The line comes before the answer, and a stack trace takes its time.
        lowest_us = max(min(failed_us) - SLACK_US, dequeued_us)
        return FetchOutcome(fetch, lowest_us, expires_us[1], o.REMOTE_ERROR, remote, parked, errors=errors)
    if asked.answered_at_once == o.ERROR:
        return FetchOutcome(fetch, dequeued_us, handled_us, o.ERROR)
    if not fetch.response_bytes and not fetch.error_codes and completed_us >= expires_us[0]:
        outcome = FetchOutcome(fetch, *expires_us, o.REMOTE_TIMER, remote, parked, errors=errors)
    else:
        outcome = FetchOutcome(fetch, dequeued_us, expires_us[1], o.REMOTE_READ, remote, parked, errors=errors)
    outcome.missing = o.SESSION_NOT_LOGGED if asked.partial else None
    return outcome


def _find_step(steps: list[tuple[int, int, Key, int]], need: int) -> tuple[int, Key] | None:
    """Return (time, partition) of the first step at which the readable bytes reach `need`. None if they never do.

    Source: ``DelayedFetch.tryComplete`` case G.

    Args:
        steps: (time, bytes, partition, limit of the partition), in time order.
        need: bytes required.
    """
    of_partition: dict[Key, int] = {}
    total = 0
    for instant_us, size, key, limit in steps:
        before = of_partition.get(key, 0)
        after = min(before + size, limit)
        of_partition[key] = after
        total += after - before
        if total >= need:
            return instant_us, key
    return None


def _get_first_filled(fetch: SessionEvent) -> Key | None:
    if not fetch.filled_topics:
        return None
    return fetch.filled_topics[0], fetch.filled_partitions[0]
