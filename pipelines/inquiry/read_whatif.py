"""Reads the durations of acks=all produces as they were, and as they would have been."""

from __future__ import annotations

from datetime import datetime

from pipelines.base.values import iso_utc
from pipelines.inquiry.quantiles import rounded
from pipelines.inquiry.read_clusters import require_one_between
from pipelines.inquiry.read_lines import ARRIVED, FAR_US, instant
from pipelines.inquiry.whatif import Counts, Variants
from pipelines.lake.reader import LakeReader
from pipelines.report import queries
from pipelines.report.figures import PRODUCE

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
