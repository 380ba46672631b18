"""acks=all latency with and without each broker: without a replica, with another min.insync.replicas, with one leader.

Each variant selects operations that were answered without error, and a duration for each. It estimates each request
separately: clients that wait less would send more, which no log shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from highwater.pipelines.base.plain import ms, number
from highwater.pipelines.base.values import instant
from highwater.pipelines.inquiry.answer import Answer, Row, Table, format_window
from highwater.pipelines.inquiry.quantiles import build_quantile_sql, name_quantiles
from highwater.pipelines.inquiry.read_lines import ARRIVED, FAR_US, require_one_between
from highwater.pipelines.lake.reader import LakeReader
from highwater.pipelines.report import queries
from highwater.pipelines.report.figures import PRODUCE


@dataclass(frozen=True)
class Variants:
    """Latency of produces under other conditions: ``operations`` is their number, quantiles are in ms."""

    asked: str  #: title, with the time in words
    actual: Row  #: as it was
    without: Mapping[int, Row]  #: by broker, if acks=all had not needed it as a follower
    #: by broker, those that others led, if acks=all had not needed it: as if the broker were away
    away: Mapping[int, Row]
    led_by: Mapping[int, Row]  #: by broker, those that it led
    accepted: Mapping[int, Row]  #: by min.insync.replicas, those whose ISRs were large enough
    refused: Mapping[int, int]  #: by min.insync.replicas, how many answered operations it would have refused
    spared: Mapping[int, int]  #: by min.insync.replicas, how many refused ones it would have accepted


def answer(variants: Variants) -> Answer:
    """Return the variants as a table, with sentences."""
    if not variants.actual["operations"]:
        say = "No acks=all produce was answered without error then: there is nothing to work it out from."
        return Answer(title=variants.asked, is_shown=False, sentences=(say,))
    rows = tuple(
        {"variant": variant, **figures, "refused": refused, "spared": spared}
        for variant, figures, refused, spared in _list_rows(variants)
    )
    return Answer(
        title=variants.asked,
        sentences=tuple(_write_sentences(rows, variants)),
        tables=(Table(title="acks=all produces answered without error, ms from arrival to response sent", rows=rows),),
    )


def _list_rows(variants: Variants) -> Iterable[tuple[str, Row, int, int]]:
    """Yield (description, figures, number of produces refused, number no longer refused) of each variant."""
    yield "as it was", variants.actual, 0, 0
    for words, by_broker in (
        ("if broker {} is skipped", variants.without),
        ("if broker {} is away: led by others", variants.away),
        ("led by broker {}", variants.led_by),
    ):
        yield from ((words.format(broker), figures, 0, 0) for broker, figures in sorted(by_broker.items()))
    for isr_min, figures in sorted(variants.accepted.items()):
        refused, spared = variants.refused.get(isr_min, 0), variants.spared.get(isr_min, 0)
        yield f"min.insync.replicas {isr_min}", figures, refused, spared


def _write_sentences(rows: Sequence[Row], variants: Variants) -> Iterable[str]:
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
            f"A lower min.insync.replicas would have accepted {number(spared, 'produce')} that were refused; how long "
            "they would have waited cannot be shown."
        )


#: Errors of a produce that too small an ISR gets (`Partition.appendRecordsToLeader`, before and after the append).
_TOO_FEW = (19, 20)

_OPERATIONS = f"(SELECT * FROM ({queries.select_operations(ARRIVED, slow_ms=0)}) WHERE kind = '{PRODUCE}')"
_WITHOUT = "CASE WHEN closing_replica = {broker} THEN coalesce(total_without_ms, total_ms) ELSE total_ms END"


def variants(reader: LakeReader, cluster_id: str | None, since_us: int | None, until_us: int | None) -> Variants:
    """Compute all variants for the produces that arrived between two times.

    Raises:
        InputError: the produces are of several clusters.
    """
    since, until = instant(since_us or 0), instant(FAR_US if until_us is None else until_us)
    require_one_between(reader, cluster_id, since, until)
    parameters: dict[str, str | datetime | None] = {"since": since, "until": until, "cluster": cluster_id}

    def figures(where: str = "true", duration: str = "total_ms") -> Row:
        (row,) = reader.rows(
            f"""SELECT count(*) AS operations, {build_quantile_sql(duration)} AS ticks
                FROM {_OPERATIONS} WHERE succeeded AND {where}""",
            **parameters,
        )
        return {"operations": row["operations"], **name_quantiles(row["ticks"])}

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
    return Variants(
        asked=f"acks=all latency with and without each broker{format_window(since_us, until_us)}",
        actual=figures(),
        without={broker: figures(duration=_WITHOUT.format(broker=broker)) for broker in brokers},
        away={broker: figures(f"broker_id <> {broker}", _WITHOUT.format(broker=broker)) for broker in brokers},
        led_by={row["broker"]: figures(f"broker_id = {row['broker']}") for row in led},
        accepted={size: figures(f"isr_size >= {size}") for size in range(1, largest + 1)},
        refused={
            size: sum(row["answered"] for row in sizes if row["isr_size"] < size) for size in range(1, largest + 1)
        },
        spared={
            size: sum(row["refused"] for row in sizes if row["isr_size"] >= size) for size in range(1, largest + 1)
        },
    )
