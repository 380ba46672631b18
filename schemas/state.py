"""State: what runs leave to the next one, by the number of the run, and the ledger of what each replayed and why.

The state lies in the lake as any other table, and not in a stream's checkpoint: what an earlier run left is the state
before a file that came late, and SQL reads it.
"""

from __future__ import annotations

from schemas.table import BINARY, BOOLEAN, INT, INTS, LONG, STRING, STRINGS, TIMESTAMP, TableSpec, column, required

# Values of `FOLDS.kind`.
PARTITION = "partition"
SESSION = "session"
EVIDENCE = "evidence"
CONNECTION = "connection"
WATCH = "watch"
WAKE = "wake"
OUTCOME = "outcome"

FOLDS = TableSpec(
    layer="state",
    name="folds",
    comment="One row per run and thing that a replay goes on from: a partition on its leader, a connection's fetches, "
    "an operation still waiting. They count once state.runs names the run; those of the last runs stay, "
    "and of one run an hour and a day.",
    columns=(
        required("run_number", LONG, "Run that left it, state.runs.run_number"),
        required("kind", STRING, "partition, session, evidence, connection, watch, wake, outcome"),
        required("cluster_id", STRING, "Cluster"),
        required("broker_id", INT, "Broker whose log it comes from"),
        column("name", STRING, "topic-partition, or connection"),
        required("pending", LONG, "Operations that it holds and that are not decided, or not settled, yet"),
        column("last_time", TIMESTAMP, "Newest event in it"),
        column("row", STRING, "What it is, as JSON, where it is a row of a table"),
        column("state", BINARY, "What it is, as JSON of the replay's own objects, where it is a fold"),
    ),
    keys=("run_number", "kind", "cluster_id", "broker_id", "name", "row"),
    checks={
        "kind_known": "kind IN ('partition', 'session', 'evidence', 'connection', 'watch', 'wake', 'outcome')",
        "row_or_state": "row IS NOT NULL OR state IS NOT NULL",
    },
)

AUDITED = TableSpec(
    layer="state",
    name="audited",
    comment="One row per partition that the rules have judged: what they go on from. Of the last run, and of the one "
    "before it until the next.",
    columns=(
        required("run_number", LONG, "Run that left it, state.runs.run_number"),
        required("cluster_id", STRING, "Cluster"),
        required("topic", STRING, "Topic"),
        required("partition", INT, "Partition index"),
        required("brokers", INTS, "Brokers whose logs tell of it, ascending"),
        column("why_whole", STRING, "Why the next run judges it anew, over all its facts; null: it goes on"),
        column("state", BINARY, "What the rules hold of it, as JSON of their own objects"),
    ),
    keys=("run_number", "cluster_id", "topic", "partition"),
    checks={"goes_on_or_says_why": "CASE WHEN state IS NULL THEN why_whole IS NOT NULL ELSE why_whole IS NULL END"},
)

RUNS = TableSpec(
    layer="state",
    name="runs",
    comment="Ledger: one row per run and broker of the lake: from when on its log was replayed, why, and up to when it "
    "is final. Its commit is what makes a run count.",
    columns=(
        required("run_number", LONG, "1 for the first run of the lake, and so on"),
        required("run_id", STRING, "gold.runs.run_id; the same where an audit is made again, as after an upgrade"),
        required("replayed_time", TIMESTAMP, "When the replay ended"),
        required(
            "components",
            STRING,
            "What its rows rest on: replay, grammars and settings; tables: an upgrade made some anew, and nothing is "
            "gone on from",
        ),
        column("inputs", STRING, "Hash of the files, and of what replayed them"),
        column("folds_run", LONG, "Run whose state.folds the next one goes on from: its own, if more than rules ran"),
        column("folds_shape", STRING, "Hash of what those folds hold"),
        column("cluster_id", STRING, "Cluster; null: the lake has no log"),
        column("broker_id", INT, "Broker"),
        column("from_time", TIMESTAMP, "Its log was replayed from here on; null: from the beginning"),
        column("until_time", TIMESTAMP, "The log reached up to here"),
        column("sealed_time", TIMESTAMP, "What lies before is final unless a file comes late; null: nothing is"),
        column("sessions_time", TIMESTAMP, "The same of fetches"),
        column("waiting_time", TIMESTAMP, "The oldest request with an append that is not settled came no earlier"),
        column("premises", STRING, "Hash of what lines had told of versions and settings by sealed_time"),
        column(
            "reason",
            STRING,
            "first: nothing was replayed before; new: its log went on; late: lines came that belong before what was "
            "final, or a connection went on that had been silent since; configuration: what lines told of versions or "
            "settings changed for the past; fingerprint: rules, grammars or configuration of the audit changed; "
            "unchanged: another broker's log went on",
        ),
        column("late_time", TIMESTAMP, "Earliest instant of what came late"),
        required("file_ids", STRINGS, "Log files of this broker that were new, bronze.log_files.file_id"),
        column(
            "changes",
            STRINGS,
            "What of highwater changed since the run before: replay, grammar (lines were parsed again), settings of "
            "the replay, tables (an upgrade made some anew), rules (they alone were asked again); null: nothing",
        ),
        column("rules", STRING, "Hash of what judging rests on beside the facts; null: no rule was asked"),
        column("judged_time", TIMESTAMP, "Up to here the rules have judged its log for good"),
        column("log_ended", BOOLEAN, "Its log had ended, and is judged to its end"),
        column("closed_time", TIMESTAMP, "Days of its cluster before were closed; null: none was"),
        column("silver_versions", STRING, "Delta version of each table of silver that the rules read, as JSON"),
    ),
    keys=("run_number", "cluster_id", "broker_id"),
    checks={
        "reason_known": "reason IS NULL OR "
        "reason IN ('first', 'new', 'late', 'configuration', 'fingerprint', 'unchanged')"
    },
)

EXPIRIES = TableSpec(
    layer="state",
    name="expiries",
    comment="Ledger: one row per cluster and time that old days were dropped.",
    columns=(
        required("expired_time", TIMESTAMP, "When"),
        required("closed_time", TIMESTAMP, "Gold of before stays as it is: what made it may be gone"),
        column("bronze_time", TIMESTAMP, "Lines of files that end before are gone; null: all are kept"),
        column("silver_time", TIMESTAMP, "Requests, fetches and the like of before are gone; null: all are kept"),
        column("gold_time", TIMESTAMP, "Rows of gold of before are gone; null: all are kept"),
        required("known_time", TIMESTAMP, "Findings of before, as they were then, stay"),
        required(
            "run_id",
            STRING,
            "Run whose state.folds a replay begins with from now on; empty where none of the cluster was replayed",
        ),
        column("cluster_id", STRING, "Cluster; null: all of the lake, before each had its own days"),
        column("run_number", LONG, "The same run, state.runs.run_number"),
    ),
    keys=("expired_time", "cluster_id"),
)

UPGRADES = TableSpec(
    layer="state",
    name="upgrades",
    comment="Ledger: one row per table that a newer version of highwater found otherwise than it declares it.",
    columns=(
        required("upgraded_time", TIMESTAMP, "When"),
        required("code_version", STRING, "Version of highwater that came"),
        required("table_name", STRING, "Full name of the table"),
        required("change", STRING, "What was done to it, and why"),
    ),
    keys=("upgraded_time", "table_name"),
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

DIGESTS = TableSpec(
    layer="state",
    name="digests",
    comment="What stages take of a file of a table, such as the first fetch of each leader epoch: read instead of it.",
    columns=(
        required("reading", STRING, "Who takes what, with a hash of the columns and the condition"),
        required("code", STRING, "Components, with their numbers, that took it"),
        required("file", STRING, "Name of the file"),
        required("part", INT, "Part of a large file, from 0 on"),
        required("rows", BINARY, "The rows, as an Arrow IPC stream"),
    ),
    keys=("reading", "code", "file", "part"),
)

TABLES = (FOLDS, AUDITED, RUNS, EXPIRIES, UPGRADES, INVENTORY, DIGESTS)
