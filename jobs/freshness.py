"""The newest line of each broker, and brokers without new logs, so that a schedule does not pass without data.

Kafka writes lines as long as it runs. With KRaft, a metadata snapshot is logged every hour. A running broker without a
line for longer than a limit therefore means that its logs no longer arrive.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.values import iso_utc
from highwater.pipelines.cluster.premises import OTHER_FILE, SHUT_DOWN
from highwater.pipelines.lake.lake import Lake
from highwater.schemas.bronze import LOG_FILES
from highwater.schemas.silver import BROKER_LIFECYCLE

HOUR_US: Final = 3_600_000_000
#: A broker that has been silent for longer, while others of its cluster are not, is taken for gone.
GONE_US: Final = 7 * 24 * HOUR_US
#: A broker that has stopped writes some lines after it says so.
_AFTER_STOP_US: Final = 60_000_000
#: Brokers that a line names.
_NAMED_MAX: Final = 12


class Newest(NamedTuple):
    """The newest line of a broker."""

    cluster_id: str
    broker_id: int
    last_us: int
    has_stopped: bool = False  #: its last lines say that it was shut down


def find_newest_lines(lake: Lake, cluster_id: str | None) -> list[Newest]:
    """Return the newest line of each broker of the lake, or only of one cluster.

    Args:
        cluster_id: the only cluster to read. None for all clusters.
    """
    of_cluster = pc.scalar(True) if cluster_id is None else pc.field("cluster_id") == cluster_id
    keys = ["cluster_id", "broker_id"]
    files = lake.rows(LOG_FILES, *keys, "last_time", where=of_cluster & (pc.field("kind") != OTHER_FILE))
    stops = lake.rows(BROKER_LIFECYCLE, *keys, "time", where=of_cluster & (pc.field("event") == SHUT_DOWN))
    stopped_us = {
        (row["cluster_id"], row["broker_id"]): row["time_max"]
        for row in _micros(stops, "time").group_by(keys).aggregate([("time", "max")]).to_pylist()
    }
    newest = _micros(files, "last_time").group_by(keys).aggregate([("last_time", "max")])
    return sorted(
        Newest(*broker, last_us, has_stopped=stopped_us.get(broker, -HOUR_US) >= last_us - _AFTER_STOP_US)
        for row in newest.to_pylist()
        if (last_us := row["last_time_max"]) is not None
        for broker in [(row["cluster_id"], row["broker_id"])]
        if broker[1] is not None
    )


def _micros(rows: pa.Table, name: str) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index(name), name, rows[name].cast(pa.int64()))


def describe_freshness(newest: Sequence[Newest]) -> str:
    """Return the times of the last line of each broker. With many brokers, return only the oldest times."""
    if not newest:
        return "newest line: none of a known broker"
    oldest = sorted(newest, key=lambda line: (line.last_us, line))[:_NAMED_MAX]
    clusters = {line.cluster_id for line in newest}
    texts = [
        f"{f'cluster {line.cluster_id} ' if len(clusters) > 1 else ''}broker {line.broker_id} {iso_utc(line.last_us)}"
        for line in (sorted(oldest) if len(oldest) == len(newest) else oldest)
    ]
    more = f", and {len(newest) - len(oldest)} brokers with newer ones" if len(newest) > len(oldest) else ""
    return f"newest line: {', '.join(texts)}{more}"


def describe_stale(newest: Iterable[Newest], until_us: int, limit_us: int) -> list[str]:
    """Return why logs are not fresh, one sentence per cluster or broker.

    Args:
        until_us: end of the judged window, us since the epoch.
        limit_us: maximum age of a broker's newest line at `until_us`, us.
    """
    by_cluster: dict[str, list[Newest]] = {}
    for line in newest:
        by_cluster.setdefault(line.cluster_id, []).append(line)
    sentences = []
    for cluster_id, lines in sorted(by_cluster.items()):
        last_us = max(line.last_us for line in lines)
        if until_us - last_us > limit_us:
            sentences.append(
                f"no line of cluster {cluster_id} is newer than {iso_utc(last_us)}, {_hours(until_us - last_us)} "
                f"before {iso_utc(until_us)} (limit {_hours(limit_us)}): see whether its logs still arrive"
            )
            continue
        sentences += [
            f"no line of broker {line.broker_id} of cluster {cluster_id} is newer than {iso_utc(line.last_us)}, "
            f"{_hours(until_us - line.last_us)} before {iso_utc(until_us)} (limit {_hours(limit_us)}): see whether it "
            f"runs, and whether its logs still arrive"
            for line in lines
            if limit_us < until_us - line.last_us <= GONE_US and not line.has_stopped
        ]
    return sentences


def _hours(span_us: int) -> str:
    return f"{span_us / HOUR_US:.1f} h"
