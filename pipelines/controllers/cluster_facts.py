"""Facts about a cluster that the replay of each partition needs: failures, fences, versions, settings. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from highwater.pipelines.base.values import UNKNOWN_CLUSTER
from highwater.pipelines.cluster.premises import LEADER_CHANGE, STARTING, Premises
from highwater.pipelines.controllers.rows import once
from highwater.pipelines.controllers.unhandled import Handled, find_handled_failures, find_handled_fences
from highwater.pipelines.kafka.context import Contexts
from highwater.pipelines.kafka.controller_rows import EventRow, LineRef, RegistrationRow
from highwater.pipelines.kafka.releases import release_of

_KRAFT_ONLY: Final = frozenset(("broker_fenced", "broker_unfenced"))
_KRAFT: Final = "kraft"


@dataclass(frozen=True)
class ClusterFacts:
    """Failures, fences, versions and settings of all clusters. Sent to the Spark workers."""

    contexts: Contexts = field(default_factory=Contexts)  #: versions and configuration of the brokers
    #: of `EVENTS`, those that name no topic, by cluster, in the order of time
    events: Mapping[str, list[EventRow]] = field(default_factory=dict)
    #: those that name a topic and no partition, by (cluster, topic)
    topic_events: Mapping[tuple[str, str], list[EventRow]] = field(default_factory=dict)
    #: whether the cluster's controllers are of KRaft, by cluster
    kraft: Mapping[str, bool] = field(default_factory=dict)
    #: failures that a controller has dealt with, by cluster
    handled: Mapping[str, list[Handled]] = field(default_factory=dict)
    #: decoded steps of brokers' registrations, by cluster
    registrations: Mapping[str, list[RegistrationRow]] = field(default_factory=dict)

    def version(self, cluster_id: str) -> str | None:
        """Return the newest version that a broker of the cluster logged. A step that it allows is legal for all
        brokers.

        None if no broker logged a version, or if one logged an unknown release.
        """
        texts = {text for (cluster, _), text in self.contexts.versions.items() if cluster == cluster_id}
        releases = [release for text in texts if (release := release_of(text)) is not None]
        return max(releases, key=lambda release: release.newest).text if len(releases) == len(texts) > 0 else None


def collect_facts(premises: Premises) -> ClusterFacts:
    """Return the facts of all clusters of an audit."""
    starts = [
        (life.cluster_id, EventRow(life.time_us, life.broker_id, life.ref, life.event, detail=life.detail))
        for life in premises.lives
        if life.event == STARTING
    ]
    modes = [(life.cluster_id, life.mode) for life in premises.lives if life.mode is not None]
    nodes = (row for row in premises.records if row["node_id"] is not None)
    return build_facts(
        premises.contexts,
        [*premises.events, *starts],
        modes,
        collect_registration_rows(nodes, find_active_controllers(premises)),
    )


def find_active_controllers(premises: Premises) -> dict[tuple[str, int], int]:
    """Return the id of the active controller by (cluster, controller epoch), from the metadata log."""
    return {
        (row["cluster_id"], row["controller_epoch"]): row["leader"]
        for row in premises.records
        if row["record"] == LEADER_CHANGE and row["leader"] is not None and row["controller_epoch"] is not None
    }


def build_facts(
    contexts: Contexts,
    events: Iterable[tuple[str, EventRow]],
    modes: Iterable[tuple[str, str]],
    registrations: Mapping[str, list[RegistrationRow]],
) -> ClusterFacts:
    """Group facts by cluster.

    Args:
        contexts: configurations and versions of brokers.
        events: (cluster, event of `EVENTS`), without events of single partitions.
        modes: (cluster, mode) that brokers log at start.
        registrations: result of `collect_registration_rows`.
    """
    cluster_wide: dict[str, list[EventRow]] = defaultdict(list)
    of_topics: dict[tuple[str, str], list[EventRow]] = defaultdict(list)
    mode_names: dict[str, set[str]] = defaultdict(set)
    for cluster_id, mode in modes:
        mode_names[cluster_id].add(mode)
    kraft = {cluster_id: names == {_KRAFT} for cluster_id, names in mode_names.items()}
    for cluster_id, row in events:
        if row.topic is None:
            cluster_wide[cluster_id].append(row)
        else:
            of_topics[cluster_id, row.topic].append(row)
        if row.event in _KRAFT_ONLY:
            kraft.setdefault(cluster_id, True)
    for cluster_id in registrations:
        kraft.setdefault(cluster_id, True)
    by_cluster = {cluster_id: once(rows) for cluster_id, rows in cluster_wide.items()}
    handled: dict[str, list[Handled]] = {}
    for cluster_id in by_cluster.keys() | registrations.keys():
        if cluster_id == UNKNOWN_CLUSTER:
            continue
        failures = [] if kraft.get(cluster_id) else find_handled_failures(by_cluster.get(cluster_id, ()))
        handled[cluster_id] = [*failures, *find_handled_fences(registrations.get(cluster_id, ()))]
    topics = {key: once(rows) for key, rows in of_topics.items()}
    return ClusterFacts(contexts, by_cluster, topics, kraft, handled, dict(registrations))


def collect_registration_rows(
    rows: Iterable[Mapping[str, Any]], active: Mapping[tuple[str, int], int]
) -> dict[str, list[RegistrationRow]]:
    """Return steps of brokers' registrations, by cluster, from rows of `silver.metadata_records` about nodes.

    A BrokerRegistrationChangeRecord contains only the state after the step. The step follows from the record before it
    in the same copy of the log. Without that record the step is left out.

    Args:
        rows: rows of `silver.metadata_records`.
        active: the active controller by (cluster, controller epoch).
    """
    copies: dict[tuple[str, int, int], dict[int, Mapping[str, Any]]] = defaultdict(dict)
    for row in rows:
        copies[row["cluster_id"], row["broker_id"], row["node_id"]].setdefault(row["offset"], row)
    steps: dict[str, list[RegistrationRow]] = defaultdict(list)
    for (cluster_id, broker_id, node_id), by_offset in sorted(copies.items()):
        before: Mapping[str, Any] | None = None
        for offset in sorted(by_offset):
            row = by_offset[offset]
            change = _change(before, row)
            before = row
            if change is None or row["source"] != "log" or row["time_us"] is None:
                continue
            ref = LineRef(row["file_id"], row["byte_offset"], row["record_no"])
            writer = active.get((cluster_id, row["controller_epoch"]))
            step = RegistrationRow(row["time_us"], broker_id, ref, node_id, change, row["node_epoch"], offset, writer)
            steps[cluster_id].append(step)
    return dict(steps)


def _change(before: Mapping[str, Any] | None, row: Mapping[str, Any]) -> str | None:
    named = {
        "RegisterBrokerRecord": "registered",
        "UnregisterBrokerRecord": "unregistered",
        "FenceBrokerRecord": "fenced",
        "UnfenceBrokerRecord": "unfenced",
    }.get(row["record"])
    if named is not None or before is None:
        return named
    if before["fenced"] is not None and row["fenced"] is not None and before["fenced"] != row["fenced"]:
        return "fenced" if row["fenced"] else "unfenced"
    if row["in_controlled_shutdown"] and before["in_controlled_shutdown"] is False:
        return "controlled_shutdown"
    return None
