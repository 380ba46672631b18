"""What acks=all would have cost otherwise: without a replica, with another min.insync.replicas, with one leader.

Each variant is a choice of the operations that were answered without error, and of how long each took. They are what
the same requests would have had, each for itself: clients that wait less send more, which no log shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pipelines.base.plain import ms
from pipelines.base.values import instant, iso_utc
from pipelines.inquiry.answer import Answer, Row, Table, plural
from pipelines.inquiry.quantiles import quantiles, rounded
from pipelines.inquiry.read_lines import ARRIVED, FAR_US, require_one_between
from pipelines.lake.reader import LakeReader
from pipelines.report import queries
from pipelines.report.figures import PRODUCE

Counts = Sequence[tuple[float, int]]


@dataclass(frozen=True)
class Variants:
    """Durations of operations, milliseconds, each with how often it occurs."""

    asked: str  #: of which time, in words
    actual: Counts  #: as it was
    without: Mapping[int, Counts]  #: by broker, if acks=all had not needed it as a follower
    #: by broker, those that others led, if acks=all had not needed it: as if the broker were away
    away: Mapping[int, Counts]
    led_by: Mapping[int, Counts]  #: by broker, those that it led
    accepted: Mapping[int, Counts]  #: by min.insync.replicas, those whose ISRs were large enough
    refused: Mapping[int, int]  #: by min.insync.replicas, how many answered operations it would have refused
    spared: Mapping[int, int]  #: by min.insync.replicas, how many refused ones it would have accepted


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


#: Errors of a produce that too small an ISR gets (`Partition.appendRecordsToLeader`, before and after the append).
_TOO_FEW = (19, 20)

_OPERATIONS = f"(SELECT * FROM ({queries.operations(ARRIVED, slow_ms=0)}) WHERE kind = '{PRODUCE}')"
_WITHOUT = "CASE WHEN closing_replica = {broker} THEN coalesce(total_without_ms, total_ms) ELSE total_ms END"


def variants(reader: LakeReader, cluster_id: str | None, since_us: int | None, until_us: int | None) -> Variants:
    """All variants of the produces that arrived between two times.

    Raises:
        InputError: they are of several clusters.
    """
    since, until = instant(since_us or 0), instant(FAR_US if until_us is None else until_us)
    require_one_between(reader, cluster_id, since, until)
    parameters: dict[str, str | datetime | None] = {"since": since, "until": until, "cluster": cluster_id}

    def counts(where: str = "true", duration: str = "total_ms") -> Counts:
        rows = reader.rows(
            f"""SELECT {rounded(duration)} AS ms, count(*) AS n
                FROM {_OPERATIONS} WHERE succeeded AND {where} GROUP BY 1""",
            **parameters,
        )
        return [(row["ms"], row["n"]) for row in rows]

    waited = reader.rows(
        f"""SELECT DISTINCT closing_replica AS broker FROM {_OPERATIONS}
            WHERE succeeded AND wait_without_closing_ms IS NOT NULL AND closing_replica <> broker_id ORDER BY 1""",
        **parameters,
    )
    led = reader.rows(
        f"SELECT DISTINCT broker_id AS broker FROM {_OPERATIONS} WHERE succeeded ORDER BY 1", **parameters
    )
    sizes = reader.rows(
        f"""SELECT isr_size, count(*) FILTER (succeeded) AS answered,
                   count(*) FILTER (list_has_any(error_codes, {list(_TOO_FEW)})) AS refused
            FROM {_OPERATIONS} WHERE isr_size > 0 GROUP BY 1 ORDER BY 1""",
        **parameters,
    )
    brokers = [row["broker"] for row in waited]
    largest = max((row["isr_size"] for row in sizes), default=0)
    times = ["" if time is None else iso_utc(time) for time in (since_us, until_us)]
    when = f" from {times[0] or 'the first line'} until {times[1] or 'the last line'}" if any(times) else ""
    return Variants(
        asked=f"What acks=all would have cost otherwise{when}",
        actual=counts(),
        without={broker: counts(duration=_WITHOUT.format(broker=broker)) for broker in brokers},
        away={broker: counts(f"broker_id <> {broker}", _WITHOUT.format(broker=broker)) for broker in brokers},
        led_by={row["broker"]: counts(f"broker_id = {row['broker']}") for row in led},
        accepted={size: counts(f"isr_size >= {size}") for size in range(1, largest + 1)},
        refused={
            size: sum(row["answered"] for row in sizes if row["isr_size"] < size) for size in range(1, largest + 1)
        },
        spared={
            size: sum(row["refused"] for row in sizes if row["isr_size"] >= size) for size in range(1, largest + 1)
        },
    )
