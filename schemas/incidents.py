"""Gold: what happened, one row per episode."""

from __future__ import annotations

from schemas import columns as c
from schemas.table import DOUBLE, INT, INTS, LONG, STRING, STRINGS, TIMESTAMP, TableSpec, column, required, structs

#: Values of `INCIDENTS.severity`, the worst first, and what they mean.
SEVERITY_MEANINGS = {
    "critical": "acknowledged records are lost, or clients could not write or read",
    "major": "the cluster was one fault away from that, or clients waited",
    "minor": "it went back by itself",
    "info": "someone did it on purpose",
}
SEVERITIES = tuple(SEVERITY_MEANINGS)

INCIDENTS = TableSpec(
    layer="gold",
    name="incidents",
    comment="One row per episode that logs tell of: a broker that died or stood still, a partition without a leader, a "
    "fetcher that stopped for good, a slow replica, errors that clients met.",
    columns=(
        c.CLUSTER,
        required("incident_id", STRING, "The same in every run that finds the same subjects since the same time"),
        required("harm", INT, "Place among the incidents of the cluster, from 1: the most harmful first"),
        required("kind", STRING, "Kind of episode, as docs/incident_kinds.md lists them"),
        required(
            "severity",
            STRING,
            "; ".join(f"{severity}: {meaning}" for severity, meaning in SEVERITY_MEANINGS.items()),
        ),
        required("start_time", TIMESTAMP, "First instant that logs show"),
        column("end_time", TIMESTAMP, "Last instant; null: it lasts to the end of the logs"),
        required("broker_ids", INTS, "Brokers that it is about, ascending"),
        required("partitions", INT, "Partitions that it is about"),
        required("topic_partitions", STRINGS, "Their names, topic and number with a hyphen: the first 20"),
        required("sentence", STRING, "What happened, in words"),
        required("advice", STRING, "What to do; empty where there is nothing to do"),
        column("caused_by", STRING, "incident_id of the incident that brought it about"),
        column("known_bug", STRING, "JIRA of a bug of the running version with this signature"),
        column("fixed_in", STRING, "Releases that first have its fix, such as 3.1.0; null where there is none"),
        required(
            "figures",
            structs(required("name", STRING, "What is counted or measured"), required("value", DOUBLE, "How much")),
            "Figures of the episode; units last in their names",
        ),
    ),
    keys=("cluster_id", "incident_id"),
    bounded_by=("start_time",),
    ordered_by="start_time",
    dated_by=("start_time", "end_time"),
    checks={"severity_known": "severity IN ('critical', 'major', 'minor', 'info')"},
)

INCIDENT_LINES = TableSpec(
    layer="gold",
    name="incident_lines",
    comment="The lines that show an incident, at most ten, in order of time; as gold.evidence it names files.",
    columns=(
        c.CLUSTER,
        required("incident_id", STRING, "gold.incidents.incident_id"),
        required("position", INT, "Place among the lines of the incident, from 0"),
        required("start_time", TIMESTAMP, "gold.incidents.start_time"),
        column("end_time", TIMESTAMP, "gold.incidents.end_time"),
        *c.SHOWN,
        required("file_id", STRING, "bronze.log_files.file_id"),
        required("line_no", LONG, "Number of the line, from 1"),
        c.BYTE_OFFSET,
        required("text", STRING, "The line's message, cut at 2,000 characters"),
    ),
    keys=("cluster_id", "incident_id", "position"),
    dated_by=("start_time", "end_time"),
)

TABLES = (INCIDENTS, INCIDENT_LINES)
