"""The report: one model, from which JSON, Markdown, HTML and SARIF are rendered.

Names and nesting are the contract for ``report.json`` (schema version 1). Keys that the contract does not name are
marked *(extra)*. Units are in the names: ``_ms`` milliseconds, ``_s`` seconds. Shares are between 0 and 1. Times are
ISO 8601, UTC, to the millisecond. Null means that there was nothing to work it out from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from pipelines.base.values import Count, Instant, Part, Share, Text
from pipelines.report.detail import Detail
from pipelines.report.measures import Blame, Interval, Latency, OperationsByKind, ShareMember, ThrottledClient

SCHEMA_VERSION: Literal[1] = 1
CLEAN: Literal["clean"] = "clean"
VIOLATED: Literal["violated"] = "violated"
INCONCLUSIVE: Literal["inconclusive"] = "inconclusive"

Verdict = Literal["clean", "violated", "inconclusive"]
Tier = Literal["T0", "T1", "T2", "T3"]


@dataclass(frozen=True)
class RunInfo:
    """What the collecting stage cannot read from the lake.

    Attributes:
        run_id: hash of inputs, code version and configuration.
        code_version: version of highwater.
        config_hash: hash of the effective configuration.
        rules_fingerprint: hash of grammars and replay rules.
        problems: file, and what is wrong with it and what to do.
    """

    run_id: str
    code_version: str
    config_hash: str
    rules_fingerprint: str
    problems: tuple[tuple[str, str], ...] = ()


class Broker(Part):
    """One broker or controller node whose logs were read; `UNKNOWN_BROKER` holds files that nothing assigns.

    Attributes:
        broker_id: its id; -1 where nothing tells it.
        cluster_id: *(extra)* ``unknown`` where no line says it.
        kafka_version: the release that the last version it logged is built on, and in brackets what it logged where
            that is more, as in ``2.4 (5.4.1-ccs)``; ``unknown (9.9)`` where it is of no known release.
        mode: ``zookeeper`` or ``kraft``, as last logged.
        files: distinct files; one that was read as it grew is one.
        lines: physical lines in them.
        first_time, last_time: of its log records.
        tier: *(extra)* evidence tier of this broker.
        config: what it logged at its last start, for the keys in `pipelines.report.queries.CONFIG_KEYS`.
    """

    broker_id: int
    cluster_id: Text
    kafka_version: Text | None
    mode: Text | None
    files: Count
    lines: Count
    first_time: Instant | None
    last_time: Instant | None
    tier: Tier
    config: dict[Text, Text | None]


class NotCheckable(Part):
    """Something these logs cannot show.

    Attributes:
        rule_id: the rule; ``delayed_operations`` for the replay of requests.
        reason: why not.
        needs: the command that would make the next ones show it.
        cost: *(extra)* what that costs, how long it lasts and how to undo it; null where it costs nothing.
    """

    rule_id: Text
    reason: Text
    needs: Text
    cost: Text | None = None


class UnparsedTemplate(Part):
    """Unparsed records of one shape.

    Attributes:
        template: their text, numbers and ids masked.
        logger: that wrote them, where they name it.
        count: how many there are.
    """

    template: Text
    logger: Text | None
    count: Count


class Coverage(Part):
    """How much of the logs was understood. Of the whole lake, whatever the time window.

    Attributes:
        lines: log records (a stack trace belongs to the record above it).
        parsed: of them, those that became rows or are known to carry nothing for the audit.
        unparsed: the others.
        share_parsed: parsed / (lines + missing); null without lines.
        not_checkable: what these logs cannot show.
        top_unparsed: *(extra)* the most frequent shapes of unparsed records.
        missing: *(extra)* records that must have been logged and were not read, at least so many: gold.holes.
    """

    lines: Count
    parsed: Count
    unparsed: Count
    share_parsed: Share | None
    not_checkable: tuple[NotCheckable, ...]
    top_unparsed: tuple[UnparsedTemplate, ...]
    missing: Count = 0


class RuleResult(Part):
    """What became of one correctness rule. Of the whole lake, whatever the time window.

    Attributes:
        rule_id: its name, as ``highwater explain`` takes it.
        verdict: violated: it found a violation; inconclusive: a case is open, or the logs lack what it needs; clean.
        checked: facts that it judged.
        cases: violations that it found, those that follow from others included.
        observations: *(extra)* legal but surprising things that it found.
        open_cases: *(extra)* cases that these logs do not decide.
        left_out: *(extra)* of all these, those that are only counted: the first 1,000 are shown.
        reason: *(extra)* why it is inconclusive, or not applicable.
        is_new: *(extra)* the run before came to another verdict; null: there is no run before.
        applicable: *(extra)* no: the evidence that it needs is there, and has nothing in it that the rule is about;
            such a rule is clean, and called *not applicable*.
    """

    rule_id: Text
    verdict: Verdict
    checked: Count
    cases: Count
    observations: Count = 0
    open_cases: Count = 0
    left_out: Count = 0
    reason: Text | None = None
    is_new: bool | None = None
    applicable: bool = True


class ClusterVerdict(Part):
    """What the report comes to for one cluster.

    Attributes:
        cluster_id: its name, or the id that lines tell; ``unknown`` where nothing says it.
        verdict: of it alone.
        tier: the lowest of its brokers.
        inconclusive: why nothing firm can be said of it.
    """

    cluster_id: Text
    verdict: Verdict
    tier: Tier
    inconclusive: tuple[Text, ...]


class Evidence(Part):
    """One raw log line.

    Attributes:
        file: its path, as it was found.
        text: its message, without time and logger; of a data file what it holds, in words.
        line_no: from 1; 0 in a file that has no lines.
        byte_offset: of its first byte in the decompressed file.
        time, broker_id: *(extra)* when it was written, and by whom, where that is known.
        byte_length: *(extra)* up to the next record of the file, its last line end left out; null of a file's last
            record, and where the lines are too many to look it up.
    """

    file: Text
    line_no: int
    byte_offset: int
    text: Text
    time: Instant | None = None
    broker_id: int | None = None
    byte_length: Count | None = None


class Finding(Part):
    """A violation, an observation, or a case left open.

    Attributes:
        rule_id: the rule that found it.
        topic, partition, leader_epoch: what it is about; null where it is about none, or several.
        offset_start, offset_end: offsets that it is about; the end is exclusive, null: no end is known.
        time: when it happened, as lines tell.
        brokers: that took part in it.
        message: what happened, in words.
        evidence: in time order; of several brokers by their clocks, as far as bounds tell how they differed.
        finding_id: *(extra)* its key in ``gold.violations``.
        known_bug: *(extra)* JIRA or KIP of a bug of the running version that has this signature.
        cause: *(extra)* short name of the cause, where the rule tells several apart.
        records: *(extra)* requests or records that it is about, where they are counted.
        implied: *(extra)* findings that follow from this one; they stand nowhere else.
        fingerprint: *(extra)* the same in every run that has this finding, however its end or message change.
        is_new: *(extra)* the run before did not have it; null: there is no run before.
        cluster_id: *(extra)* its cluster, where the report is of several; else null.
        evidence_order: *(extra)* how far the clocks were apart that the order of evidence rests on; null where one
            broker wrote all of it.
    """

    rule_id: Text
    topic: Text | None
    partition: int | None
    leader_epoch: int | None
    offset_start: int | None
    offset_end: int | None
    time: Instant | None
    brokers: tuple[int, ...]
    message: Text
    evidence: tuple[Evidence, ...]
    finding_id: Text
    known_bug: Text | None = None
    cause: Text | None = None
    records: Count | None = None
    implied: tuple[Finding, ...] = ()
    fingerprint: Text = ""
    is_new: bool | None = None
    evidence_order: Text | None = None
    cluster_id: Text | None = None


class IncidentBug(Part):
    """A known bug whose signature an incident has.

    Attributes:
        id: its JIRA, such as KAFKA-13091.
        fixed_in: the releases that first have its fix; null where none is known.
    """

    id: Text
    fixed_in: Text | None


class Incident(Part):
    """One episode that logs tell of.

    Attributes:
        incident_id: the same from run to run; its key in ``gold.incidents``.
        kind: kind of episode.
        severity: critical: records are lost, or clients could not write or read; major: the cluster was one fault away
            from that, or clients waited; minor: it went back by itself; info: someone did it on purpose.
        start_time: first instant that logs show.
        end_time: last one; null: it lasts to the end of the logs.
        broker_ids: brokers that it is about.
        partitions: how many partitions it is about.
        topic_partitions: their names, such as ``orders-4``: the first 20.
        sentence: what happened, in words.
        advice: what to do; empty where there is nothing to do.
        caused_by: the incident that brought it about; null where no line shows one.
        known_bug: a bug of the running version with this signature.
        figures: what was counted or measured; units last in the names.
        evidence: lines that show it, in order of time.
        cluster_id: *(extra)* its cluster.
        is_new: *(extra)* the run before did not have it; null: there is no run before.
    """

    incident_id: Text
    kind: Text
    severity: Literal["critical", "major", "minor", "info"]
    start_time: Instant
    end_time: Instant | None
    broker_ids: tuple[int, ...]
    partitions: Count
    topic_partitions: tuple[Text, ...]
    sentence: Text
    advice: Text
    caused_by: Text | None
    known_bug: IncidentBug | None
    figures: dict[Text, float]
    evidence: tuple[Evidence, ...]
    cluster_id: Text
    is_new: bool | None = None


class Topic(Part):
    """A topic that the logs tell of.

    Attributes:
        cluster_id: ``unknown`` where no line says it.
        topic: its name.
    """

    cluster_id: Text
    topic: Text


class InputFile(Part):
    """One file that was read.

    Attributes:
        file: its path, as it was found.
        sha256: of its bytes as stored.
    """

    file: Text
    sha256: Text


class Provenance(Part):
    """What this report follows from.

    Attributes:
        run_id: *(extra)* the hash of it all.
        code_version: of highwater.
        config_hash: of the effective configuration.
        rules_fingerprint: of grammars and replay rules.
        inputs: all files.
        delta_versions: of the lake's tables, by name.
        run_before: *(extra)* the audit that ``is_new`` compares with; null: there is none.
    """

    run_id: Text
    code_version: Text
    config_hash: Text
    rules_fingerprint: Text
    inputs: tuple[InputFile, ...]
    delta_versions: dict[Text, int]
    run_before: Text | None = None


class Window(Part):
    """Which arrivals, and findings of which time, the report is about.

    Attributes:
        since: from here on; null: no bound.
        until: before this; null: no bound.
        outside: *(extra)* violations and cases left open that are not of the window, and that the verdict leaves out.
    """

    since: Instant | None = None
    until: Instant | None = None
    outside: tuple[Text, ...] = ()


class Report(Part):
    """The whole report.

    Attributes:
        schema_version: of these names; it changes where one goes or means something else.
        verdict: violated: a guarantee was broken, proven by lines; inconclusive: something points to it, or the logs
            lack too much; clean. Of several clusters the worst.
        brokers: all of them.
        coverage: how much of the logs was understood.
        rules: what became of each rule; of several clusters the worst, counts added up.
        incidents: what happened, the most harmful first; in a window those that were under way in it.
        violations: roots only; what follows from them stands in ``implied``.
        observations: legal, but good to know.
        operations: how they were answered, against Kafka's rules.
        latency: of all requests, by kind.
        timeline: acks=all produces by interval.
        provenance: what the report follows from.
        inconclusive: *(extra)* why nothing firm can be said; may hold reasons beside a violated verdict too.
        tier: the lowest of the brokers that have any log; controllers, and files of no broker, count if all are such.
        tier_by_broker: *(extra)* by broker id; ``<cluster>/<broker id>`` where there are several clusters.
        window: *(extra)* what arrived in it, and findings of its time (those without one stay), are told; see notes.
        open_cases: *(extra)* what may be a violation, and these logs do not decide it.
        topics: *(extra)* those whose leaders or ISRs the logs tell; of all logs, the first 1,000.
        blame: whom acks=all produces waited for.
        blame_coordinator: *(extra)* whom coordinators' requests waited for.
        slow_ms: *(extra)* what counts as slow in ``blame`` and ``timeline``.
        share_members: *(extra)* what members of share groups were given and gave back, the first 100 by their groups.
        throttled: *(extra)* clients whose requests quotas held back, the 100 that were held back longest.
        notes: *(extra)* what is left out, and how figures are meant.
        problems: *(extra)* input problems, one message each.
        clusters: *(extra)* the verdict of each cluster that the report is of: in a window, of those with logs of it.
        detail: what only the page shows; not in ``report.json``.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    verdict: Verdict
    inconclusive: tuple[Text, ...]
    tier: Tier
    tier_by_broker: dict[Text, Tier]
    window: Window
    brokers: tuple[Broker, ...]
    coverage: Coverage
    rules: tuple[RuleResult, ...] = ()
    incidents: tuple[Incident, ...] = ()
    violations: tuple[Finding, ...] = ()
    observations: tuple[Finding, ...] = ()
    open_cases: tuple[Finding, ...] = ()
    topics: tuple[Topic, ...] = ()
    operations: OperationsByKind
    latency: Latency
    slow_ms: int
    blame: tuple[Blame, ...]
    blame_coordinator: tuple[Blame, ...]
    timeline: tuple[Interval, ...]
    provenance: Provenance
    notes: tuple[Text, ...]
    problems: tuple[Text, ...]
    clusters: tuple[ClusterVerdict, ...] = ()
    share_members: tuple[ShareMember, ...] = ()
    throttled: tuple[ThrottledClient, ...] = ()
    detail: Detail | None = Field(default=None, exclude=True, repr=False)
