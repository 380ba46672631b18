"""Followers and their fetcher threads: they died, reached no leader, got errors, gave partitions up."""

from __future__ import annotations

import re
from collections.abc import Iterable

from highwater.pipelines.incidents.advice import is_open
from highwater.pipelines.incidents.episodes import Episode, before_shutdown, episodes, grouped
from highwater.pipelines.incidents.facts import Facts, Row, partition_name
from highwater.pipelines.incidents.incident import CRITICAL, INFO, MAJOR, MINOR, LoggedIncident, Remedy, bug_of
from highwater.pipelines.incidents.kind import ABSENT, FAILED, UNDECIDED, Signature, kind
from highwater.pipelines.incidents.reasons import Reason, best_reason, reason_of
from highwater.pipelines.incidents.witnesses import FETCHER, LEADER_UNREACHABLE
from highwater.pipelines.incidents.words import brokers, clock, listed_some, number, partitions, shortened, span, times

_DIED = Signature(
    "fetcher_thread_died",
    ("ReplicaFetcherThread", "ReplicaAlterLogDirsThread", "AbstractFetcherThread", "ShutdownableThread"),
    FETCHER + r"Error due to ?.*",
    "kafka.utils.ShutdownableThread.run: the thread ends after this line; until 2.3 nothing starts it again (KIP-461)",
    ("ERROR", "FATAL"),
)
_ERROR = Signature(
    "fetch_error",
    ("ReplicaFetcherThread", "AbstractFetcherThread"),
    FETCHER
    + r"(?:Error for partition|Received \w+ from the leader for(?: partition)?|Remote broker is not the leader for "
    r"partition|Based on (?:replica|follower)'s leader epoch, leader replied with an unknown offset in) "
    r"(?P<partition>\[?[\w.,-]*\w\]?).*",
    "kafka.server.AbstractFetcherThread.processFetchRequest, maybeTruncate",
    gap_s=15,
)
_GIVEN_UP = Signature(
    "partition_marked_as_failed",
    ("ReplicaFetcherThread", "ReplicaAlterLogDirsThread"),
    FETCHER + r"Partition (?P<partition>\S+) marked as failed",
    "kafka.server.AbstractFetcherThread.markPartitionFailed, 2.3 on (KIP-461)",
    gap_s=15,
)
_FAILED_AT_LEADER = Signature(
    "fetch_failed_at_leader",
    ("ReplicaManager",),
    r"(?:\[[^\]]*\]:? )?Error processing fetch (?:with max size -?\d+ )?(?:operation )?"
    r"(?:from (?:replica \[?\d+\]?|consumer) )?on partition (?:[\w-]{22}:)?(?P<key>[\w.-]+-\d+)\b.*",
    "kafka.server.ReplicaManager.readFromLocalLog",
    ("ERROR",),
)
#: kafka.log.Log.maybeIncrementLogStartOffset: what a follower with KAFKA-7104 dies of.
_BEYOND = "Cannot increment the log start offset"
_PARTITION = re.compile(r"\b(?:for|of) (?:topic )?partition \[?(?P<name>[\w.]+[-,]\d+)\]?")
#: Errors over less time are the ordinary end of a connection, microseconds.
_LASTS_US = 1_000_000
#: Time for which a follower tried before it logged an error, ms.
_TRIED = re.compile(r"Failed to connect within (\d+) ms")
#: Exceptions of a leader that is gone or slow, which say no more than that.
_DISCONNECTED = {"IOException", "SocketTimeoutException", "ConnectException", "DisconnectException", "EOFException"}
#: Followers that lose the same leader within this lose it together, microseconds.
_TOGETHER_US = 15_000_000
_ERROR_NAME = re.compile(
    r"(?:\.(?P<exception>[A-Z]\w+?)(?:Exception)?(?=[:\s]|$)|Received (?P<error>[A-Z_]+) from the leader)"
)
_UNKNOWN = {"UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID", "UnknownTopicOrPartition", "UnknownTopicId"}
#: Leaders that move, topics that begin or end, give errors no longer, microseconds.
_LONG_US = 10_000_000
#: Before a cluster is shut down its leaders move, microseconds.
_STOPS_US = 5_000_000
#: A fetcher learns of a new leader so late at most, microseconds.
_LATE_US = 10_000_000
#: replica.lag.time.max.ms of brokers that do not say it; up to 2.4 it is less.
_LAG_MS = 30_000
_OUT_OF_RANGE = re.compile(
    r"OffsetOutOfRangeException: Received request for offset (?P<offset>\d+) for partition (?P<partition>\S+), but we "
    r"only have log segments (?:in the range|upto) (?P<start>\d+)"
)


@kind(
    meaning="A replica fetcher thread ended with an error.",
    source="kafka.utils.ShutdownableThread.run, kafka.server.AbstractFetcherThread",
    signatures=(_DIED,),
    causes=FAILED,
)
def fetcher_died(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield fetcher threads that logged a fatal error. They return with the next start of the broker."""
    for row in facts.remarked_by_brokers(_DIED):
        episode, start, broker_id = Episode([row]), row["first_time"], row["broker_id"]
        end = facts.next_start(episode.node, row["last_time"])
        reason = reason_of(row["message"])
        of = f" of {reason.thrown.name}" if reason is not None else ""
        said = f" ({shortened(reason.thrown.text)})" if reason is not None and reason.thrown.text else ""
        meaning = f" {reason.cause.meaning}" if reason is not None and reason.cause is not None else ""
        action = reason.action if reason is not None else ""
        until = "the end of the logs" if end is None else f"its restart at {clock(end)}"
        version = facts.version(episode.node, start)
        names = frozenset(match["name"].replace(",", "-") for match in _PARTITION.finditer(row["message"]))
        look = f" Look at the log of {partitions(names)} first: it dies again where that is damaged." if names else ""
        yield episode.incident(
            CRITICAL,
            f"The replica fetcher of broker {broker_id} from leader {row['key']} died{of} at {clock(start)}{said}."
            f"{meaning} What it followed stays behind until {until}.",
            end_us=end,
            partitions=names,
            advice=Remedy(
                f"Restart broker {broker_id}: the thread does not come back by itself.{look} {action}".rstrip(),
                is_open,
            ),
            figures={"leader": int(row["key"])},
            known_bug=bug_of("KAFKA-7104", version) if _BEYOND in row["message"] else None,
            weight=2_000.0,
        )


@kind(
    meaning="Fetcher threads of followers got no connection to, or no answer from, a leader.",
    source="kafka.server.AbstractFetcherThread.processFetchRequest",
    signatures=(LEADER_UNREACHABLE,),
    causes=("brokers_rejected", *ABSENT),
)
def leader_unreachable(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield leaders that followers could not reach: one incident per leader and time span, over all followers."""
    rows = [
        row
        for row in map(_since_tried, before_shutdown(facts, facts.remarked_by_brokers(LEADER_UNREACHABLE)))
        if row["last_time"] - row["first_time"] >= _LASTS_US
    ]
    for group in grouped(sorted(rows, key=_of_leader), _is_lost_together):
        episode, leader = Episode(group), int(group[0]["key"])
        followers, errors = brokers(episode.broker_ids), number(episode.lines, "error")
        reason = best_reason(text for row in group for text in (row["message"], row["last_message"]) if text)
        if reason is not None and reason.thrown.name in _DISCONNECTED:
            reason = None
        meaning = reason.cause.meaning if reason is not None and reason.cause is not None else ""
        yield episode.incident(
            MINOR,
            f"{followers.capitalize()} could not fetch from leader {leader} {span(episode.start_us, episode.end_us)}: "
            f"{errors}{f' ({reason})' if reason is not None else ''}."
            f"{' ' if meaning else ''}{meaning}",
            advice=reason.action if reason is not None else "",
            unexplained=""
            if meaning
            else f"If broker {leader} was up meanwhile, look at the network between it and {followers}.",
            figures={"errors": episode.lines, "leader": leader},
            weight=(episode.end_us - episode.start_us) / 1e6,
            by=(leader,),
            unseen_us=max(map(_tried_us, group)),
        )


def _since_tried(row: Row) -> Row:
    """Return a row moved back to the follower's first attempt to connect, if its first line shows how long it tried."""
    return {**row, "first_time": row["first_time"] - _tried_us(row)}


def _tried_us(row: Row) -> int:
    tried = _TRIED.search(row["message"])
    return 0 if tried is None else int(tried[1]) * 1000


def _of_leader(row: Row) -> tuple[str, int, int]:
    return row["cluster_id"], int(row["key"]), row["first_time"]


def _is_lost_together(group: list[Row], row: Row) -> bool:
    (*leader, time), (*first_leader, first_time) = _of_leader(row), _of_leader(group[0])
    return leader == first_leader and time - first_time <= _TOGETHER_US


@kind(
    meaning="A leader answered followers' fetches of some partitions with errors.",
    source="kafka.server.AbstractFetcherThread.processFetchRequest",
    signatures=(_ERROR,),
    causes=(
        *("brokers_rejected", *ABSENT, *UNDECIDED),
        *("high_watermark_below_start", "zombie_leader", "partitions_without_leader"),
    ),
)
def fetch_errors(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield fetches that leaders answered with errors: one incident per leader and time, over all followers.

    Fetches in the shutdown of a whole cluster are left out.
    """
    for episode in episodes(before_shutdown(facts, facts.remarked_by_brokers(_ERROR)), "key", within_s=60):
        leader, names = int(episode.rows[0]["key"]), episode.partitions
        errors = _errors(episode.rows)
        lasted_us = episode.end_us - episode.start_us
        # A topic that is created or deleted is known to one broker before it is to the other.
        if errors and errors <= _UNKNOWN and lasted_us < _LONG_US:
            continue
        kinds = f" ({listed_some(sorted(errors), 'errors')})" if errors else ""
        where = f" for {partitions(names)}" if names else ""
        yield episode.incident(
            MINOR if lasted_us >= _LONG_US else INFO,
            f"Leader {leader} answered fetches of {brokers(episode.broker_ids)}{where} with "
            f"{number(episode.lines, 'error')}{kinds} {episode.when}.",
            partitions=names,
            advice=f"Look at what broker {leader} logged of these partitions meanwhile."
            if lasted_us >= _LONG_US
            else "",
            figures={"errors": episode.lines, "leader": leader},
            weight=lasted_us / 1e6,
            # A follower that is back asks the leader that it knew.
            by=(leader, *episode.broker_ids),
        )


def _errors(rows: list[Row]) -> set[str]:
    texts = (text for row in rows for text in (row["message"], row["last_message"]))
    names = (match for text in texts for match in _ERROR_NAME.finditer(text.partition("\n\tat ")[0]))
    return {match["exception"] or match["error"] for match in names}


@kind(
    meaning="A fetcher marked partitions as failed, and its broker did not join their ISR again.",
    source="kafka.server.AbstractFetcherThread.markPartitionFailed, FailedPartitions (KIP-461)",
    signatures=(_GIVEN_UP,),
    causes=(*ABSENT, *UNDECIDED, "fetcher_died", "fetch_errors", "partitions_without_leader"),
)
def partitions_not_fetched(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield incidents of partitions that a fetcher stopped fetching, if the broker left their ISR for good.

    A change of the leader or a restart of the broker makes it fetch again. A fetcher that learns late of a new leader
    also
    stops fetching.
    """
    rows = before_shutdown(facts, facts.remarked_by_brokers(_GIVEN_UP), margin_us=_STOPS_US)
    for episode in episodes(rows, "broker_id", within_s=15):
        broker_id, start = episode.node[1], episode.start_us
        names = frozenset(name for name in episode.partitions if _is_out(facts, episode.rows[0], name))
        if not names or any(row["time"] > start for row in facts.life(episode.node, "starting")):
            continue
        reason = _given_up_for(facts, episode, names)
        yield episode.incident(
            MAJOR,
            f"Broker {broker_id} gave up fetching {partitions(names)} at {clock(start)}: its fetcher marked "
            f"{'it' if len(names) == 1 else 'them'} as failed, and it is out of the ISR to the end of the logs."
            + (f" {reason.words}" if reason is not None else ""),
            end_us=None,
            partitions=names,
            advice=(
                f"Restart broker {broker_id}, or elect another leader: either makes it fetch again. "
                f"{(reason.action if reason is not None else '') or 'Look at the error before it.'}"
            ),
            figures={"partitions": len(names)},
            weight=float(len(names)),
        )


def _given_up_for(facts: Facts, episode: Episode, names: frozenset[str]) -> Reason | None:
    """Return the exception for which a fetcher gave partitions up. None if no line shows one.

    Lines of several partitions have one text: the message of another partition's exception is left out.
    """
    for text in facts.loud_texts:
        if (
            (text.cluster_id, text.thrown is None) == (episode.cluster_id, False)
            and "partitions_not_fetched" in text.kinds
            and episode.node[1] in text.broker_ids
            and text.first_us - _LATE_US <= episode.start_us <= text.last_us + _LATE_US
        ):
            reason = reason_of(str(text.row["message"]))
            first = text._replace(moments=text.moments[:1])
            if reason is None or not names.isdisjoint(first.partitions):
                return reason
            return reason._replace(thrown=reason.thrown._replace(text=""))
    return None


def _is_out(facts: Facts, row: Row, name: str) -> bool:
    """Return True if a replica of partition `name` that is not fetched left the ISR in time, and did not come back."""
    absences = [
        other
        for other in facts.absences
        if other["cluster_id"] == row["cluster_id"]
        and other["replica_id"] == row["broker_id"]
        and partition_name(other) == name
    ]
    has_moved = any(
        other["cluster_id"] == row["cluster_id"]
        and partition_name(other) == name
        and other["elected_time"] is not None
        and other["elected_time"] > row["first_time"] - _LATE_US
        for other in facts.failovers
    )
    if has_moved or not absences or absences[-1]["back_time"] is not None:
        return False
    out_us, leader = absences[-1]["left_time"], (row["cluster_id"], absences[-1]["leader"])
    lag_ms = int(facts.config(leader, "replica.lag.time.max.ms") or _LAG_MS)
    # A leader looks at its followers every half of the lag; who stayed longer was fetched again.
    return out_us is None or bool(out_us <= row["last_time"] + 1500 * lag_ms + _LATE_US)


@kind(
    meaning="A leader's high watermark is below its log start offset, and its own log refuses to read there.",
    source="kafka.log.Log.convertToOffsetMetadataOrThrow; KAFKA-9491, KAFKA-16452",
    signatures=(_FAILED_AT_LEADER,),
    causes=("unclean_election", *ABSENT),
)
def high_watermark_below_start(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield incidents of leaders that read their own log below its start offset. Such a leader answers no fetch."""
    for row in facts.remarked(_FAILED_AT_LEADER):
        match = _OUT_OF_RANGE.search(row["message"])
        if match is None or int(match["offset"]) >= int(match["start"]):
            continue
        episode, offset, start = Episode([row]), int(match["offset"]), int(match["start"])
        version = facts.version(episode.node, episode.start_us)
        yield episode.incident(
            CRITICAL,
            f"Partition {row['key']} cannot replicate {span(episode.start_us, None)}: its leader, broker "
            f"{row['broker_id']}, has high watermark {offset}, below its own log start {start}, and answers fetches "
            f"with an error ({times(episode.lines)}).",
            end_us=None,
            broker_ids=(row["broker_id"],),
            partitions=frozenset({row["key"]}),
            advice=(
                "Move the leadership to a replica that was in the ISR before (preferred replica election); upgrade to "
                "a release with the fix."
            ),
            figures={"high_watermark": offset, "log_start_offset": start, "errors": episode.lines},
            known_bug=bug_of("KAFKA-9491", version) or bug_of("KAFKA-16452", version),
            weight=2_500.0,
        )
