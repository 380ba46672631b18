"""Times, durations and lists as a person on call reads them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta

from highwater.pipelines.base.plain import number as number

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Partitions, or brokers, that a sentence names; of more it gives the number.
NAMED_MAX = 3
#: Characters of a text of a log line that a sentence shows.
SHOWN_MAX = 300


def at(time_us: int) -> str:
    """Return a time (us since the epoch) as ``2026-11-20 15:27:39``, UTC."""
    return f"{_EPOCH + timedelta(microseconds=time_us):%Y-%m-%d %H:%M:%S}"


def clock(time_us: int) -> str:
    """Return a time (us) as ``15:27:39``, UTC. The date must be given elsewhere in the text."""
    return f"{_EPOCH + timedelta(microseconds=time_us):%H:%M:%S}"


def span(start_us: int, end_us: int | None) -> str:
    """Return ``from 15:27:39 to 15:27:53 (14.0 s)``, or ``from 15:27:39 to the end of the logs`` if the end is None.

    A span within one second is ``at 15:27:39 (340 ms)``. A span over several days has dates.
    """
    if end_us is None:
        return f"from {clock(start_us)} to the end of the logs"
    shown = clock if at(start_us)[:10] == at(end_us)[:10] else at
    if shown(start_us) == shown(end_us):
        return f"at {clock(start_us)} ({lasting(end_us - start_us)})"
    return f"from {shown(start_us)} to {shown(end_us)} ({lasting(end_us - start_us)})"


def when(start_us: int, end_us: int | None) -> str:
    """Return ``at 15:27:39`` for a span within one second, else the text of `span`."""
    if end_us is not None and end_us - start_us < 1_000_000:
        return f"at {clock(start_us)}"
    return span(start_us, end_us)


def within(first_us: int, last_us: int) -> str:
    """Return ``at 15:27:39`` or ``between 15:27:39 and 15:27:43``, for several events."""
    first, last = clock(first_us), clock(last_us)
    return f"at {first}" if first == last else f"between {first} and {last}"


def lasting(duration_us: float) -> str:
    """Return a duration: ``340 ms``, ``14.0 s``, ``3 min 20 s``, ``2 h 5 min``, ``3 days 4 h``."""
    seconds = duration_us / 1_000_000
    if seconds < 1:
        return f"{round(seconds * 1000)} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 120:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} days {hours} h" if hours else f"{days} days"


def times(value: int) -> str:
    """Return ``once``, ``twice``, ``12 times``."""
    return {1: "once", 2: "twice"}.get(value, f"{value:,} times")


def listed(names: Sequence[str]) -> str:
    """Return ``a``, ``a and b``, ``a, b and c``."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def listed_some(names: Sequence[str], noun: str) -> str:
    """Return ``a, b and c``, or ``a, b, c and 4 more topics``."""
    more = len(names) - NAMED_MAX
    return listed([*names[:NAMED_MAX], f"{more} more {noun}"] if more > 1 else list(names))


def brokers(broker_ids: Collection[int]) -> str:
    """Return ``broker 3``, ``brokers 1 and 2``, or ``8 brokers``."""
    return numbered("broker", broker_ids)


def nodes(broker_ids: Collection[int], controller_ids: Collection[int]) -> str:
    """Return ``brokers 1 and 2``, ``controller 4``, or ``broker 3 and controllers 4 and 5``."""
    parts = [("broker", broker_ids), ("controller", controller_ids)]
    return " and ".join(numbered(role, ids) for role, ids in parts if ids)


def numbered(role: str, node_ids: Collection[int]) -> str:
    """Return a role with ids: ``node 3``, ``nodes 1 and 2``, or ``8 nodes``."""
    ids = sorted(node_id for node_id in node_ids if node_id is not None)
    if not ids:
        return f"a {role} of unknown id"
    if len(ids) == 1:
        return f"{role} {ids[0]}"
    return f"{role}s {listed([*map(str, ids)])}" if len(ids) <= NAMED_MAX * 2 else f"{len(ids)} {role}s"


def partitions(names: Iterable[str]) -> str:
    """Return ``partition orders-4``, ``partitions orders-0 and clicks-2``, ``16 partitions of orders and 3 more
    topics``.
    """
    known = sorted(names, key=_natural)
    if not known:
        return "no partition"
    if len(known) <= NAMED_MAX:
        return f"partition{'s' if len(known) > 1 else ''} {listed(known)}"
    topics = sorted({name.rpartition("-")[0] for name in known})
    return f"{number(len(known), 'partition')} of {listed_some(topics, 'topics')}"


def shortened(text: str, length_max: int = SHOWN_MAX) -> str:
    """Return a text cut to `length_max` characters."""
    return text if len(text) <= length_max else f"{text[: length_max - 1]}…"


def sentence(text: str) -> str:
    """Return the text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def _natural(name: str) -> tuple[str, int]:
    topic, _, partition = name.rpartition("-")
    return topic, int(partition) if partition.isdigit() else -1
