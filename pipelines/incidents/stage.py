"""Writes ``gold.incidents``. The driver queries the tables with DuckDB, which aggregates in place, without Spark."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.config import Config
from highwater.pipelines.base.values import UNKNOWN_CLUSTER
from highwater.pipelines.bronze.process_files import GC_PAUSE, writer_of
from highwater.pipelines.bronze.subjects import Subject, is_subject, subjects, with_names
from highwater.pipelines.incidents import questions
from highwater.pipelines.incidents.facts import Facts, Rows, boots_apart, corrected, logs_end
from highwater.pipelines.incidents.incident import EVIDENCE_MAX, NAMED_MAX, LoggedIncident
from highwater.pipelines.incidents.kind import kinds_by_signature
from highwater.pipelines.incidents.kinds import KINDS
from highwater.pipelines.incidents.kinds.controllers import controller_timeline
from highwater.pipelines.incidents.story import incidents_of
from highwater.pipelines.kafka.context import UNCLEAN_ELECTION
from highwater.pipelines.kafka.replayed import drop_past
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.lake_reads import open_reader
from highwater.pipelines.lake.lines import Line, Place, find_lines
from highwater.pipelines.lake.reader import LakeReader
from highwater.pipelines.timelines.broker import rows_of as timeline_rows
from highwater.pipelines.timelines.controller import rows_of as controller_rows
from highwater.pipelines.timelines.rows import Node, Row, node
from highwater.schemas import bronze, silver
from highwater.schemas.audit import EVIDENCE, VIOLATIONS
from highwater.schemas.clocks import CLOCK_BOUNDS
from highwater.schemas.controllers import AVAILABILITY, CONTROLLER_TIMELINE, FAILOVERS, ISR_ABSENCES, PARTITION_TIMELINE
from highwater.schemas.gold import DELAYED_OPERATIONS, REQUEST_PHASES
from highwater.schemas.incidents import INCIDENT_LINES, INCIDENTS
from highwater.schemas.shares import SHARE_OPERATIONS
from highwater.schemas.table import TableSpec
from highwater.schemas.timelines import BROKER_TIMELINE

#: Errors of one kind further apart than this are of two episodes, seconds.
_ERROR_GAP_S = 10
#: A client that was not held back for longer had caught up with its quota, seconds.
_THROTTLED_GAP_S = 60
#: Longest gap between expired locks of one episode of a group, seconds. A lock lasts 30 seconds by default.
_LOCKS_GAP_S = 60
#: Sums of fractions differ in their last digits by the order in which they are added up.
_DIGITS = 3
_OF_FILES = ("cluster_id", "broker_id", "kind", "path", "kafka_version", "first_time", "last_time", "excerpt")
#: What shows the subject of a file without a broker.
_OF_SUBJECTS = ("file_id", "broker_ids", "layout")
_OF_LINES = ("time", "cluster_id", "broker_id", "file_id", "byte_offset")
#: Fields of an incident that are columns.
_ALIKE = ("cluster_id", "incident_id", "kind", "severity", "sentence", "advice", "caused_by")
_ASKED = (
    bronze.LOG_FILES,
    bronze.LOG_LINES,
    DELAYED_OPERATIONS,
    REQUEST_PHASES,
    SHARE_OPERATIONS,
    silver.PRODUCE_REQUESTS,
    silver.TOPICS,
    PARTITION_TIMELINE,
    silver.CONTROLLER_EVENTS,
    silver.BROKER_CONFIGS,
)


def write_incidents(lake: Lake, config: Config, run_id: str) -> None:
    """Write ``gold.incidents``, and the tables of broker states and other timelines that incidents are derived from."""
    reader = open_reader(lake, [(spec, None) for spec in _ASKED])
    facts = collect_facts(lake, reader, config)
    incidents = incidents_of(facts, KINDS)
    names = {subject.subject_id: subject.name for subject in _subjects(lake).values()}
    places = {place for incident in incidents for place in incident.places[:EVIDENCE_MAX]}
    lines = find_lines(reader, places, questions.MESSAGE_MAX)
    tables = (
        (BROKER_TIMELINE, timeline_rows(facts.brokers.states)),
        (CONTROLLER_TIMELINE, controller_rows(controller_timeline(facts))),
        (INCIDENTS, rows_of(incidents, names)),
        (INCIDENT_LINES, _lines_of(incidents, lines)),
    )
    for spec, rows in tables:
        lake.replace(spec, pa.Table.from_pylist([*rows], schema=spec.arrow_schema), stamp=run_id)


def collect_facts(lake: Lake, reader: LakeReader, config: Config) -> Facts:
    """Return all rows from which incidents are detected."""

    def rows(spec: TableSpec, *columns: str, where: pc.Expression | None = None, by: str = "time") -> Rows:
        return sorted(lake.dicts(spec, *columns, where=where), key=lambda row: (row[by] is None, row[by] or 0))

    subject_of = _subjects(lake)

    def of_subjects(given: Rows) -> Rows:
        """Return rows of lines. A row without a broker gets the number of its file's writer, or is left out."""
        numbered = []
        for row in given:
            subject = subject_of.get(row["file_id"]) if row["broker_id"] is None else None
            if subject is not None:
                row = {**row, "broker_id": subject.subject_id}
            if row["broker_id"] is not None:
                numbered.append(row)
        return numbered

    files = lake.dicts(bronze.LOG_FILES, *_OF_FILES)
    at_start = pc.field("scope") == "broker"
    configs = rows(silver.BROKER_CONFIGS, *_OF_LINES, "key", "value", where=at_start)
    signatures = [signature for kind in KINDS for signature in kind.signatures]
    of_no_partition = pc.field("partition").is_null()
    lifecycle = of_subjects(rows(silver.BROKER_LIFECYCLE, *(*_OF_LINES, "event", "kafka_version", "mode", "detail")))
    controllers = rows(
        silver.CONTROLLER_EVENTS,
        *(*_OF_LINES, "event", "controller_epoch", "subject_broker_id", "brokers", "topic", "leader", "detail"),
        where=of_no_partition,
    )
    crashes, pauses = _of_processes(lake.dicts(bronze.PROCESS_REMARKS, *bronze.PROCESS_REMARKS.column_names), files)
    lines = questions.lines({file_id: subject.subject_id for file_id, subject in subject_of.items()})
    silences, first_boots = boots_apart(reader.rows(questions.silences()))
    found = Facts(
        files=files,
        lifecycle=lifecycle,
        controller_events=drop_past(controllers, [*lifecycle, *_boots(silences, first_boots)]),
        availability=rows(AVAILABILITY, *AVAILABILITY.column_names, by="started_time"),
        failovers=rows(FAILOVERS, *FAILOVERS.column_names, by="detected_time"),
        absences=rows(ISR_ABSENCES, *ISR_ABSENCES.column_names, by="left_time"),
        findings=rows(VIOLATIONS, *VIOLATIONS.column_names),
        finding_places=lake.dicts(EVIDENCE, "finding_id", "file_id", "byte_offset", where=_has_place()),
        configs=list({(row["cluster_id"], row["broker_id"], row["key"]): row for row in configs}.values()),
        topic_configs=reader.rows(questions.topic_settings([UNCLEAN_ELECTION])),
        silences=silences,
        first_boots=first_boots,
        last_lines=reader.rows(questions.last_lines()),
        remarks=reader.rows(questions.remarks(signatures, lines)),
        loud=reader.rows(questions.loud(signatures, lines)),
        kinds_by_signature=kinds_by_signature(KINDS),
        exits=sorted([*of_subjects(reader.rows(questions.exits())), *crashes], key=lambda row: row["time"]),
        pauses=pauses,
        waits=reader.rows(questions.waits(config.latency.slow_ms)),
        reassignment_lines=rows(
            silver.CONTROLLER_EVENTS,
            *("cluster_id", "topic", "partition", "time", "replicas", "detail", "file_id", "byte_offset"),
            where=(pc.field("event") == "reassignment") & pc.field("partition").is_valid(),
        ),
        assignments=reader.rows(questions.assignments()),
        last_states=reader.rows(questions.last_states()),
        topics_again=reader.rows(questions.topics_created_again()),
        errors=reader.rows(questions.errors(_ERROR_GAP_S)),
        throttled=reader.rows(questions.throttled(_THROTTLED_GAP_S)),
        locks_expired=reader.rows(questions.locks_expired(_LOCKS_GAP_S)),
        clocks=rows(CLOCK_BOUNDS, *CLOCK_BOUNDS.column_names, by="window_start"),
        first_produces={row["cluster_id"]: row["time"] for row in reader.rows(questions.first_produces())},
        ends=logs_end(files),
    )
    return corrected(found)


def _boots(silences: Rows, first_boots: Mapping[Node, int]) -> Iterable[Row]:
    """Yield first lines of processes as rows of lifecycle event ``starting``: controllers log no other start."""
    begun = [(node(row), row["end_time"]) for row in silences if row["is_boot"]]
    for (cluster_id, broker_id), time in (*first_boots.items(), *begun):
        yield {"cluster_id": cluster_id, "broker_id": broker_id, "time": time, "event": "starting"}


def _of_processes(remarked: Rows, files: Rows) -> tuple[Rows, Rows]:
    """Return rows about crashes and about pauses from JVM files whose brokers are known.

    Args:
        remarked: rows of ``bronze.process_remarks``.
        files: rows of ``bronze.log_files``.
    """
    writers = {path: writer_of(path, files) for path in {row["path"] for row in remarked}}
    crashes, pauses = [], []
    for row in sorted(remarked, key=lambda row: (row["start_time"], row["path"], row["line"])):
        writer = writers[row["path"]]
        if writer is None:
            continue
        of_broker = {"cluster_id": writer[0] or UNKNOWN_CLUSTER, "broker_id": writer[1]}
        if row["kind"] == GC_PAUSE:
            end_time = row["start_time"] + row["duration_us"]
            pauses.append(of_broker | {"start_time": row["start_time"], "end_time": end_time, "text": row["text"]})
        else:
            place = {"file_id": row["path"], "exit_file_id": row["path"], "byte_offset": row["line"]}
            text = f"{PurePath(row['path']).name}: {row['text']}"
            crashes.append(of_broker | place | {"time": row["start_time"], "text": text})
    return crashes, pauses


def _subjects(lake: Lake) -> dict[str, Subject]:
    return subjects(lake.dicts(bronze.LOG_FILES, *_OF_FILES, *_OF_SUBJECTS))


def _has_place() -> pc.Expression:
    return pc.field("file_id").is_valid()


def _lines_of(incidents: Sequence[LoggedIncident], lines: Mapping[Place, Line]) -> Iterable[dict[str, Any]]:
    for incident in incidents:
        shown = [lines[place] for place in dict.fromkeys(incident.places[:EVIDENCE_MAX]) if place in lines]
        shown.sort(key=lambda line: (line.time is None, line.time or 0, line.file, line.byte_offset))
        of_incident = {
            "cluster_id": incident.cluster_id,
            "incident_id": incident.incident_id,
            "start_time": incident.start_us,
            "end_time": incident.end_us,
        }
        yield from (of_incident | {"position": position} | line._asdict() for position, line in enumerate(shown))


def rows_of(incidents: Sequence[LoggedIncident], names: Mapping[int, str]) -> Iterable[dict[str, Any]]:
    """Yield rows of ``gold.incidents``.

    Args:
        incidents: incidents of all clusters.
        names: names by negative number, of files whose broker is unknown.
    """
    harm: dict[str, int] = defaultdict(int)
    for incident in incidents:
        harm[incident.cluster_id] += 1
        bug = incident.known_bug
        alike = {name: getattr(incident, name) for name in _ALIKE}
        yield {name: value if value is None else with_names(value, names) for name, value in alike.items()} | {
            "harm": harm[incident.cluster_id],
            "start_time": incident.start_us,
            "end_time": incident.end_us,
            "broker_ids": sorted(broker_id for broker_id in incident.broker_ids if not is_subject(broker_id)),
            "partitions": len(incident.partitions),
            "topic_partitions": sorted(incident.partitions)[:NAMED_MAX],
            "known_bug": None if bug is None else bug.jira,
            "fixed_in": None if bug is None else bug.fixed_in or None,
            "figures": [
                {"name": name, "value": round(float(value), _DIGITS)} for name, value in incident.figures.items()
            ],
        }
