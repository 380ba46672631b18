"""Grammar of what a follower logs of each fetch (T3): its end offset, what it appended, the high watermark it took."""

from __future__ import annotations

import re
from functools import partial

from pipelines.grammars.grammar import Context, Template
from pipelines.grammars.record import Fact, Record
from pipelines.grammars.typed import TP, typed
from pipelines.grammars.values import i64

_append = typed("appends", source="follower", last_offset=lambda match, _: i64(match["last_offset"]) - 1)
_position = typed("high_watermarks", source="follower")


def _appended(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """The line follows empty responses too; those append nothing."""
    return () if match["size_bytes"] == "0" else _append(match, context, record)


_thread = partial(Template, loggers=("ReplicaFetcherThread",))

TEMPLATES = (
    _thread(
        "fetcher.received",
        rf"Follower (?:-?\d+ )?has replica log end offset (?P<log_end_offset>-?\d+) for partition {TP}\. Received \d+ "
        r"(?:messages|bytes of messages) and leader hw (?P<leader_high_watermark>-?\d+)",
        "ReplicaFetcherThread.processPartitionData; TRACE",
        # before the response is appended: the follower's end offset, and the leader's high watermark
        _position,
    ),
    _thread(
        "fetcher.appended",
        r"Follower (?:-?\d+ )?has replica log end offset (?P<last_offset>-?\d+) after appending (?P<size_bytes>\d+) "
        rf"bytes of messages for partition {TP}",
        "ReplicaFetcherThread.processPartitionData; TRACE",
        _appended,
    ),
    _thread(
        "fetcher.high_watermark",
        rf"Follower (?:-?\d+ )?set replica high watermark for partition {TP} to (?P<high_watermark>-?\d+)",
        "ReplicaFetcherThread.processPartitionData, up to 3.2; TRACE",
        _position,
    ),
    _thread(
        "fetcher.high_watermark",
        r"Follower received high watermark (?P<leader_high_watermark>-?\d+) from the leader (?:and updated replica "
        r"high watermark to \(?(?:offset=)?(?P<high_watermark>-?\d+)[^ ]*(?: segment=\S+)?|but did not update "
        rf"replica high watermark) for partition {TP}",
        "ReplicaFetcherThread.processPartitionData, 3.3 and later; TRACE",
        _position,
    ),
)
