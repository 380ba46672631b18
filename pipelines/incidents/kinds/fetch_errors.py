"""A leader answered a follower's fetches with errors for some partitions."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipelines.incidents.episodes import brokers_of, first, last, lines, partitions_of, places, together
from pipelines.incidents.facts import Facts, Row
from pipelines.incidents.incident import INFO, MINOR, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.kinds.broker_stopped import shutdown_times
from pipelines.incidents.kinds.leader_unreachable import FETCHER
from pipelines.incidents.signatures import Signature
from pipelines.incidents.words import brokers, listed_some, number, partitions, when

_ERROR = Signature(
    "fetch_error",
    ("ReplicaFetcherThread", "AbstractFetcherThread"),
    FETCHER
    + r"(?:Error for partition (?P<partition>\S+) (?:at offset|to broker) .*|Received \w+ from the leader for .*"
    r"|Based on (?:replica|follower)'s leader epoch, leader replied with an unknown offset in .*"
    r"|Remote broker is not the leader for partition .*)",
    "kafka.server.AbstractFetcherThread.processFetchRequest, maybeTruncate",
    gap_s=15,
)
_NAME = re.compile(
    r"(?:\.(?P<exception>[A-Z]\w+?)(?:Exception)?(?=[:\s]|$)|Received (?P<error>[A-Z_]+) from the leader)"
)
_UNKNOWN = {"UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID", "UnknownTopicOrPartition", "UnknownTopicId"}
_TOGETHER_US = 15_000_000
#: Leaders that move, topics that begin or end, give errors no longer, microseconds.
_LONG_US = 10_000_000


def detect(facts: Facts) -> Iterable[Incident]:
    """Episodes by leader, those of several followers together; none of a cluster that is shut down."""
    ends = shutdown_times(facts)
    rows = [
        row
        for row in facts.remarked(_ERROR.name)
        if row["broker_id"] is not None and row["first_time"] < ends.get(row["cluster_id"], row["first_time"] + 1)
    ]
    for group in together(rows, lambda row: (row["cluster_id"], row["key"]), _TOGETHER_US):
        errors = _errors(group)
        # A topic that is created or deleted is known to one broker before it is to the other.
        if not (errors and errors <= _UNKNOWN and last(group) - first(group) < _LONG_US):
            yield _refused(group)


def _errors(group: list[Row]) -> set[str]:
    texts = (text for row in group for text in (row["message"], row["last_message"]))
    return {
        match["exception"] or match["error"] for text in texts for match in _NAME.finditer(text.partition("\n\tat ")[0])
    }


def _refused(group: list[Row]) -> Incident:
    start, end, leader, followers = first(group), last(group), int(group[0]["key"]), brokers_of(group)
    names, count = partitions_of(group), lines(group)
    errors = sorted(_errors(group))
    kinds = f" ({listed_some(errors, 'errors')})" if errors else ""
    where = f" for {partitions(names)}" if names else ""
    return Incident(
        kind=KIND.name,
        severity=MINOR if end - start >= _LONG_US else INFO,
        cluster_id=group[0]["cluster_id"],
        start_us=start,
        end_us=end,
        broker_ids=followers,
        partitions=names,
        sentence=(
            f"Leader {leader} answered fetches of {brokers(followers)}{where} with {number(count, 'error')}{kinds}"
            f" {when(start, end)}."
        ),
        advice=f"Look at what broker {leader} logged of these partitions meanwhile." if end - start >= _LONG_US else "",
        figures={"errors": lines(group), "leader": leader},
        places=places(group),
        weight=(end - start) / 1e6,
        by=(leader,),
    )


KIND = Kind(
    name="fetch_errors",
    meaning="A leader answered followers' fetches of some partitions with errors.",
    source="kafka.server.AbstractFetcherThread.processFetchRequest",
    detect=detect,
    signatures=(_ERROR,),
    causes=("log_directory_failed", "high_watermark_below_start", "broker_died", "broker_stalled", "broker_stopped"),
)
