"""What incidents are detected from: rows of small tables, and episodes that tables of any size are added up to. Pure.

Rows are dicts; times are microseconds since the epoch under the names of their columns. Every list is in order of time.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from highwater.pipelines.base.values import UNKNOWN_CLUSTER
from highwater.pipelines.incidents.kind import Signature
from highwater.pipelines.incidents.loud_text import LoudText, loud_texts
from highwater.pipelines.incidents.witnesses import expiries, losses, losses_by_peer
from highwater.pipelines.incidents.words import nodes
from highwater.pipelines.timelines.broker import BrokerTimelines, Evidence
from highwater.pipelines.timelines.offsets import clock_offsets, on_one_clock
from highwater.pipelines.timelines.processes import OwnLines
from highwater.pipelines.timelines.rows import Node as Node
from highwater.pipelines.timelines.rows import Place as Place
from highwater.pipelines.timelines.rows import Row as Row
from highwater.pipelines.timelines.rows import Rows as Rows
from highwater.pipelines.timelines.rows import node as node
from highwater.pipelines.timelines.rows import place as place

#: Timeout after which others act, by the reason that `pipelines.timelines` gives.
_TIMEOUTS = {
    "fenced": "broker.session.timeout.ms",
    "removed": "zookeeper.session.timeout.ms",
    "replaced": "controller.quorum.fetch.timeout.ms",
}
#: Kinds of files of one logger: starts and ends of processes are not in them.
_OF_LOGGERS = ("state-change", "controller", "kafka-request", "log-cleaner")


@dataclass(frozen=True)
class Facts:
    """All rows that the detection of incidents reads from a lake."""

    files: Rows = ()  #: `bronze.log_files`: cluster_id, broker_id, kind, path, first_time, last_time, excerpt
    lifecycle: Rows = ()  #: rows of `silver.broker_lifecycle` with a broker
    controller_events: Rows = ()  #: rows of `silver.controller_events`, without events of single topics and partitions
    availability: Rows = ()  #: rows of `gold.availability`
    failovers: Rows = ()  #: rows of `gold.failovers`
    absences: Rows = ()  #: rows of `gold.isr_absences`
    findings: Rows = ()  #: rows of `gold.violations`
    finding_places: Rows = ()  #: finding_id, file_id, byte_offset of `gold.evidence`
    configs: Rows = ()  #: last value of each key per broker: cluster_id, broker_id, key, value
    #: last override of each key that `questions.topic_settings` asks for, of each topic whose overrides a line lists:
    #: cluster_id, topic, key, value (None: the topic has no override)
    topic_configs: Rows = ()
    #: stretches without a line of a broker: cluster_id, broker_id, start_time, end_time, share_before (of the steps in
    #: the ten seconds before, those with a line), written_after_us (steps with a line in the ten seconds after),
    #: moved_before (partitions of the broker got another leader in the seconds before it), is_boot (a process begins
    #: with the line after it), steady_us (how long the broker wrote steadily), steady_silences (silences after that)
    silences: Rows = ()
    #: when the process began whose first line is the first of a broker
    first_boots: Mapping[Node, int] = field(default_factory=dict)
    #: cluster_id, broker_id, first_time, last_time, file_id, byte_offset (of the last line); seconds_before (of the
    #: ten up to it, those with a line); has_broker_lines, has_controller_lines (classes that only a broker, or only a
    #: KRaft controller, has)
    last_lines: Rows = ()
    #: episodes of lines that a `Signature` matches: signature, cluster_id, broker_id, key, first_time, last_time,
    #: line_count, partitions (list), file_id, byte_offset (of the first), last_file_id, last_byte_offset, message (of
    #: the first), last_message
    remarks: Rows = ()
    #: kinds that need the lines of a signature, by its name
    kinds_by_signature: Mapping[str, Sequence[str]] = field(default_factory=dict)
    #: lines at WARN or above by text, broker and step of time: cluster_id, level, logger, signature (the first that
    #: matches; null if there is none), template, broker_id, first_time, last_time, line_count, and message, file_id and
    #: byte_offset of the first line
    loud: Rows = ()
    #: lines of other programs that show how a process ended: cluster_id, broker_id, time (of the log's line before, if
    #: the line has none), text, exit_file_id, byte_offset
    exits: Rows = ()
    #: long pauses of JVMs by their GC logs: cluster_id, broker_id, start_time, end_time, text
    pauses: Rows = ()
    #: acks=all produces by second and closing replica: cluster_id, second, replica_id, role, operations,
    #: slow_wait_ms, score_ms (each wait cut at a second), wait_ms_max, completed_us, leader_ids, topics
    waits: Rows = ()
    #: lines of controllers about reassignments of single partitions: cluster_id, topic, partition, time, replicas,
    #: detail, file_id, byte_offset
    reassignment_lines: Rows = ()
    #: states of partitions whose replicas were moved, as `questions.assignments` describes them
    assignments: Rows = ()
    #: last state of each partition that is led then: cluster_id, topic, partition, leader, isr, replicas, begin_by_time
    last_states: Rows = ()
    #: topics that were deleted and created again: cluster_id, topic, deleted_time, created_time, partitions, file_id,
    #: byte_offset, created_file_id, created_byte_offset
    topics_again: Rows = ()
    #: episodes of answers with an error: cluster_id, broker_id, api, error_code, first_time, last_time, answers,
    #: partitions (list), client_ids (list), file_id, byte_offset
    errors: Rows = ()
    #: episodes of throttled requests: cluster_id, client_id, is_logged (else the times are measured), first_time,
    #: last_time, requests, total_ms, longest_ms, broker_ids (list)
    throttled: Rows = ()
    #: episodes of records of share groups that were delivered again as locks on them had run out: cluster_id, group_id,
    #: first_time, last_time, records, members (how many had them), broker_ids (list)
    locks_expired: Rows = ()
    clocks: Rows = ()  #: rows of `gold.clock_bounds`
    #: offsets from the controllers' clocks, microseconds, positive if ahead: times of rows are corrected by it
    clock_offsets: Mapping[Node, int] = field(default_factory=dict)
    #: arrival of the first produce that logs show of each cluster
    first_produces: Mapping[str, int] = field(default_factory=dict)
    ends: Mapping[str, int] = field(default_factory=dict)  #: last instant of the logs of each cluster

    @cached_property
    def _configs(self) -> dict[tuple[str, int, str], str]:
        return {(row["cluster_id"], row["broker_id"], row["key"]): row["value"] for row in self.configs}

    def config(self, node: Node, key: str) -> str | None:
        """Return the last value of a broker setting that the broker logged. None if it logged none."""
        return self._configs.get((*node, key))

    @cached_property
    def _topic_configs(self) -> dict[tuple[str, str, str], str | None]:
        return {(row["cluster_id"], row["topic"], row["key"]): row["value"] for row in self.topic_configs}

    def topic_setting(self, cluster_id: str, topic: str, key: str) -> str | None:
        """Return the last value of a setting of a topic. None if no line shows it, or if lines of brokers disagree."""
        place = (cluster_id, topic, key)
        override = self._topic_configs.get(place)
        if override is not None or place not in self._topic_configs:
            return override
        of_brokers = {
            value for (cluster, _, name), value in self._configs.items() if (cluster, name) == (cluster_id, key)
        }
        return min(of_brokers) if len(of_brokers) == 1 else None

    @cached_property
    def controllers(self) -> frozenset[Node]:
        """Return (cluster, id) of nodes that are controllers only, by their configuration or, if unknown, by their
        lines.

        Dedicated KRaft controllers lead no partition, serve no client, and write little.
        """
        replicas = {(cluster_id, broker_id) for (cluster_id, _), ids in self.replicas.items() for broker_id in ids}
        known = replicas | {
            (row["cluster_id"], row["subject_broker_id"])
            for row in self.controller_events
            if row["event"] in ("broker_registered", "broker_fenced", "broker_unfenced", "broker_failed")
        }
        by_lines = {
            node(row) for row in self.last_lines if row.get("has_controller_lines") and not row.get("has_broker_lines")
        }
        roles = {
            (row["cluster_id"], row["broker_id"]): row["value"].strip("[] ")
            for row in self.configs
            if row["key"] == "process.roles" and row["value"]
        }
        by_config = {of_node for of_node, value in roles.items() if value == "controller"}
        return frozenset(by_config | (by_lines - known - roles.keys()))

    @cached_property
    def voters(self) -> dict[str, frozenset[int]]:
        """Return the ids in controller.quorum.voters by cluster. Clusters whose nodes disagree are left out."""
        settings: dict[str, set[frozenset[int]]] = defaultdict(set)
        for row in self.configs:
            if row["key"] == "controller.quorum.voters" and (
                ids := re.findall(r"(?<![\w.-])(\d+)@", row["value"] or "")
            ):
                settings[row["cluster_id"]].add(frozenset(map(int, ids)))
        return {cluster_id: min(values) for cluster_id, values in settings.items() if len(values) == 1}

    def named(self, cluster_id: str, ids: Collection[int]) -> str:
        """Return the names of nodes by their roles: ``brokers 1 and 2 and controller 4``."""
        controllers = {broker_id for broker_id in ids if (cluster_id, broker_id) in self.controllers}
        return nodes(set(ids) - controllers, controllers)

    @cached_property
    def brokers(self) -> BrokerTimelines:
        """Return the states of all nodes over time: running, stopped, dead, silent."""
        return BrokerTimelines(
            Evidence(
                lifecycle=sorted([*self.lifecycle, *expiries(self.remarks)], key=lambda row: row["time"]),
                controller_events=self.controller_events,
                silences=self.silences,
                last_lines=self.last_lines,
                first_boots=self.first_boots,
                own_lines=self._own_lines,
                losses=losses(self.remarks),
                own_losses=losses_by_peer(self.remarks),
                exits=self.exits,
                controllers=self.controllers,
                ends=self.ends,
                silent_us=self._silent_us,
            )
        )

    @cached_property
    def _own_lines(self) -> dict[Node, OwnLines]:
        times: dict[Node, list[int]] = defaultdict(list)
        whole = [row for row in self.files if row.get("excerpt") is None and row.get("kind") not in _OF_LOGGERS]
        without_starts = {*map(node, self.files)} - {*map(node, whole)}
        for row in (*self.last_lines, *self.files):
            if row["broker_id"] is not None:
                both = row.get("first_time"), row.get("last_time")
                times[node(row)] += [time for time in both if time is not None]
        return {
            of_node: OwnLines(min(known), max(known), self.is_excerpt(of_node), of_node not in without_starts)
            for of_node, known in times.items()
            if known
        }

    def _silent_us(self, reason: str, cluster_id: str) -> int:
        """Return how long a node is at least out of contact until others have it fenced or removed, us. 0 if unknown.

        A node sends three heartbeats or fetches per timeout.
        """
        key = _TIMEOUTS[reason]
        values = {value for (cluster, _, name), value in self._configs.items() if (cluster, name) == (cluster_id, key)}
        value = min(values) if len(values) == 1 else ""
        return int(value) * 1000 * 2 // 3 if value and value.isdigit() else 0

    @cached_property
    def _of_excerpts(self) -> frozenset[Node]:
        excerpts = {node(row) for row in self.files if row.get("excerpt") is not None}
        return frozenset(excerpts - {node(row) for row in self.files if row.get("excerpt") is None})

    def is_excerpt(self, broker: Node) -> bool:
        """Return True if lines were left out of each file of a broker. A missing line then proves nothing."""
        return broker in self._of_excerpts

    def has_lines(self, broker: Node) -> bool:
        """Return True if a file of a broker's own is here."""
        return broker in self._own_lines

    @cached_property
    def joined(self) -> dict[Node, int]:
        """Return when each replica last came back into an in-sync set, microseconds."""
        times: dict[Node, int] = {}
        for row in self.absences:
            of_node = row["cluster_id"], row["replica_id"]
            if row["ended"] in ("joined", "elected"):
                times[of_node] = max(times.get(of_node, 0), row["back_time"])
        return times

    @cached_property
    def _versions(self) -> dict[Node, list[tuple[int, str]]]:
        versions: dict[Node, list[tuple[int, str]]] = defaultdict(list)
        for row in self.lifecycle:
            if row["kafka_version"] is not None:
                versions[row["cluster_id"], row["broker_id"]].append((row["time"], row["kafka_version"]))
        for row in self.files:
            if row["kafka_version"] is not None and row["broker_id"] is not None and row["first_time"] is not None:
                versions[row["cluster_id"], row["broker_id"]].append((row["first_time"], row["kafka_version"]))
        return {node: sorted(those) for node, those in versions.items()}

    def version(self, node: Node, time_us: int) -> str | None:
        """Return the Kafka release that a broker ran at a time (us), as logged. None if no line shows it."""
        known = self._versions.get(node, [])
        before = [text for time, text in known if time <= time_us]
        return before[-1] if before else known[0][1] if known else None

    @cached_property
    def replicas(self) -> dict[tuple[str, str], frozenset[int]]:
        """Return all replica ids that lines show as in-sync, by (cluster, partition name such as ``orders-4``)."""
        replicas: dict[tuple[str, str], set[int]] = defaultdict(set)
        for row in self.absences:
            replicas[row["cluster_id"], partition_name(row)] |= {row["replica_id"], *row["isr"]}
        for row in self.failovers:
            replicas[row["cluster_id"], partition_name(row)] |= {row["old_leader"], *(row["isr_before"] or ())}
        return {partition: frozenset(ids) for partition, ids in replicas.items()}

    @cached_property
    def texts(self) -> list[LoudText]:
        """Return lines at WARN or above by text, with their entries of the message catalogue."""
        return loud_texts(self.loud)

    @cached_property
    def loud_texts(self) -> list[LoudText]:
        """Return lines at WARN or above whose text matches no `Signature` of an incident."""
        return [text for text in self.texts if text.signature is None]

    def remarked(self, *signatures: Signature) -> list[Row]:
        """Return rows of `remarks` (matched log lines) whose pattern is one of these signatures."""
        names = {signature.name for signature in signatures}
        return [row for row in self.remarks if row["signature"] in names]

    def remarked_by_brokers(self, *signatures: Signature) -> list[Row]:
        """Return rows of `remarks` that match one of these signatures. Lines of unknown brokers are left out."""
        return [row for row in self.remarked(*signatures) if row["broker_id"] is not None]

    def longest_pause(self, broker: Node, start_us: int, end_us: int) -> Row | None:
        """Return the longest pause of a broker's JVM within a span, cut to it. None if no GC log shows one."""
        cut = [
            {**row, "start_time": max(row["start_time"], start_us), "end_time": min(row["end_time"], end_us)}
            for row in self.pauses
            if node(row) == broker and row["start_time"] < end_us and row["end_time"] > start_us
        ]
        return max(cut, key=lambda row: row["end_time"] - row["start_time"], default=None)

    def life(self, broker: Node, *events: str) -> list[Row]:
        """Return rows of `silver.broker_lifecycle` of one broker with one of these events."""
        return [row for row in self.lifecycle if row["event"] in events and node(row) == broker]

    def next_start(self, broker: Node, after_us: int) -> int | None:
        """Return when a broker next logs that it has started, us since the epoch. None if no line shows it."""
        ups = (row["time"] for row in self.life(broker, "started") if row["time"] > after_us)
        return min(ups, default=None)

    def places_of(self, *finding_ids: str) -> tuple[Place, ...]:
        """Return file id and byte offset of the lines that prove violations or observations, by their ids."""
        return tuple(place(row) for finding_id in finding_ids for row in self._finding_places.get(finding_id, ()))

    @cached_property
    def _finding_places(self) -> dict[str, list[Row]]:
        places: dict[str, list[Row]] = defaultdict(list)
        for row in self.finding_places:
            places[row["finding_id"]].append(row)
        return places


def corrected(facts: Facts) -> Facts:
    """Return facts with times corrected for brokers whose clocks are wrong."""
    offsets = clock_offsets(facts.lifecycle, facts.controller_events, facts.failovers)
    if not offsets:
        return facts
    changes: dict[str, Any] = {"clock_offsets": offsets}
    for each in fields(facts):
        value = getattr(facts, each.name)
        if isinstance(value, list) and all("cluster_id" in row for row in value):
            changes[each.name] = on_one_clock(value, offsets)
    for name in ("lifecycle", "controller_events", "exits"):
        changes[name] = sorted(changes.get(name, ()), key=lambda row: row["time"])
    first_boots = {of_node: time - offsets.get(of_node, 0) for of_node, time in facts.first_boots.items()}
    return replace(facts, **changes, ends=logs_end(changes.get("files", ())), first_boots=first_boots)


def logs_end(files: Rows) -> dict[str, int]:
    """Return the last time in the logs of each cluster, us since the epoch."""
    ends: dict[str, int] = {}
    for row in files:
        if row["last_time"] is not None:
            cluster_id = row["cluster_id"] or UNKNOWN_CLUSTER
            ends[cluster_id] = max(ends.get(cluster_id, row["last_time"]), row["last_time"])
    return ends


def boots_apart(rows: Rows) -> tuple[Rows, dict[Node, int]]:
    """Return gaps between log lines, and first lines' times (us) by node, of the rows of `questions.silences`."""
    first_boots = {node(row): row["end_time"] for row in rows if row["start_time"] is None}
    return [row for row in rows if row["start_time"] is not None], first_boots


def partition_name(row: Row) -> str:
    """Return topic and partition of a row as ``orders-4``."""
    return f"{row['topic']}-{row['partition']}"
