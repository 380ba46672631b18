"""Order of several brokers' lines by their clocks; raw times are not changed. Pure.

Each broker stamps lines by its own clock. If bounds (``gold.clock_bounds``) prove that two clocks differed, the lines
of one are shifted by the proven difference; otherwise raw times are compared. A note describes this: lines that are
closer than the bounds have no proven order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

Row = Mapping[str, Any]
#: Broker that wrote a line, and when by its clock, microseconds.
_Written = tuple[int | None, int | None]

#: Clocks that something keeps in step are nearer to each other.
FAR_APART_MS: Final = 60_000.0
_FAR_MAX = 5


class _Apart(NamedTuple):
    """Offset of a broker's clock from the reference's, milliseconds; None: no bound."""

    lowest_ms: float | None
    highest_ms: float | None

    @property
    def proven_ms(self) -> float:
        """Return the proven clock offset, ms: the bound nearer to zero, or zero if zero is possible."""
        if self.lowest_ms is not None and self.lowest_ms > 0:
            return self.lowest_ms
        return self.highest_ms if self.highest_ms is not None and self.highest_ms < 0 else 0.0


def sort_lines(lines: Iterable[Row], windows: Sequence[Row]) -> tuple[list[Row], str | None]:
    """Return (lines in time order, a sentence about how they were ordered).

    The clocks are aligned if bounds allow. A line without a time follows its predecessor. The sentence is None if one
    broker wrote all lines.

    Args:
        lines: rows of ``gold.evidence`` of one finding, times in us.
        windows: rows of ``gold.clock_bounds`` of its cluster, times in us.
    """
    stored = sorted(lines, key=lambda line: int(line["position"]))
    places = [(line["broker_id"], line["time"]) for line in stored]
    ahead = {broker: apart.proven_ms if apart else 0.0 for broker, apart in _compare_clocks(places, windows)}

    keyed: list[tuple[float, int]] = []
    for number, (broker, at_us) in enumerate(places):
        if at_us is None:
            keyed.append((keyed[-1][0] if keyed else -1.0, number))
        else:
            keyed.append((at_us if broker is None else at_us - 1000 * ahead.get(broker, 0.0), number))
    return [stored[number] for _, number in sorted(keyed)], _note(places, windows)


def _note(places: Sequence[_Written], windows: Sequence[Row]) -> str | None:
    reference = _choose_reference(places)
    clocks = dict(_compare_clocks(places, windows))
    sentences = [_format_sentence(broker, reference, apart) for broker, apart in clocks.items() if apart is not None]
    untold = [str(broker) for broker, apart in clocks.items() if apart is None]
    if untold:
        others = f"broker{'s' if len(untold) > 1 else ''} {' and '.join(untold)}"
        sentences.append(f"the clock offset between {others} and broker {reference} is unknown")
    return f"Sorted by each broker's own clock: {'; '.join(sentences)}." if sentences else None


def _format_sentence(broker: int, reference: int | None, apart: _Apart) -> str:
    is_behind = apart.proven_ms < 0
    lowest_ms, highest_ms = (_invert(apart.highest_ms), _invert(apart.lowest_ms)) if is_behind else apart
    if lowest_ms is not None and highest_ms is not None:
        by = f"between {lowest_ms:,.1f} and {highest_ms:,.1f} ms"
    else:
        by = f"more than {lowest_ms:,.1f} ms" if lowest_ms is not None else f"less than {highest_ms:,.1f} ms"
    where, moved = ("behind", "later") if is_behind else ("ahead of", "earlier")
    shift = f", so its lines stand {abs(apart.proven_ms):,.1f} ms {moved}" if apart.proven_ms else ""
    return f"broker {broker}'s was {where} broker {reference}'s by {by}{shift}"


def _compare_clocks(places: Sequence[_Written], windows: Sequence[Row]) -> Iterator[tuple[int, _Apart | None]]:
    """Yield (broker id, clock offset from the reference broker or None) at the time of the lines."""
    reference = _choose_reference(places)
    times = [at_us for _, at_us in places if at_us is not None]
    for broker in sorted(
        {broker for broker, at_us in places if broker is not None and at_us is not None} - {reference}
    ):
        assert reference is not None
        pair = (min(broker, reference), max(broker, reference))
        of_pair = [row for row in windows if (row["broker_a"], row["broker_b"]) == pair]
        near = [row for row in of_pair if _is_near(row, min(times), max(times))]
        narrowest = min(near, key=_measure_width, default=None)
        if narrowest is None:
            yield broker, None
        elif broker > reference:
            yield broker, _Apart(narrowest["lowest_ms"], narrowest["highest_ms"])
        else:
            yield broker, _Apart(_invert(narrowest["highest_ms"]), _invert(narrowest["lowest_ms"]))


def _choose_reference(places: Sequence[_Written]) -> int | None:
    """Return the id of the broker that wrote most of the lines. None without one."""
    counts = Counter(broker for broker, at_us in places if broker is not None and at_us is not None)
    return min(counts, key=lambda broker: (-counts[broker], broker), default=None)


def _is_near(row: Row, first_us: int, last_us: int) -> bool:
    """Return True if a window covers the time of lines, or is next to it. Contradicting bounds do not count."""
    length_us = row["window_s"] * 1_000_000
    is_of_then = row["window_start"] - length_us <= last_us and row["window_start"] + 2 * length_us >= first_us
    return is_of_then and _measure_width(row) >= 0


def _measure_width(row: Row) -> float:
    lowest_ms, highest_ms = row["lowest_ms"], row["highest_ms"]
    return float("inf") if lowest_ms is None or highest_ms is None else float(highest_ms - lowest_ms)


def _invert(value: float | None) -> float | None:
    return None if value is None else -value


def describe_far_clocks(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a sentence for each pair of brokers whose clocks are proven to be far apart.

    Args:
        rows: rows of ``gold.clock_bounds``.
    """
    ahead_ms: dict[tuple[str | None, int, int], float] = {}
    for row in rows:
        for late, early, ms in (
            (row["broker_b"], row["broker_a"], row["lowest_ms"]),
            (row["broker_a"], row["broker_b"], None if row["highest_ms"] is None else -row["highest_ms"]),
        ):
            if ms is not None and ms > FAR_APART_MS:
                pair = row["cluster_id"], late, early
                ahead_ms[pair] = max(ms, ahead_ms.get(pair, ms))
    for (_, late, early), ms in sorted(ahead_ms.items(), key=lambda item: item[0][1:])[:_FAR_MAX]:
        yield (
            f"The clock of broker {late} is {ms / 1000:,.0f} s or more ahead of broker {early}'s: one of them is "
            "wrong, or one's log is in another time zone, which ingest.clusters can give its folder."
        )
