"""Grammar of what a follower logs of each fetch (T3): its end offset, what it appended, the high watermark it took."""

from __future__ import annotations

import re

from pipelines.silver.grammar import Context, Template
from pipelines.silver.record import Fact, Record
from pipelines.silver.values import PARTITION, i64, partition_of

_THREAD = ("ReplicaFetcherThread",)


def _received(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """A fetch response before it is appended: the follower's end offset, and the leader's high watermark."""
    end_offset, name, high_watermark = match.groups()
    topic, partition = partition_of(name)
    return (
        Fact(
            "high_watermarks",
            {
                "topic": topic,
                "partition": partition,
                "source": "follower",
                "log_end_offset": i64(end_offset),
                "leader_high_watermark": i64(high_watermark),
            },
        ),
    )


def _appended(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """The line follows empty responses too; those append nothing."""
    end_offset, size, name = match.groups()
    if size == "0":
        return ()
    topic, partition = partition_of(name)
    return (
        Fact(
            "appends",
            {
                "topic": topic,
                "partition": partition,
                "source": "follower",
                "last_offset": i64(end_offset) - 1,
                "size_bytes": i64(size),
            },
        ),
    )


def _follower_high_watermark(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    topic, partition = partition_of(match[1])
    row = {"topic": topic, "partition": partition, "source": "follower", "high_watermark": i64(match[2])}
    return (Fact("high_watermarks", row),)


def _follower_took(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    topic, partition = partition_of(match[3])
    return (
        Fact(
            "high_watermarks",
            {
                "topic": topic,
                "partition": partition,
                "source": "follower",
                "high_watermark": None if match[2] is None else i64(match[2]),
                "leader_high_watermark": i64(match[1]),
            },
        ),
    )


TEMPLATES = (
    Template(
        "fetcher.received",
        _THREAD,
        rf"Follower (?:-?\d+ )?has replica log end offset (-?\d+) for partition ({PARTITION})\. Received \d+ "
        r"(?:messages|bytes of messages) and leader hw (-?\d+)",
        "ReplicaFetcherThread.processPartitionData; TRACE",
        _received,
    ),
    Template(
        "fetcher.appended",
        _THREAD,
        r"Follower (?:-?\d+ )?has replica log end offset (-?\d+) after appending (\d+) bytes of messages for "
        rf"partition ({PARTITION})",
        "ReplicaFetcherThread.processPartitionData; TRACE",
        _appended,
    ),
    Template(
        "fetcher.high_watermark",
        _THREAD,
        rf"Follower (?:-?\d+ )?set replica high watermark for partition ({PARTITION}) to (-?\d+)",
        "ReplicaFetcherThread.processPartitionData, up to 3.2; TRACE",
        _follower_high_watermark,
    ),
    Template(
        "fetcher.high_watermark",
        _THREAD,
        r"Follower received high watermark (-?\d+) from the leader (?:and updated replica high watermark to "
        r"\(?(?:offset=)?(-?\d+)[^ ]*(?: segment=\S+)?|but did not update replica high watermark) for partition "
        rf"({PARTITION})",
        "ReplicaFetcherThread.processPartitionData, 3.3 and later; TRACE",
        _follower_took,
    ),
    Template(
        "fetcher.sending",
        _THREAD,
        r"(?:Sending fetch request|Issuing (?:to broker|fetch to broker)) .*",
        "AbstractFetcherThread.processFetchRequest; TRACE: the leader's log has the request",
    ),
    Template(
        "fetcher.idle",
        _THREAD,
        r"There are no active partitions\. Back off for \d+ ms before sending a fetch request",
        "AbstractFetcherThread.maybeFetch; TRACE",
    ),
    Template(
        "fetcher.epoch_request",
        _THREAD,
        r"(?:Sending offset for leader epoch request|Received leaderEpoch response|Build leaderEpoch request|Receive "
        r"leaderEpoch response|Skipping leaderEpoch request since|Error when sending leader epoch request "
        r"for|Ignoring epoch offsets for partition) .*",
        "RemoteLeaderEndPoint.fetchEpochEndOffsets; DEBUG",
    ),
    Template(
        "fetcher.epoch_request",
        ("RemoteLeaderEndPoint",),
        r"(?:Sending offset for leader epoch request|Received leaderEpoch response|Skipping leaderEpoch request "
        r"since|Error when sending leader epoch request for) .*",
        "RemoteLeaderEndPoint.fetchEpochEndOffsets, 3.3 and later; DEBUG",
    ),
)
