"""The report: one model, from which JSON, Markdown, HTML and SARIF are rendered.

Names and nesting are the contract for ``report.json`` (schema version 1). Keys that the contract does not name are
marked *(extra)*. Units are in the names: ``_ms`` milliseconds, ``_s`` seconds. Shares are between 0 and 1. Times are
ISO 8601, UTC, to the millisecond. Null means that there was nothing to work it out from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from highwater.pipelines.base.values import Count, Instant, Part, Share, Text
from highwater.pipelines.incidents.classes import IncidentClass
from highwater.pipelines.report.classes import VerdictClass
from highwater.pipelines.report.detail import Detail
from highwater.pipelines.report.measures import Blame, Interval, Latency, OperationsByKind, ShareMember, ThrottledClient

SCHEMA_VERSION: Literal[1] = 1
CLEAN: Literal["clean"] = "clean"
VIOLATED: Literal["violated"] = "violated"
INCONCLUSIVE: Literal["inconclusive"] = "inconclusive"

Verdict = Literal["clean", "violated", "inconclusive"]
Tier = Literal["T0", "T1", "T2", "T3"]


@dataclass(frozen=True)
class RunInfo:
    """Metadata of a run that the lake does not contain."""

    run_id: str  #: hash of inputs, code version and configuration
    code_version: str  #: version of highwater
    config_hash: str  #: hash of the effective configuration
    rules_fingerprint: str  #: components of highwater with their numbers
    problems: tuple[tuple[str, str], ...] = ()  #: file, and what is wrong with it and what to do


class Broker(Part):
    """One broker or controller whose logs were read. `UNKNOWN_BROKER` has the files without a known broker."""

    broker_id: int  #: its id; -1 if unknown
    cluster_id: Text  #: *(extra)* ``unknown`` where no line says it
    #: the release that the last version it logged is built on, and in brackets what it logged where that is more, as
    #: in ``2.4 (5.4.1-ccs)``; ``unknown (9.9)`` where it is of no known release
    kafka_version: Text | None
    mode: Text | None  #: ``zookeeper`` or ``kraft``, as last logged
    files: Count  #: distinct files; one that was read as it grew is one
    lines: Count  #: physical lines in them
    first_time: Instant | None  #: of its log records
    last_time: Instant | None  #: likewise
    tier: Tier  #: *(extra)* evidence tier of this broker
    #: what it logged at its last start, for the keys in `pipelines.report.small_tables.CONFIG_KEYS`
    config: dict[Text, Text | None]


class NotCheckable(Part):
    """A guarantee or measure that these logs cannot show."""

    rule_id: Text  #: the rule; ``delayed_operations`` for the replay of requests
    reason: Text  #: why not
    needs: Text  #: the command that would make the next ones show it
    #: *(extra)* what that costs, how long it lasts and how to undo it; null where it costs nothing
    cost: Text | None = None


class UnparsedTemplate(Part):
    """Unparsed records of one masked text."""

    template: Text  #: their text, numbers and ids masked
    logger: Text | None  #: that wrote them, where they name it
    count: Count  #: how many there are


class SourceRead(Part):
    """A file, or one of several sources within a file, and how it was read."""

    path: Text  #: as it was found
    layout: Text | None  #: conversion pattern of its records; null if it is not known
    around: tuple[Text, ...]  #: containers and frames around its records, the outermost first
    order: Text | None  #: in words, if its records were put in another order than the file's
    encoding: Text | None  #: that it was converted from; null if it is UTF-8
    excerpt: Text | None  #: why it is an excerpt, in words; null if nothing shows that lines were left out


class Coverage(Part):
    """How much of the logs was parsed. It covers the whole lake, whatever the time window."""

    lines: Count  #: log records (a stack trace belongs to the record above it)
    parsed: Count  #: of them, those that became rows or are known to carry nothing for the audit
    unparsed: Count  #: the others
    share_parsed: Share | None  #: parsed / (lines + missing); null without lines
    not_checkable: tuple[NotCheckable, ...]  #: what these logs cannot show
    top_unparsed: tuple[UnparsedTemplate, ...]  #: *(extra)* the most frequent shapes of unparsed records
    missing: Count = 0  #: *(extra)* minimum number of records that were logged and were not read: gold.holes
    #: *(extra)* files and what they are, by path, the first 1,000
    sources: tuple[SourceRead, ...] = ()


class RuleResult(Part):
    """Result of one correctness rule. It covers the whole lake, whatever the time window."""

    rule_id: Text  #: its name, as ``highwater explain`` takes it
    #: violated: it found a violation; inconclusive: a case is open, or the logs lack what it needs; clean
    verdict: Verdict
    checked: Count  #: facts that it judged
    cases: Count  #: violations that it found, those that follow from others included
    observations: Count = 0  #: *(extra)* legal but surprising things that it found
    open_cases: Count = 0  #: *(extra)* cases that these logs do not decide
    left_out: Count = 0  #: *(extra)* of all these, those that are only counted: the first 1,000 are shown
    reason: Text | None = None  #: *(extra)* why it is inconclusive, or not applicable
    is_new: bool | None = None  #: *(extra)* the previous run had another verdict; null: no previous run is known
    #: *(extra)* no: the evidence that it needs is there, and has nothing in it that the rule is about; such a rule is
    #: clean, and called *not applicable*
    applicable: bool = True


class ClusterVerdict(Part):
    """The verdict on one cluster."""

    cluster_id: Text  #: its name, or its id in the logs; ``unknown`` if no line shows it
    verdict: Verdict  #: of it alone
    tier: Tier  #: the lowest of its brokers
    inconclusive: tuple[Text, ...]  #: why nothing firm can be said of it


class Evidence(Part):
    """One raw log line."""

    file: Text  #: its path, as it was found
    line_no: int  #: from 1; 0 in a file that has no lines
    byte_offset: int  #: of its first byte in the decompressed file
    text: Text  #: its message, without time and logger; of a data file what it holds, in words
    time: Instant | None = None  #: *(extra)* when it was written, and by whom, where that is known
    broker_id: int | None = None  #: likewise
    #: *(extra)* up to the next record of the file, its last line end left out; null of a file's last record, and
    #: where the lines are too many to look it up
    byte_length: Count | None = None


class Finding(Part):
    """A violation, an observation, or an undecided case."""

    rule_id: Text  #: the rule that found it
    topic: Text | None  #: what it is about; null where it is about none, or several
    partition: int | None  #: likewise
    leader_epoch: int | None  #: likewise
    offset_start: int | None  #: offsets that it is about; the end is exclusive, null: no end is known
    offset_end: int | None  #: likewise
    time: Instant | None  #: when it happened, by the log lines
    brokers: tuple[int, ...]  #: that took part in it
    message: Text  #: what happened, in words
    #: in time order; the order across brokers rests on bounds of their clock difference: ``evidence_order``
    evidence: tuple[Evidence, ...]
    finding_id: Text  #: *(extra)* its key in ``gold.violations``
    known_bug: Text | None = None  #: *(extra)* JIRA or KIP of a bug of the running version that has this signature
    cause: Text | None = None  #: *(extra)* short name of the cause, if the rule has several
    records: Count | None = None  #: *(extra)* requests or records that it is about, where they are counted
    implied: tuple[Finding, ...] = ()  #: *(extra)* findings that follow from this one; they are listed only here
    fingerprint: Text = ""  #: *(extra)* the same in every run that has this finding, however its end or message change
    is_new: bool | None = None  #: *(extra)* the previous run did not have it; null: no previous run is known
    #: *(extra)* how far the clocks were apart that the order of evidence rests on; null where one broker wrote all of
    #: it
    evidence_order: Text | None = None
    cluster_id: Text | None = None  #: *(extra)* its cluster, where the report is of several; else null


class IncidentBug(Part):
    """A known bug that matches an incident."""

    id: Text  #: its JIRA, such as KAFKA-13091
    fixed_in: Text | None  #: the releases that first have its fix; null where none is known


class Incident(Part):
    """One incident that the logs show."""

    incident_id: Text  #: the same from run to run; its key in ``gold.incidents``
    kind: Text  #: kind of episode
    #: critical: records are lost, or clients could not write or read; major: the cluster was one fault away from
    #: that, or clients waited; minor: it went back by itself; info: someone did it on purpose
    severity: Literal["critical", "major", "minor", "info"]
    start_time: Instant  #: first instant that logs show
    end_time: Instant | None  #: last one; null: it lasts to the end of the logs
    broker_ids: tuple[int, ...]  #: brokers that it is about
    partitions: Count  #: how many partitions it is about
    topic_partitions: tuple[Text, ...]  #: their names, such as ``orders-4``: the first 20
    sentence: Text  #: what happened, in words
    advice: Text  #: what to do; empty where there is nothing to do
    caused_by: Text | None  #: the incident that brought it about; null where no line shows one
    known_bug: IncidentBug | None  #: a bug of the running version with this signature
    figures: dict[Text, float]  #: what was counted or measured; units last in the names
    evidence: tuple[Evidence, ...]  #: lines that show it, in order of time
    cluster_id: Text  #: *(extra)* its cluster
    is_new: bool | None = None  #: *(extra)* the previous run did not have it; null: no previous run is known
    #: harm to records and clients, the worst first: data_lost, guarantee_broken, unavailable (no reads or writes),
    #: writes_rejected, redundancy_lost, slow, remark
    class_: IncidentClass = Field(default="remark", alias="class")


class Headline(Part):
    """The worst effect, and what to do now."""

    #: class of an incident if the headline is about one, else of the verdict
    class_: IncidentClass | VerdictClass = Field(alias="class")
    text: tuple[Text, ...]  #: three lines: what and how much, why, what to do now
    amount: Text  #: how much, in words
    subject: Text  #: partitions with offsets, or brokers; empty if it has no single subject
    cause: Text  #: why, in words
    known_bug: Text | None  #: JIRA of a known bug of the running version with this signature
    action: Text  #: what to do now, with a command


#: Headline of a report before `pipelines.report.headline` fills it.
NO_HEADLINE = Headline.of({}, class_="clean", text=(), amount="", subject="", cause="", known_bug=None, action="")


class Topic(Part):
    """A topic that the logs show."""

    cluster_id: Text  #: ``unknown`` where no line says it
    topic: Text  #: its name


class InputFile(Part):
    """One file that was read."""

    file: Text  #: its path, as it was found
    sha256: Text  #: of its bytes as stored


class Provenance(Part):
    """Inputs and versions from which this report was made."""

    run_id: Text  #: *(extra)* the hash of it all
    code_version: Text  #: of highwater
    config_hash: Text  #: of the effective configuration
    rules_fingerprint: Text  #: components of highwater with their numbers
    inputs: tuple[InputFile, ...]  #: all files
    delta_versions: dict[Text, int]  #: of the lake's tables, by name
    run_before: Text | None = None  #: *(extra)* the audit that ``is_new`` compares with; null: there is none


class Window(Part):
    """The time window of the report. Requests count by arrival, findings by their own time."""

    since: Instant | None = None  #: from here on; null: no bound
    until: Instant | None = None  #: before this; null: no bound
    #: *(extra)* violations and cases left open that are not of the window, and that the verdict leaves out
    outside: tuple[Text, ...] = ()


class Report(Part):
    """The whole report."""

    schema_version: Literal[1] = SCHEMA_VERSION  #: of these names; it changes where one goes or means something else
    #: violated: a guarantee was broken, proven by lines; inconclusive: something points to it, or the logs lack too
    #: much; clean. Of several clusters the worst
    verdict: Verdict
    #: class of the verdict, the worst first: data_lost and guarantee_broken (violated), undecided (a case is open) and
    #: not_enough_evidence (inconclusive), clean
    verdict_class: VerdictClass = "clean"
    headline: Headline = NO_HEADLINE  #: the answer in three lines
    #: *(extra)* why the verdict is not firm; a violated verdict may have reasons, too
    inconclusive: tuple[Text, ...]
    #: the lowest of the brokers that have any log; controllers, and files of no broker, count if all are such
    tier: Tier
    #: *(extra)* by broker id; ``<cluster>/<broker id>`` where there are several clusters
    tier_by_broker: dict[Text, Tier]
    #: *(extra)* requests that arrived in it, and findings of its time or without a time, are reported; see notes
    window: Window
    brokers: tuple[Broker, ...]  #: all of them
    coverage: Coverage  #: how much of the logs was understood
    rules: tuple[RuleResult, ...] = ()  #: what became of each rule; of several clusters the worst, counts added up
    #: what happened, the most harmful first; in a window those that were under way in it
    incidents: tuple[Incident, ...] = ()
    violations: tuple[Finding, ...] = ()  #: roots only; findings that follow from them are in ``implied``
    observations: tuple[Finding, ...] = ()  #: legal, but good to know
    open_cases: tuple[Finding, ...] = ()  #: *(extra)* what may be a violation, and these logs do not decide it
    topics: tuple[Topic, ...] = ()  #: *(extra)* topics with logged leaders or ISRs; of all logs, the first 1,000
    operations: OperationsByKind  #: how they were answered, against Kafka's rules
    latency: Latency  #: of all requests, by kind
    slow_ms: int  #: *(extra)* what counts as slow in ``blame`` and ``timeline``
    blame: tuple[Blame, ...]  #: whom acks=all produces waited for
    blame_coordinator: tuple[Blame, ...]  #: *(extra)* whom coordinators' requests waited for
    timeline: tuple[Interval, ...]  #: acks=all produces by interval
    provenance: Provenance  #: what the report follows from
    notes: tuple[Text, ...]  #: *(extra)* what is left out, and how figures are meant
    problems: tuple[Text, ...]  #: *(extra)* input problems, one message each
    #: *(extra)* the verdict of each cluster that the report is of: in a window, of those with logs of it
    clusters: tuple[ClusterVerdict, ...] = ()
    #: *(extra)* what members of share groups were given and gave back, the first 100 by their groups
    share_members: tuple[ShareMember, ...] = ()
    #: *(extra)* clients whose requests quotas held back, the 100 that were held back longest
    throttled: tuple[ThrottledClient, ...] = ()
    #: what only the page shows; not in ``report.json``
    detail: Detail | None = Field(default=None, exclude=True, repr=False)
