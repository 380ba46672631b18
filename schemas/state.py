"""State: what the replay carries from one run to the next, and the ledger of what each run replayed and why.

The state lies in the lake as any other table, and not in a stream's checkpoint: an older version of it is the state
before a file that came late, and SQL reads it.
"""

from __future__ import annotations

from schemas.table import BINARY, INT, LONG, STRING, STRINGS, TIMESTAMP, TableSpec, column, required

# Values of `CARRIED.kind`.
PARTITION = "partition"
SESSION = "session"
EVIDENCE = "evidence"
CONNECTION = "connection"
WATCH = "watch"
WAKE = "wake"
OUTCOME = "outcome"

CARRIED = TableSpec(
    layer="state",
    name="carried",
    comment="One row per thing that a replay goes on from: a partition on its leader, a connection's fetches, an "
    "operation still waiting. Replaced by every run; older versions are the states before late files.",
    columns=(
        required("kind", STRING, "partition, session, evidence, connection, watch, wake, outcome"),
        required("cluster_id", STRING, "Cluster"),
        required("broker_id", INT, "Broker whose log it comes from"),
        column("name", STRING, "topic-partition, or connection"),
        required("pending", LONG, "Operations that it holds and that are not decided, or not settled, yet"),
        column("last_time", TIMESTAMP, "Newest event in it"),
        column("row", STRING, "What it is, as JSON, where it is a row of a table"),
        column("state", BINARY, "What it is, as JSON of the replay's own objects, where it is a fold"),
    ),
    keys=("kind", "cluster_id", "broker_id", "name", "row"),
    cluster_by=("kind", "cluster_id", "broker_id"),
    checks={
        "kind_known": "kind IN ('partition', 'session', 'evidence', 'connection', 'watch', 'wake', 'outcome')",
        "row_or_state": "row IS NOT NULL OR state IS NOT NULL",
    },
)

REPLAYS = TableSpec(
    layer="state",
    name="replays",
    comment="Ledger: one row per run and broker that had anything to replay: from when on, why, and up to when it is "
    "final.",
    columns=(
        required("run_id", STRING, "gold.runs.run_id"),
        required("replayed_time", TIMESTAMP, "When the replay ended"),
        required("cluster_id", STRING, "Cluster"),
        required("broker_id", INT, "Broker"),
        column("from_time", TIMESTAMP, "Its log was replayed from here on; null: from the beginning"),
        column("until_time", TIMESTAMP, "The log reached up to here"),
        column("sealed_time", TIMESTAMP, "What lies before is final unless a file comes late; null: nothing is"),
        required(
            "reason",
            STRING,
            "first: nothing was replayed before; new: its log went on; late: lines came that belong before what was "
            "final, or a connection went on that had been silent since; configuration: what lines told of versions or "
            "settings changed for the past; fingerprint: rules, grammars or configuration of the audit changed; "
            "unchanged: another broker's log went on",
        ),
        column("late_time", TIMESTAMP, "Earliest instant of what came late"),
        required("file_ids", STRINGS, "Log files of this broker that were new, bronze.log_files.file_id"),
    ),
    keys=("run_id", "cluster_id", "broker_id"),
    checks={"reason_known": "reason IN ('first', 'new', 'late', 'configuration', 'fingerprint', 'unchanged')"},
)

INVENTORY = TableSpec(
    layer="state",
    name="inventory",
    comment="One row per log that an ingest has read: what its file was then. A file that is still so is not opened.",
    columns=(
        required("path", STRING, "File: a log, or a bundle of logs"),
        required("name", STRING, "The log: bundle!/member in a bundle, else the path"),
        required("size_bytes", LONG, "Size of the file as stored, in bytes"),
        required("modified_time", TIMESTAMP, "When the file was last changed, by its file system or store"),
        required("file_id", STRING, "Content of the log, bronze.log_files.file_id"),
        required("looked_time", TIMESTAMP, "When size and time were asked for, by the clock of the ingest"),
        required(
            "patterns", STRING, "What chose a bundle's members: ingest.include, ingest.exclude; empty of other files"
        ),
    ),
    keys=("name",),
)

TABLES = (CARRIED, REPLAYS, INVENTORY)
