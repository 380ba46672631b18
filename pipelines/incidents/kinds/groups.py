"""Groups that rebalance again and again, and coordinators that load for long."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from highwater.pipelines.incidents.episodes import Episode, episodes
from highwater.pipelines.incidents.facts import Facts
from highwater.pipelines.incidents.incident import MAJOR, MINOR, LoggedIncident
from highwater.pipelines.incidents.kind import ABSENT, Signature, kind
from highwater.pipelines.incidents.kinds.logged import incidents_of_messages
from highwater.pipelines.incidents.words import lasting, listed, listed_some, number, sentence, span, times

_SOURCE = "kafka.coordinator.group.GroupCoordinator.prepareRebalance; org.apache.kafka.coordinator.group"


def _rebalance(name: str, reason: str) -> Signature:
    """Return a pattern ``rebalance_<name>`` for lines about rebalances. The regular expression `reason` must match."""
    return Signature(
        f"rebalance_{name}",
        ("GroupCoordinator", "GroupMetadataManager"),
        r"(?:\[[^\]]*\]:? )?Preparing to re(?:balance|stabilize) group (?P<key>.+?) (?:in state \w+ )?with old "
        r"generation \d+ ?(?:\((?P<partition>__consumer_offsets-\d+)\))?" + reason,
        _SOURCE,
        ("INFO",),
        gap_s=300,
    )


_EXPIRED = _rebalance("heartbeat_expired", r".*on heartbeat expiration.*")
_NOT_STORED = _rebalance("assignment_not_stored", r".*\(reason: [eE]rror when storing group assignment.*")
_POLL_EXPIRED = _rebalance("poll_expired", r".*consumer poll timeout has expired.*")
_OTHER = _rebalance("other", r".*")
#: What happened, and what to do, by signature; a rebalance of a member that joins or leaves is not in it.
_FAILURES = {
    _EXPIRED: (
        "a member sent no heartbeat in time",
        "Look at the members: pauses and lost connections longer than session.timeout.ms.",
    ),
    _NOT_STORED: (
        "the coordinator could not store the assignment",
        "Look at the ISR of the group's partition of __consumer_offsets: it refuses the write.",
    ),
    _POLL_EXPIRED: (
        "a member left as its processing took longer than max.poll.interval.ms",
        "Raise max.poll.interval.ms, or lower max.poll.records.",
    ),
}
#: Members that join and leave as applications start make fewer rebalances; failures are worth a note earlier.
_FAILURES_MIN, _REBALANCES_MIN = 3, 10

#: The time is the key: each load is an episode. Loads of less than 10 s are of no interest.
_LOADED = Signature(
    "coordinator_loaded",
    ("GroupMetadataManager", "TransactionStateManager", "CoordinatorRuntime"),
    r"(?:\[[^\]]*\]:? )?Finished loading (?:.* )?from (?P<partition>[\w.]+-\d+) (?:.* )?in (?P<key>\d{5,9}) ?"
    r"m(?:illi)?s.*",
    "GroupMetadataManager.doLoadGroupsAndOffsets, TransactionStateManager.loadTransactionsForTxnTopicPartition, "
    "CoordinatorRuntime.CoordinatorContext.load",
    ("INFO",),
)
#: Time without a coordinator after which most clients fail, seconds.
_LONG_S = 60


@kind(
    meaning="A group rebalanced again and again: three times for a failure, or ten times for any reason, with no more "
    "than five minutes in between; or a coordinator logged that a rebalance failed.",
    source=_SOURCE,
    signatures=(_EXPIRED, _NOT_STORED, _POLL_EXPIRED, _OTHER),
    causes=("partitions_without_leader", "partitions_under_min_isr", "isr_shrunk", *ABSENT),
)
def group_rebalances(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield repeated rebalances by group, then what coordinators log at WARN or above."""
    rows = facts.remarked(_EXPIRED, _NOT_STORED, _POLL_EXPIRED, _OTHER)
    for episode in episodes(rows, "key", within_s=300):
        failures = {
            signature: sum(row["line_count"] for row in episode.rows if row["signature"] == signature.name)
            for signature in _FAILURES
        }
        failed = sum(failures.values())
        if failed >= _FAILURES_MIN or episode.lines >= _REBALANCES_MIN:
            yield _rebalanced(episode, {signature: count for signature, count in failures.items() if count})
    yield from incidents_of_messages(facts, "group_rebalances")


def _rebalanced(episode: Episode, failures: dict[Signature, int]) -> LoggedIncident:
    reasons = [f"{times(count)} because {_FAILURES[signature][0]}" for signature, count in failures.items()]
    other = episode.lines - sum(failures.values())
    if other:
        reasons.append(f"{times(other)} for another reason, such as a member that joined or left")
    return episode.incident(
        MAJOR if sum(failures.values()) >= _FAILURES_MIN else MINOR,
        f"Group {episode.rows[0]['key']} rebalanced {number(episode.lines, 'time')} "
        f"{span(episode.start_us, episode.end_us)}: {listed(reasons)}.",
        partitions=episode.partitions,
        advice=" ".join(_FAILURES[signature][1] for signature in failures)
        or "Look at the members: applications that restart, or members that subscribe to changing topics.",
        figures={"rebalances": episode.lines, "failures": sum(failures.values())},
        weight=10.0 * episode.lines,
    )


@kind(
    meaning="A coordinator of groups or transactions loaded its state for 10 s or longer: its clients waited.",
    source=_LOADED.source,
    signatures=(_LOADED,),
    causes=(*ABSENT, "log_cleaner_died"),
)
def coordinator_slow(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield slow loads of coordinators: one incident per broker for loads that ended within minutes of each other."""
    for episode in episodes(facts.remarked_by_brokers(_LOADED), "broker_id", within_s=300):
        longest_us = max(int(row["key"]) for row in episode.rows) * 1000
        start = min(row["first_time"] - int(row["key"]) * 1000 for row in episode.rows)
        loads = [
            f"{listed_some(sorted(row['partitions']), 'partitions')} for {lasting(int(row['key']) * 1000)}"
            for row in sorted(episode.rows, key=lambda row: -int(row["key"]))[:3]
        ]
        yield replace(
            episode.incident(
                MAJOR if longest_us >= _LONG_S * 1_000_000 else MINOR,
                f"{sentence(facts.named(episode.cluster_id, episode.broker_ids))} loaded coordinators "
                f"{span(start, episode.end_us)}: {listed(loads)}. Groups and transactions of these partitions had no "
                "coordinator meanwhile: clients got COORDINATOR_LOAD_IN_PROGRESS.",
                partitions=episode.partitions,
                advice="Look at the size of these partitions: they are compacted, so a large one points to a log "
                "cleaner that died or is behind. Slow reads of the disk are the other reason.",
                figures={"longest_s": longest_us / 1e6, "loads": episode.lines},
                weight=longest_us / 1e6,
            ),
            start_us=start,
        )
