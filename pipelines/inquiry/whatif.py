"""What acks=all would have cost otherwise: without a replica, with another min.insync.replicas, with one leader. Pure.

Each variant is a choice of the operations that were answered without error, and of how long each took. They are what
the same requests would have had, each for itself: clients that wait less send more, which no log shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.base.plain import ms
from pipelines.inquiry.answer import Answer, Row, Table, plural
from pipelines.inquiry.quantiles import quantiles

Counts = Sequence[tuple[float, int]]


@dataclass(frozen=True)
class Variants:
    """Durations of operations, milliseconds, each with how often it occurs.

    Attributes:
        asked: of which time, in words.
        actual: as it was.
        without: by broker, if acks=all had not needed it as a follower.
        away: by broker, those that others led, if acks=all had not needed it: as if the broker were away.
        led_by: by broker, those that it led.
        accepted: by min.insync.replicas, those whose ISRs were large enough.
        refused: by min.insync.replicas, how many answered operations it would have refused.
        spared: by min.insync.replicas, how many refused ones it would have accepted.
    """

    asked: str
    actual: Counts
    without: Mapping[int, Counts]
    away: Mapping[int, Counts]
    led_by: Mapping[int, Counts]
    accepted: Mapping[int, Counts]
    refused: Mapping[int, int]
    spared: Mapping[int, int]


def answer(variants: Variants) -> Answer:
    """The variants as a table, with what they say."""
    rows = tuple(_rows(variants))
    if not variants.actual:
        say = "No acks=all produce was answered without error then: there is nothing to work it out from."
        return Answer(title=variants.asked, is_shown=False, sentences=(say,))
    return Answer(
        title=variants.asked,
        sentences=tuple(_sentences(rows, variants)),
        tables=(Table(title="acks=all produces answered without error, ms from arrival to response sent", rows=rows),),
    )


def _rows(variants: Variants) -> Iterator[dict[str, Any]]:
    yield _row("as it was", variants.actual)
    for broker, counts in sorted(variants.without.items()):
        yield _row(f"if broker {broker} is skipped", counts)
    for broker, counts in sorted(variants.away.items()):
        yield _row(f"if broker {broker} is away: led by others", counts)
    for broker, counts in sorted(variants.led_by.items()):
        yield _row(f"led by broker {broker}", counts)
    for number, counts in sorted(variants.accepted.items()):
        refused, spared = variants.refused.get(number, 0), variants.spared.get(number, 0)
        yield _row(f"min.insync.replicas {number}", counts, refused, spared)


def _row(variant: str, counts: Counts, refused: int = 0, spared: int = 0) -> dict[str, Any]:
    return {
        "variant": variant,
        "operations": sum(count for _, count in counts),
        **quantiles(counts),
        "refused": refused,
        "spared": spared,
    }


def _sentences(rows: Sequence[Row], variants: Variants) -> Iterable[str]:
    actual = rows[0]
    better = [row for row in rows[1 : 1 + len(variants.without)] if row["p99"] is not None]
    best = min(better, key=lambda row: float(row["p99"]), default=None)
    if best is not None and actual["p99"] is not None:
        skipped = best["variant"].removeprefix("if ").removesuffix(" is skipped")
        yield (
            f"p99 was {ms(actual['p99'])} ms; if acks=all had not needed {skipped}, it would have been "
            f"{ms(best['p99'])} ms."
        )
    yield (
        "min.insync.replicas changes which produces are refused, not how long they wait: acks=all waits for the whole "
        "ISR (from 4.0 with eligible leader replicas, for an ISR that is large enough, too)."
    )
    spared = max(variants.spared.values(), default=0)
    if spared:
        yield (
            f"A lower min.insync.replicas would have accepted {plural(spared, 'produce')} that were refused; how long "
            "they would have waited cannot be shown."
        )
