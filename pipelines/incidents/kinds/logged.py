"""Lines at WARN or above that no other kind reports: what the atlas says of them, so that no such line is silent.

Entries that begin an incident of `OF_MESSAGES` are one incident per cluster and episode, whatever the number of texts.
Any other text is an incident of its own, unless it belongs to an incident that is reported already, or to each start,
stop or failover (`pipelines.messages.atlas.HOUSEKEEPING`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from highwater.pipelines.bronze.identity import CLIENT, kind_of_logger
from highwater.pipelines.incidents.candidates import SLACK_US, incidents_with
from highwater.pipelines.incidents.episodes import grouped
from highwater.pipelines.incidents.facts import Facts, Row, place
from highwater.pipelines.incidents.incident import CRITICAL, INFO, MAJOR, MINOR, Bug, LoggedIncident, Severity, bug_of
from highwater.pipelines.incidents.kind import ABSENT, SHOWN_BY, Kind, kind, preceding
from highwater.pipelines.incidents.loud_text import LoudText
from highwater.pipelines.incidents.words import listed_some, number, partitions, sentence, shortened, times, when
from highwater.pipelines.messages.atlas import HOUSEKEEPING
from highwater.pipelines.messages.exceptions import cause_of
from highwater.schemas.incidents import SEVERITIES

#: Texts of one kind further apart are of two incidents, microseconds.
_GAP_US = 600_000_000
#: Severity of a text without an entry, by its level.
_UNKNOWN: dict[str, Severity] = {"FATAL": MAJOR, "ERROR": MINOR, "WARN": INFO}
_ORDER: tuple[Severity, ...] = (CRITICAL, MAJOR, MINOR, INFO)

#: Kinds that entries of the atlas begin: meaning, and where Kafka logs them.
OF_MESSAGES = {
    "start_failed": ("A node did not start, and logged why.", "kafka.Kafka.main, KafkaServer and BrokerServer.startup"),
    "metadata_lost": ("A controller lost metadata that the quorum had committed.", "org.apache.kafka.raft.LeaderState"),
    "metadata_stale": (
        "A node failed to apply metadata and may act on outdated leaders.",
        "org.apache.kafka.server.fault.FaultHandler; kafka.server.metadata.BrokerMetadataPublisher",
    ),
    "migration": ("The migration from ZooKeeper to KRaft met an error or waits.", "KIP-866; KRaftMigrationDriver"),
    "log_cleaner_died": ("Compaction of a partition stopped.", "kafka.log.LogCleaner.CleanerThread"),
    "remote_copy_failed": (
        "Segments could not be copied to the remote storage.",
        "KIP-405; RemoteLogManager.RLMCopyTask",
    ),
    "remote_read_failed": ("Reads from the remote storage failed.", "KIP-405; RemoteLogReader, RemoteLogManager"),
    "coordinator_loading": (
        "A group or transaction coordinator could not load or keep its state.",
        "GroupMetadataManager, TransactionStateManager, CoordinatorRuntime",
    ),
    "share_state_failed": ("State of share groups could not be read or written.", "KIP-932; SharePartition"),
    "config_rejected": ("Settings are wrong or could not be applied.", "DynamicBrokerConfig, KafkaConfig"),
    "clients_disconnected": ("Connections of clients failed.", "kafka.network.SocketServer.Processor, Selector"),
}

#: Kinds of incident that bring these about.
_CAUSES = {
    "start_failed": preceding("start_failed"),
    "coordinator_loading": (*ABSENT, "partitions_under_min_isr"),
}
#: Kinds that last until the broker starts again.
_UNTIL_RESTART = {"log_cleaner_died"}


def _detector(name: str) -> Kind:
    meaning, source = OF_MESSAGES[name]

    return Kind(
        name,
        meaning,
        source,
        lambda facts: incidents_of_messages(facts, name),
        causes=_CAUSES.get(name, ()),
        yields_to=SHOWN_BY.get(name, ()),
    )


def incidents_of_messages(facts: Facts, name: str) -> Iterable[LoggedIncident]:
    """Yield incidents of lines that the message catalogue counts as the incident kind `name`, grouped by short gaps."""
    by_cluster: dict[str, list[LoudText]] = defaultdict(list)
    for text in facts.loud_texts:
        if name in text.kinds:
            by_cluster[text.cluster_id].append(text)
    for texts in by_cluster.values():
        ordered = sorted(texts, key=lambda text: text.first_us)
        for group in grouped(ordered, lambda group, text: text.first_us - group[-1].last_us <= _GAP_US):
            if any(text.begins(name) for text in group):
                yield _incident(facts, group)


KINDS_OF_MESSAGES = tuple(map(_detector, OF_MESSAGES))


@kind(
    meaning="Lines at WARN, ERROR or FATAL of one text that no other kind reports: what they mean, by the atlas "
    "(docs/messages.md), or their own words. Lines of each start, stop or failover are left out.",
    source="any class",
    is_rest=True,
)
def also_logged(facts: Facts, incidents: Sequence[LoggedIncident] = ()) -> Iterable[LoggedIncident]:
    """Yield an incident for each text at WARN or above that is part of none of `incidents`.

    A text whose kind of incident was not found at its time has the severity "info". A minor text that begins with the
    shutdown of the whole cluster, too.
    """
    by_kind: dict[tuple[str, str], list[LoggedIncident]] = defaultdict(list)
    for incident in incidents:
        by_kind[incident.cluster_id, incident.kind].append(incident)
    texts: dict[tuple[str, str], list[LoudText]] = defaultdict(list)
    remarks: dict[tuple[str, str], list[LoudText]] = defaultdict(list)
    for text in facts.texts:
        kinds = () if text.signature is None else facts.kinds_by_signature.get(text.signature)
        if kinds is None or (text.found is not None and text.found.message.part == HOUSEKEEPING):
            continue
        reported = [*incidents_with(text, by_kind, kinds)]
        outside = [row for row in text.moments if not any(_has_moment(incident, row) for incident in reported)]
        if not reported and text.signature is None:
            texts[text.cluster_id, text.key].append(text)
        elif outside:
            remarks[text.cluster_id, text.key].append(text._replace(moments=outside))
    ends = facts.brokers.shutdown_times
    for key, same in texts.items():
        incident = _incident(facts, [*same, *remarks.pop(key, ())])
        end_us = ends.get(incident.cluster_id)
        is_of_shutdown = incident.severity == MINOR and end_us is not None and incident.start_us >= end_us
        yield replace(incident, severity=INFO, advice="") if is_of_shutdown else incident
    for same in remarks.values():
        yield replace(_incident(facts, same), severity=INFO, advice="")


def _has_moment(incident: LoggedIncident, row: Row) -> bool:
    """Return True if all lines of a row of `Facts.loud` were logged during an incident."""
    begun = incident.start_us - SLACK_US <= row["first_time"]
    return begun and (incident.end_us is None or row["last_time"] <= incident.end_us + SLACK_US)


def _severity(text: LoudText) -> Severity:
    return _UNKNOWN[text.level] if text.found is None else text.found.message.severity


def _incident(facts: Facts, texts: Sequence[LoudText]) -> LoggedIncident:
    """Return one incident of lines of several texts of a cluster. The worst text gives its sentence and advice."""
    ordered = sorted(texts, key=lambda text: text.first_us)
    worst = min(ordered, key=lambda text: (_ORDER.index(_severity(text)), text.found is None, -text.lines))
    same = [text for text in ordered if text.key == worst.key]
    lines = sum(text.lines for text in same)
    start, last_us = min(text.first_us for text in ordered), max(text.last_us for text in ordered)
    ids = sorted({broker_id for text in ordered for broker_id in text.broker_ids})
    names = frozenset(name for text in ordered for name in text.partitions)
    who = facts.named(worst.cluster_id, ids) if ids else "a node that no line names"
    if kind_of_logger(str(worst.row["logger"] or "")) == CLIENT:
        who = f"a client in the log of {who}"
    elif not worst.is_of_node:
        who = f"another program ({worst.row['logger']}) in the log of {who}"
    who = sentence(who)
    span = when(min(text.first_us for text in same), max(text.last_us for text in same))
    count = "" if lines == 1 else f"{times(lines)} "
    thrown = next((text.thrown for text in same if text.thrown is not None), None)
    rarer = f"{number(worst.rarer, 'rarer text')}, the first: " if worst.rarer else ""
    reason = f"{rarer}{thrown or worst.line}"
    cause = None if thrown is None else cause_of(thrown)
    # An error that is known by its text says more than the line that logs it.
    means = f" {cause[1].meaning}" if cause is not None and cause[1].texts else ""
    reason += "." if means and not reason.endswith(".") else ""
    meaning = "" if worst.found is None else f"{worst.found.message.meaning} "
    level = f" at {worst.level}" if worst.found is None else ""
    clients = sorted({client for text in same for client in text.clients})
    about = f" for {partitions(names)}" if names else f" for {listed_some(clients, 'clients')}" if clients else ""
    return LoggedIncident(
        severity=_severity(worst),
        cluster_id=worst.cluster_id,
        start_us=start,
        end_us=_end_us(facts, worst.cluster_id, ids, last_us) if worst.kinds & _UNTIL_RESTART else last_us,
        broker_ids=tuple(ids),
        partitions=names,
        sentence=f"{meaning}{who} logged{level} {count}{span}{about}: {shortened(reason)}{means}",
        advice=worst.action,
        known_bug=_bug(facts, worst),
        figures={"lines": sum(text.lines for text in ordered)},
        places=tuple(place(text.row) for text in ordered[:10]),
        weight=float(lines),
        subject=worst.key,
    )


def _end_us(facts: Facts, cluster_id: str, broker_ids: Sequence[int], last_us: int) -> int | None:
    """Return when all brokers have started again after `last_us`, us. None if one has not within the logs."""
    starts = [facts.next_start((cluster_id, broker_id), last_us) for broker_id in broker_ids]
    return max((start for start in starts if start is not None), default=None) if None not in starts else None


def _bug(facts: Facts, text: LoudText) -> Bug | None:
    if text.found is None or not text.found.message.known_bug:
        return None
    versions = [facts.version((text.cluster_id, broker_id), text.first_us) for broker_id in text.broker_ids]
    return bug_of(text.found.message.known_bug, next(iter(versions), None))


assert set(_ORDER) == set(SEVERITIES)
