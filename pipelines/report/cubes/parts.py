"""The aggregates as parts of the report: columns of equal length, which JSON holds in half the space of rows.

Not in ``report.json``: gold has the rows that they come from.
"""

from __future__ import annotations

from highwater.pipelines.base.values import Part, Text


class Node(Part):
    """A broker. The columns below refer to brokers by their index in the list."""

    cluster_id: Text
    broker_id: int


class LeftOut(Part):
    """Number and totals of rows beyond the limit of the page."""

    rows: int
    amount: int


class OperationCells(Part):
    """Operations by interval, kind, leader, closing replica and success."""

    interval: list[int]  #: number, from the first one on
    kind: list[Text]  #: produce, coordinator, fetch
    leader: list[int]  #: place in ``nodes``
    replica: list[int]  #: index in ``nodes``; the unknown broker for fetches
    succeeded: list[int]
    operations: list[int]
    slow: list[int]
    wait_us: list[int]  #: waiting time
    slow_wait_us: list[int]  #: the part of it beyond ``slow_ms`` per operation
    explained: list[int]
    jitter: list[int]
    late: list[int]
    unobservable: list[int]
    contradicted: list[int]
    within_1: list[int]  #: so near, in ms, to the predicted interval
    within_5: list[int]  #: likewise
    within_20: list[int]  #: likewise
    split: list[int]  #: operations whose wait could be split
    parts_us: list[list[int]]  #: the parts of their wait, in the order of `SPLIT`
    wait: list[list[int]]  #: histograms of the wait


class TotalCells(Part):
    """Acks=all operations by interval, kind and closing replica, over all leaders."""

    interval: list[int]
    kind: list[Text]
    replica: list[int]
    succeeded: list[int]
    total: list[list[int]]  #: histograms of arrival to response sent
    without: list[list[int]]  #: and of the same had the replica not been waited for


class SlowCells(Part):
    """Acks=all operations slower than ``slow_ms``, by partition and client. Only the slowest are shown."""

    interval: list[int]
    kind: list[Text]
    leader: list[int]
    replica: list[int]
    succeeded: list[int]
    topic: list[Text | None]
    partition: list[int | None]
    client: list[Text | None]
    operations: list[int]
    slow_wait_us: list[int]
    wait_us_max: list[int]
    left_out: LeftOut


class ErrorCells(Part):
    """Answers with an error, by client and code. An operation with two codes counts once for each."""

    interval: list[int]
    leader: list[int]
    api: list[Text]
    client: list[Text | None]
    code: list[int]
    operations: list[int]
    left_out: LeftOut


class RequestCells(Part):
    """Requests by interval and kind. ``phases_us`` has the order of `PHASES`."""

    interval: list[int]
    kind: list[Text]
    requests: list[int]
    within_1: list[int]
    total_us: list[int]
    phases_us: list[list[int]]
    total: list[list[int]]


class ClientCells(Part):
    """Requests by interval, client id and API. Only the most frequent are shown."""

    interval: list[int]
    client: list[Text | None]
    api: list[Text]
    requests: list[int]
    total_us: list[int]
    total_us_max: list[int]
    left_out: LeftOut


class Cubes(Part):
    """All aggregates."""

    start_s: int  #: beginning of interval 0, seconds since the epoch
    interval_s: int  #: length of each
    intervals: int  #: how many there are
    accuracy: float  #: largest error of a quantile that is read off a histogram, in relation to it
    growth: float  #: of the histograms' buckets
    nodes: list[Node]
    operations: OperationCells
    totals: TotalCells
    slow: SlowCells
    errors: ErrorCells
    requests: RequestCells
    clients: ClientCells
