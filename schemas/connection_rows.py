"""What the fold of connections takes: rows about one connection to a broker, or about the broker's log as a whole.

Plain tuples, no Spark. Instants are integers, microseconds since the epoch, on the broker's clock.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from highwater.schemas.fields import Int, Long

#: A second of a broker's log: its first and last line, and its first and last request. Its connection is empty.
SECOND: Final = "second"
#: A span over which a broker's fetch requests are logged. Its connection is empty.
LOGGED: Final = "logged"
#: When a connection was last heard of, and which partition it asked for, if any.
WATCH: Final = "watch"
#: A fetch of a follower, as a request.
FETCH: Final = "fetch"
#: A partition that such a fetch lists.
LISTED: Final = "listed"

#: Order of the kinds of one connection.
RANK: Final = {LOGGED: 0, SECOND: 1, WATCH: 2, FETCH: 3, LISTED: 3}


class ConnectionRow(NamedTuple):
    """One row; what its kind does not have is None."""

    kind: str  #: one of the above
    #: replica_id, correlation_id, arrival_us, dequeued_us, handled_us, completed_us, sent_us: of a fetch, also where
    #: a partition is `LISTED`
    replica_id: Int | None = None
    correlation_id: Int | None = None
    arrival_us: Long | None = None
    dequeued_us: Long | None = None
    handled_us: Long | None = None
    completed_us: Long | None = None
    sent_us: Long | None = None
    carried_chain_no: Int | None = None  #: the chain of a fetch that an earlier run has seen
    topic: str | None = None  #: name; of `LISTED`, ``id:<topic id>`` where no line shows it
    partition: Int | None = None
    #: leader_epoch, offset, high_watermark, error_code, diverging, stable_offset, size_bytes: of `LISTED`
    #: (`schemas.events.Event`)
    leader_epoch: Int | None = None
    offset: Long | None = None
    high_watermark: Long | None = None
    error_code: Int | None = None
    diverging: bool | None = None
    stable_offset: Long | None = None
    size_bytes: Long | None = None
    #: session_topic, topic_id, isolation_level: of `WATCH`
    session_topic: str | None = None
    topic_id: str | None = None
    isolation_level: Int | None = None
    #: from_us, until_us: first and last instant: of `WATCH` and `LOGGED`; of `SECOND`, its first and last line; its
    #: ``arrival_us`` is when it began
    from_us: Long | None = None
    until_us: Long | None = None
    #: first_request_us, last_request_us: of `SECOND`
    first_request_us: Long | None = None
    last_request_us: Long | None = None
